"""Literals vanish from statements and expressions, names stay, and the canonical text is blind to what only counts."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events.redaction import canonical_text, mask_catalyst, mask_literals
from tests.property.effort import examples

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
    for function in (mask_literals, mask_catalyst, canonical_text):
        once = function(text)
        assert function(once) == once, function.__name__


IDS = st.integers(0, 99_999)  # shorter than what `pieces` looks for
EXPRESSIONS = st.sampled_from(
    [
        "(name#{i} = {a})",
        "((x#{i}L > {a}) AND y#{j} IN ({a},{b},{a}))",
        "CASE WHEN isnotnull(x#{i}) THEN {a} ELSE upper(y#{j}) END AS z#{k}",
        "transform(x#{i}, lambdafunction(concat(lambda v_{j}#{k}, {a}), lambda v_{j}#{k}, false))",
        "cast(substring(x#{i}, {a}, {b}) as decimal(10,2))",
        "exists#{i} [x#{j}, plan_id#{k}]",
        "sum(x#{i}) FILTER (WHERE (y#{j} = {a}))",
    ]
)
VALUES = st.one_of(
    SECRETS,
    st.lists(SECRETS, min_size=1, max_size=3).map(" ".join),
    st.integers(-(10**12), 10**12).map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.just(""),
)


FILLINGS = st.fixed_dictionaries({"a": VALUES, "b": VALUES, "i": IDS, "j": IDS, "k": IDS})


@settings(max_examples=examples(200), deadline=None)
@given(EXPRESSIONS, FILLINGS, FILLINGS)
def test_a_printed_expression_shows_no_value_and_no_number(
    form: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    masked = mask_catalyst(form.format(**one))
    assert [piece for piece in pieces(f"{one['a']} {one['b']}") if piece in masked] == []
    assert canonical_text(masked) == canonical_text(mask_catalyst(form.format(**other)))


@given(IDS, IDS)
def test_snapshots_do_not_matter(one: int, other: int) -> None:
    for form in ("SELECT * FROM t VERSION AS OF {}", "SELECT * FROM t@v{}", "SELECT * FROM c.t.snapshot_id_{}"):
        assert canonical_text(form.format(one)) == canonical_text(form.format(other))
