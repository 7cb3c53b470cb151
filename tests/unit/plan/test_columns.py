"""What column lineage promises whatever the query: order, nothing guessed, texts, and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from headwater.events.column_lineage import Derivation
from headwater.events.identity import Environment
from headwater.events.jobs import SinkSchema
from headwater.events.redaction import Redactor
from headwater.listeners.capture.batch.write_lineage import MAX_EDGES, lineage_of_write
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.plan.columns import (
    ColumnOrigin,
    QueryLineage,
    lineage_of,
    match_by_name,
    match_by_position,
    merge_lineage,
)
from headwater.listeners.capture.plan.columns.rendering import MAX_LENGTH
from headwater.listeners.capture.plan.columns.values import keeps_values
from headwater.listeners.capture.plan.tree import Plan, PlanError
from tests.kit.plan import big
from tests.kit.plan.building import Building, column

MOST_SECONDS = 1.5
"""Of the processor, for each large plan: some twenty times what it takes."""


def origin(leaf: int, name: str, derivation: Derivation, text: str | None = None) -> ColumnOrigin:
    return ColumnOrigin(leaf, (name,), derivation, text)


def test_columns_of_an_operator_that_is_not_known_have_no_origins_and_it_is_named() -> None:
    b = Building()
    table, (a, c) = b.relation("t", "a", "c")
    b.filter(table, b.expression("IsNotNull", column(c)))
    b.node("Masked", [1], [a])
    lineage = lineage_of(b.plan(), 2)
    assert lineage == QueryLineage({a: ()}, (), (table,), ("Masked",))


def test_above_it_only_what_comes_through_it_is_missing() -> None:
    b = Building()
    one, (a,) = b.relation("t", "a")
    masked = b.node("Masked", [one], [a])
    other, (k,) = b.relation("u", "k")
    b.node("Join", [masked, other], [a, k], joinType="Inner")
    lineage = lineage_of(b.plan(), 3)
    assert lineage.columns == {a: (), k: (origin(other, "k", Derivation.IDENTITY),)}
    assert lineage.unknown == ("Masked",)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("Project", {"projectList": {"x": [-1, -1, -1]}}),
        ("Expand", {"projections": "none"}),
        ("CTERelationRef", {"cteId": 7}),
        ("Generate", {}),
        ("UnresolvedRelation", {}),
    ],
)
def test_a_node_that_is_not_written_as_we_know_it_is_named(kind: str, arguments: dict[str, Any]) -> None:
    b = Building()
    table, (a,) = b.relation("t", "a")
    b.node(kind, [] if kind[0] in "CU" else [table], [a], **arguments)
    lineage = lineage_of(b.plan(), 1)
    assert lineage.unknown == (kind,)
    assert lineage.columns == {a: ()}


def test_a_column_that_nothing_gives_is_reported() -> None:
    b = Building()
    table, _ = b.relation("t", "a")
    stray = b.attribute("stray")
    b.project(table, [("x", b.add(column(stray), b.literal()))])
    assert lineage_of(b.plan(), 1).unknown == ("column stray",)


def test_an_outer_reference_without_an_outer_query_is_reported() -> None:
    b = Building()
    table, _ = b.relation("t", "a")
    stray = b.attribute("stray")
    b.project(table, [("x", b.expression("OuterReference", id=stray, name="stray"))])
    lineage = lineage_of(b.plan(), 1)
    assert lineage.unknown == ("column stray",)
    assert set(lineage.columns.values()) == {()}


def test_what_a_correlated_subquery_asks_of_the_query_around_it_is_known_there() -> None:
    b = Building()
    outer, (a, c) = b.relation("t", "a", "c")
    renamed, (k,) = b.project(outer, [("k", b.add(column(a), b.literal()))])
    inner, (x, y) = b.relation("u", "x", "y")
    same = b.expression("EqualTo", column(x), b.expression("OuterReference", id=k, name="k"), symbol="=")
    asked = b.filter(inner, same)
    query = b.node("Project", [asked], [y], projectList={"x": [column(y)]})
    top, (z,) = b.project(renamed, [("z", b.expression("ScalarSubquery", column(k), plan=query))])
    lineage = lineage_of(b.plan(), top)
    assert c not in lineage.columns
    assert set(lineage.columns[z]) == {
        origin(outer, "a", Derivation.CONDITIONAL, "(select y)"),
        origin(inner, "x", Derivation.CONDITIONAL, "(select y)"),
        origin(inner, "y", Derivation.IDENTITY),
    }
    assert lineage.leaves == (outer, inner)
    assert not lineage.unknown


def test_origins_stand_in_the_order_of_leaves_and_their_columns() -> None:
    b = Building()
    left, (z, a) = b.relation("t", "z", "a")
    right, (k,) = b.relation("u", "k")
    join = b.node("Join", [left, right], [z, a, k], joinType="Cross")
    top, (x,) = b.project(join, [("x", b.add(column(k), column(a), column(z)))])
    text = "k + a + z"
    assert lineage_of(b.plan(), top).columns[x] == tuple(
        origin(leaf, name, Derivation.TRANSFORMATION, text) for leaf, name in ((left, "z"), (left, "a"), (right, "k"))
    )


def test_the_same_plan_gives_the_same_lineage() -> None:
    plan = big.joins(10, 5)
    assert lineage_of(plan, plan.root) == lineage_of(plan, plan.root)


def test_a_text_is_cut_and_says_so() -> None:
    plan = big.deep(2_000)
    ((first, *_),) = lineage_of(plan, plan.root).columns.values()
    assert first.expression is not None
    assert first.expression.startswith("c0 + c1 + c2 + ")
    assert first.expression.endswith("…")
    assert len(first.expression) == MAX_LENGTH


def test_what_every_column_is_made_from_is_reported_once_and_shared() -> None:
    plan = big.every_column_from_every(50)
    origins = list(lineage_of(plan, plan.root).columns.values())
    assert len(origins[0]) == 50
    assert origins[0][0] == origin(0, "c0", Derivation.TRANSFORMATION, "f(…)")
    assert all(each is origins[0] for each in origins)


def test_expressions_are_written_out_down_to_the_columns() -> None:
    b = Building()
    table, (a, c) = b.relation("t", "a", "some column")
    lower, (x, y) = b.project(table, [("x", b.add(column(a), column(c))), ("y", column(a))])
    product = b.expression("Multiply", column(x), column(y), symbol="*")
    cast = b.expression("Cast", product, type=b.type('"string"'))
    chosen = b.expression("If", b.expression("IsNull", column(y)), b.literal(), b.expression("Upper", cast))
    top, (z,) = b.project(lower, [("z", chosen)])
    texts = {each.expression for each in lineage_of(b.plan(), top).columns[z]}
    assert texts == {"if(a is null, ?, upper(cast((a + `some column`) * a as string)))"}


def test_what_is_passed_on_has_no_text() -> None:
    b = Building()
    table, (a,) = b.relation("t", "a")
    top, (x,) = b.project(table, [("x", b.expression("Cast", column(a), type=b.type('"long"')))])
    assert lineage_of(b.plan(), top).columns[x] == (origin(table, "a", Derivation.IDENTITY),)


@pytest.mark.parametrize(
    ("given", "wanted", "kept"),
    [
        ("integer", "long", True),
        ("long", "integer", False),
        ("integer", "double", True),
        ("long", "double", False),
        ("integer", "float", False),
        ("float", "double", True),
        ("integer", "decimal(10,0)", True),
        ("integer", "decimal(9,0)", False),
        ("integer", "decimal(11,2)", False),
        ("decimal(18,0)", "long", True),
        ("decimal(19,0)", "long", False),
        ("decimal(10,2)", "decimal(12,3)", True),
        ("decimal(10,2)", "decimal(10,3)", False),
        ("varchar(9)", "string", True),
        ("string", "varchar(9)", False),
        ("integer", "string", False),
        ("date", "timestamp", False),
        ("date", "date", True),
        ("boolean", "integer", False),
    ],
)
def test_a_cast_keeps_values_where_each_has_its_place(given: str, wanted: str, kept: bool) -> None:
    assert keeps_values(f'"{given}"', f'"{wanted}"') is kept


def test_a_command_that_is_not_known_is_named() -> None:
    b = Building()
    b.node("Upsert")
    assert merge_lineage(b.plan(), 0, {}) == QueryLineage(unknown=("Upsert",))


def test_by_position_and_by_name() -> None:
    b = Building()
    table, (a, c) = b.relation("t", "a", "c")
    plan = b.plan()
    lineage = lineage_of(plan, table)
    first, second = lineage.columns[a], lineage.columns[c]
    assert match_by_position(lineage, plan, table, ["x", "y"]) == {("x",): first, ("y",): second}
    assert match_by_name(lineage, plan, table, ["C", "more"]) == {("C",): second}
    assert match_by_name(lineage, plan, table, ["C", "a"], case_sensitive=True) == {("a",): first}
    with pytest.raises(PlanError, match="2 columns are written into 1"):
        match_by_position(lineage, plan, table, ["x"])


@pytest.mark.slow
@pytest.mark.parametrize("make", big.BIG.values(), ids=list(big.BIG))
def test_large_plans_take_no_time(make: Callable[[], Plan]) -> None:
    plan = make()
    started = time.process_time()
    lineage = lineage_of(plan, plan.root)
    assert time.process_time() - started < MOST_SECONDS
    assert lineage.columns
    assert not lineage.unknown


def test_too_many_pairs_of_columns_are_named_and_the_tables_stay() -> None:
    """The matrix holds this for a plan that is too large; of pairs the number is known only when they are counted."""
    plan = big.every_column_from_every(200)
    targets = tuple((plan.attribute(each).name,) for each in plan.top.output)
    part = SinkWrite(WriteTarget(SinkSchema(dataset=None)), query=plan.root, columns=targets)
    context = CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())
    lineage = lineage_of_write(StatementWrites((part,), ()), plan, context)
    assert not lineage.columns
    assert lineage.unknown == (f"more than {MAX_EDGES} pairs of columns",)
    assert (len(lineage.sources), [each.leaves for each in lineage.parts]) == (1, [(0,)])
