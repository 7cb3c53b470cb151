"""Literals vanish from statements and expressions, names stay, and the canonical text is blind to what only counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events.redaction import canonical_text, mask_literals, mask_message
from tests.kit.effort import examples

pytestmark = pytest.mark.slow

SECRETS = st.text(st.sampled_from("QZXJ7943qz"), min_size=8, max_size=16).map(lambda text: f"Q{text}Z")
WILD = st.lists(SECRETS, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from(["'", '"', "\\", " -- ", "/*", "*/", "`", "\n", ", ", "(", "#12", "?", "--"]).map(
        lambda joint: joint.join(parts)
    )
)
DIGITS = st.integers(10**8, 10**12).map(str)
NAMES = st.sampled_from(["col1", "t2.order_id", "`we ird 'name`", "c.db.`2024`", "2024_sales.x", "x_3y"])


def single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def doubled(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def double(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


TEXT_LITERALS = st.one_of(
    *(WILD.map(quoted) for quoted in (single, doubled, double)),
    SECRETS.map(lambda text: f"r'{text}\\'"),
    SECRETS.map(lambda text: f"DATE '{text}'"),
    SECRETS.map(lambda text: f"INTERVAL '{text}' DAY"),
    SECRETS.map(lambda text: f"X'{text}'"),
)
NUMBER_LITERALS = st.builds(
    "".join, st.tuples(st.sampled_from(["", "-", "- "]), DIGITS, st.sampled_from(["", ".5", "L", "BD", "e10", "E-5D"]))
)
LITERALS = TEXT_LITERALS | NUMBER_LITERALS
STATEMENTS = st.sampled_from(
    [
        "SELECT {name}, {a} AS x FROM t1 WHERE {name} = {b}",
        "SELECT f({name}, {a}) FROM t1 WHERE {name} IN ({a}, {b}, {a})",
        "INSERT INTO t1 VALUES ({a}, {b}), ({b}, {a})",
        "MERGE INTO t1 USING t3 ON {name} > {a} WHEN MATCHED THEN UPDATE SET {name} = {b}",
        "SELECT CASE WHEN {name} <= {a} THEN {b} ELSE NULL END /* {name} */ FROM t1 -- over",
        "SELECT {name} FROM t1 WHERE {name} BETWEEN {a} AND {b} LIMIT {a}",
        "CREATE TABLE t1 (x decimal(10,2), y varchar(20)) TBLPROPERTIES ({a} = {b})",
        "SELECT CAST({a} AS decimal(10,2)), {name} LIKE {b} FROM t1",
    ]
)


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """A statement, the words that must stay in it, and the literals that must not."""
    form, name, a, b = draw(STATEMENTS), draw(NAMES), draw(LITERALS), draw(LITERALS)
    staying = ["t1"] if "t1" in form else []
    staying += [name] if "{name}" in form else []
    staying += ["decimal(10,2)"] if "decimal(10,2)" in form else []
    return form.format(name=name, a=a, b=b), staying, [a, b]


def pieces(literal: str) -> list[str]:
    kept = "".join(char if char in "QZXJ0123456789qz" else " " for char in literal)
    return [word for word in kept.split() if len(word) >= 6]


@settings(max_examples=examples(200), deadline=None)
@given(statements())
def test_literals_vanish_and_names_stay(statement: tuple[str, list[str], list[str]]) -> None:
    text, staying, literals = statement
    masked = mask_literals(text)
    assert [piece for literal in literals for piece in pieces(literal) if piece in masked] == []
    assert [word for word in staying if word not in masked] == []


@settings(max_examples=examples(150), deadline=None)
@given(STATEMENTS, NAMES, st.tuples(LITERALS, LITERALS), st.tuples(LITERALS, LITERALS))
def test_other_literals_give_the_same_text(
    form: str, name: str, these: tuple[str, str], those: tuple[str, str]
) -> None:
    one, other = (canonical_text(form.format(name=name, a=a, b=b)) for a, b in (these, those))
    assert one == other


FRAGMENTS = st.sampled_from(
    [
        "'", '"', "`", "\\", "a", "r", "x", "X", "1", "-", "+", ".", "--", "/*", "*/", "\n", " ", "?", "#12", "#",
        "(", ")", "[", "]", ",", "<", ">", ":",
        " IN (", "IN(", " VALUES ", "INSET ", "DATE ", "INTERVAL ", " DAY", "TO", " AS ", "as ", "decimal",
        "(10,2)", "map<", "SELECT ", "lambda x_1",
        "@", "v12", "[id=#12]", "[plan_id=1]", "=", "1e", "L", "0x1F", "snapshot_id_5", "'a'", "\u0130", "true",
        "name#5", " AND ",
    ]
)  # fmt: skip
ANY_SQL = st.lists(FRAGMENTS, max_size=14).map("".join)


@settings(max_examples=examples(400), deadline=None)
@given(ANY_SQL)
def test_any_text_is_taken_and_twice_is_once(text: str) -> None:
    for function in (mask_literals, canonical_text):
        once = function(text)
        assert function(once) == once, function.__name__


MESSAGES = st.sampled_from(
    [
        "[CAST_INVALID_INPUT] The value '{}' of the type \"STRING\" can't be cast. SQLSTATE: 22018",
        "For input string: \"{}\"",
        "[A_B] bad\n== SQL (line 1, position 8) ==\nSELECT '{}' FROM t -- {}\n       ^^^^^",
        "[A_B] violated by row with values:\n - name : {}\n - age : 5\n\tat a.b.C.d(C.scala:12)",
        "java.lang.RuntimeException: {}\n\tat a.b.C.d(C.scala:12)",
        "Duplicate entry '{}' for key 'users.email'",
        "Traceback (most recent call last):\n  File \"/a\", line 3\n  '{line}'\nValueError: {}\n\tat a.b(C.scala:12)",
    ]
)  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(MESSAGES, WILD | DIGITS)
def test_no_value_comes_through_a_message(form: str, value: str) -> None:
    line = value.replace("\n", " ")  # Python shows one line of code, whatever stands in its strings
    masked = mask_message(form.replace("{line}", line).replace("{}", value))
    assert [piece for piece in pieces(value) if piece in masked] == []
    assert [word for word in ("SQLSTATE: 22018", "C.scala:12", "[A_B]") if word in form and word not in masked] == []


PARTS_OF_MESSAGES = st.sampled_from(
    [
        "[A_B]", " ", "'", '"', "`", "x", "5", "-5", "(", ")", "[", "]", ",", ".", ":", "=", "\n",
        "\n\tat a.b(C.java:1)", "== SQL ==\n", ";\nProject [", "\n+- ", "Traceback (most recent call last):\n",
        "  File ", "line 3", "SQLSTATE: 42000", "java.lang.RuntimeException: ", "Caused by: ", "values ", "Map",
        "column ", "doesn't", "/a/b", "a.b:9", "?", "X", "\\",
    ]
)  # fmt: skip


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(PARTS_OF_MESSAGES, max_size=14).map("".join))
def test_any_message_is_taken(text: str) -> None:
    assert isinstance(mask_message(text), str)


IDS = st.integers(0, 99_999)  # shorter than what `pieces` looks for


@given(IDS, IDS)
def test_snapshots_do_not_matter(one: int, other: int) -> None:
    for form in ("SELECT * FROM t VERSION AS OF {}", "SELECT * FROM t@v{}", "SELECT * FROM c.t.snapshot_id_{}"):
        assert canonical_text(form.format(one)) == canonical_text(form.format(other))
