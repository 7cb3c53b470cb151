"""Messages of errors keep what is fixed in them, and lose values, rows, statements and plans: the truth by hand."""

from __future__ import annotations

import pytest

from headwater.events import Event
from headwater.events.jobs import ErrorDetails, JobStatus, JobStatusChanged, StatementFailed
from headwater.events.producer import Producer
from headwater.events.redaction import mask_message, mask_parameter
from tests.kit.spark_messages import mask_all_messages

CAST = (
    '[CAST_INVALID_INPUT] The value {} of the type "STRING" cannot be cast to "DECIMAL(10,2)" because it is malformed. '
    "Use `try_cast` to tolerate malformed input and return NULL instead. "
    'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22018'
)
FRAMES = "\n\tat org.apache.spark.sql.Dataset.show(Dataset.scala:813)"
UNRESOLVED = "[UNRESOLVED_COLUMN.X] A column `x` cannot be resolved. Did you mean [`a`, `b`.`c`]?; line 1 pos 14"
CASES = [
    (CAST.format("'bob'"), CAST.format("'?'")),
    (CAST.format("'it's 'bob' now'"), CAST.format("'?'")),
    (CAST.format("'O\\'Brien'"), CAST.format("'?'")),
    (CAST.format("'bob\njoe'") + FRAMES * 2, "[CAST_INVALID_INPUT] The value '?' SQLSTATE: 22018" + FRAMES * 2),
    ("bad: 'bob SQLSTATE: 22018\njoe\n\tat joes' house'" + FRAMES, "bad: '?'" + FRAMES),
    (CAST.format("''bob''"), CAST.format("'?'")),
    (CAST.format("12345L"), CAST.format("?")),
    (CAST.format("X'1CBB'"), CAST.format("X'?'")),
    (CAST.format("DATE '2023-01-05'"), CAST.format("DATE '?'")),
    ("overflow in 1.7E308D + -5S", "overflow in ? + ?"),
    (
        "bad\n== SQL (line 1, position 8) ==\nselect cast('bob' as int), 17\n\n-- bob\n       ^^^^^^^^^^^^" + FRAMES,
        "bad\n== SQL (line 1, position 8) ==\n?" + FRAMES,
    ),
    (
        "\nmismatched input 'FORM' expecting <EOF>(line 1, pos 9)\n\n== SQL ==\nSELECT 1 FORM bob\n---------^^^\n",
        "\nmismatched input 'FORM' expecting <EOF>(line 1, pos 9)\n\n== SQL ==\n?",
    ),
    ('bad\n== DataFrame ==\n"divide" was called from\nbob.py:17\n', "bad\n== DataFrame ==\n?"),
    (
        f"{UNRESOLVED};\n'Project ['x]\n+- Filter (name#1 = bob)\n   +- Relation [a#1]\n",
        UNRESOLVED,
    ),
    ("not supported:\nFilter (name#1 = bob)\n+- Range (0, 17)" + FRAMES, "not supported:" + FRAMES),
    ("Duplicate entry 'bob' for key 'users.email'", "Duplicate entry '?'"),
    (
        'ERROR: duplicate key value violates unique constraint "users_pkey"\n  Detail: Key (id, name)=(5, bob) exists.',
        'ERROR: duplicate key value violates unique constraint "users_pkey"\n  Detail: Key (id, name)=(?) exists.',
    ),
    (
        'null value in column "x" of relation "t" violates it\n  Detail: Failing row contains (1, bob).',
        'null value in column "x" of relation "t" violates it\n  Detail: Failing row contains (?).',
    ),
    ('invalid input syntax for type integer: "bob"', 'invalid input syntax for type integer: "?"'),
    ('For input string: "bob"', 'For input string: "?"'),
    (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c (age > 17 AND name <> 'bob') violated by row with "
        "values:\n - age : 16\n - name : joe bob" + FRAMES,
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c (age > ? AND name <> '?') violated by row with "
        "values:?" + FRAMES,
    ),
    ("malformed: [bob,[1,2],null]. See Row(bob, 5)", "malformed: [?]. See Row(?)"),
    ("Duplicate map key bob was found, please check", "Duplicate map key ? was found, please check"),
    ("[USER_RAISED_EXCEPTION] bob is\nodd SQLSTATE: P0001", "[USER_RAISED_EXCEPTION] ? SQLSTATE: P0001"),
    (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in "
        "stage 1.0 (TID 7) (10.0.0.1 executor 1): java.lang.RuntimeException: bob is\nodd" + FRAMES,
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in "
        "stage 1.0 (TID 7) (10.0.0.1 executor 1): java.lang.RuntimeException: ?" + FRAMES,
    ),
    (
        "in Python: Traceback (most recent call last):\n"
        '  File "/x/job.py", line 12, in clean\n    raise ValueError("bob", 5)\nValueError: bob is\nodd' + FRAMES,
        'in Python: Traceback (most recent call last):\n  File "/x/job.py", line 12, in clean\nValueError' + FRAMES,
    ),
    ("for customer_id=17, born 2023-01-05 10:00:00.5", "for customer_id=?, born ? ?"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expected"), CASES)
def test_values_go_and_what_is_fixed_stays(message: str, expected: str) -> None:
    assert mask_message(message) == expected
    assert mask_message(expected) == expected


@pytest.mark.parametrize(
    "message",
    [
        "", "disk full", "Path does not exist: file:/data/day=2023-01-05/part-0.parquet",
        "[DIVIDE_BY_ZERO] Division by zero.", "Connection refused: db.example.com:5432",
        "ORA-00942: table or view does not exist", "SQLCODE=-803, SQLSTATE=23505",
        "Query [id = 5d2a4d0e-1f47-4a3b-9c1e-0123456789ab, runId = 5d2a4d0e-1f47-4a3b-9c1e-0123456789ac] stopped",
        "it doesn't matter what the table's owner can't do",
        "[TABLE_OR_VIEW_NOT_FOUND] The table `a`.`b 1` cannot be found.",
        "at org.apache.spark.Foo$$anon$1.bar(Foo.scala:12)", "exit code 137", "Unknown column 'x.y' in line 3",
    ],
)  # fmt: skip
def test_what_holds_no_value_stays_as_it_is(message: str) -> None:
    assert mask_message(message) == message


def emitted(draft: Event, *, capture_sql: bool) -> Event:
    (event,) = Producer(capture_sql=capture_sql).emit(draft, lambda _event, _data: None)
    return event


@pytest.mark.parametrize("capture_sql", [False, True])
def test_events_have_the_values_only_where_they_are_asked_for(capture_sql: bool) -> None:
    error = ErrorDetails(type="E", message=CAST.format("'bob'"), condition="CAST_INVALID_INPUT", sql_state="22018")
    for draft in (StatementFailed(error=error), JobStatusChanged(status=JobStatus.FAILED, error=error)):
        event = emitted(draft, capture_sql=capture_sql)
        assert isinstance(event, StatementFailed | JobStatusChanged)
        assert event.error == error.model_copy(update={"message": CAST.format("'bob'" if capture_sql else "'?'")})


def test_what_raise_error_says_is_a_literal() -> None:
    error = ErrorDetails(type="java.lang.RuntimeException", message="bob is odd")
    event = emitted(StatementFailed(error=error), capture_sql=False)
    assert isinstance(event, StatementFailed)
    assert event.error.message == "?"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("objectName", "`a`.`b 1`", "`a`.`b 1`"), ("proposal", "`a`, `b`", "`a`, `b`"),
        ("sourceType", '"STRING"', '"STRING"'),
        ("expression", "'bob'", "'?'"), ("expression", "17", "?"), ("errorMessage", "bob is odd", "?"),
        ("value", "BOB", "?"),
        ("error", "'password'", "'password'"), ("error", "'<'", "'<'"),
        ("error", "''bob''", "'?'"), ("error", "'17'", "'?'"),
        ("hint", ": extra input 'token'", ": extra input 'token'"), ("hint", "", ""),
        ("path", "file:/a/b", "file:/a/b"),
        ("ansiConfig", '"spark.sql.ansi.enabled"', '"spark.sql.ansi.enabled"'), ("sqlExpr", '"(a = 5)"', '"?"'),
    ],
)  # fmt: skip
def test_parameters_keep_names_and_lose_values(name: str, value: str, expected: str) -> None:
    assert mask_parameter(name, value) == expected


@pytest.mark.slow
def test_no_value_comes_through_any_message_of_spark() -> None:
    """Whatever Spark fills in, as Spark writes values. The condition and the end of the message stay."""
    found = mask_all_messages()
    assert found.leaks == []
    assert found.lost == []
    assert len(found.hidden) < 10
    assert found.count > 3_000
