"""Column lineage of random queries, beside what is known of each expression because it was made up here."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Plan
from tests.kit import effort
from tests.kit.plan.building import Building, column

pytestmark = pytest.mark.slow

COLUMNS = 5
DIRECT = ["IDENTITY", "TRANSFORMATION", "AGGREGATION"]


class Tree(NamedTuple):
    """An expression: a column by its place, a literal, or an operator over others."""

    kind: str
    place: int = 0
    children: tuple[Tree, ...] = ()


Edges = frozenset[tuple[str, str]]
leaves = st.integers(0, COLUMNS - 1).map(lambda place: Tree("column", place)) | st.just(Tree("literal"))


def operators(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def of(kind: str, count: int) -> st.SearchStrategy[Tree]:
        return st.tuples(*[inner] * count).map(lambda children: Tree(kind, 0, children))

    return st.one_of(
        of("add", 2), of("if", 3), of("coalesce", 2), of("widened", 1), of("sum", 1), of("case", 3), of("field", 2)
    )


trees = st.recursive(leaves, operators, max_leaves=12)
layers = st.lists(st.lists(trees, min_size=COLUMNS, max_size=COLUMNS), min_size=1, max_size=4)


def composed(outer: str, inner: str) -> str:
    if outer not in DIRECT:
        return outer
    return inner if inner not in DIRECT else max(outer, inner, key=DIRECT.index)


def step(outer: str, edges: Edges) -> Edges:
    return frozenset((name, composed(outer, how)) for name, how in edges)


def known(tree: Tree, below: list[Edges]) -> Edges:
    """By recursion over what was made up: as the meaning of each operator says, and nothing else."""
    if tree.kind == "column":
        return below[tree.place]
    inner = [known(each, below) for each in tree.children]
    passed = tree.kind in {"widened", "field"} or (tree.kind == "if" and tree.children[1] == tree.children[2])
    if passed:
        return inner[-1]  # an IF is the same whatever its condition says
    if tree.kind == "sum":
        return step("AGGREGATION", inner[0])
    decides = tree.kind in {"if", "case", "coalesce"}
    values = inner if tree.kind in {"add", "coalesce"} else inner[1:]
    found = [step("TRANSFORMATION", each) for each in values] + [
        step("CONDITIONAL", each) for each in inner[:1] if decides
    ]
    return frozenset[tuple[str, str]]().union(*found)


class Written:
    """Trees as a plan: each as an expression of its own, so that only what is the same stands for the same."""

    def __init__(self, order: list[int]) -> None:
        self.b = Building()
        names = [f"c{n}" for n in range(COLUMNS)]
        self.node, ids = self.b.relation("t", *(names[n] for n in order))
        self.ids = [ids[order.index(n)] for n in range(COLUMNS)]
        self.made: dict[Tree, int] = {}

    def expression(self, tree: Tree) -> int:
        if tree not in self.made:
            self.made[tree] = self._expression(tree)
        return self.made[tree]

    def _expression(self, tree: Tree) -> int:
        inputs = [self.expression(each) for each in tree.children]
        if tree.kind == "column":
            return column(self.ids[tree.place])
        if tree.kind == "literal":
            return self.b.literal()
        if tree.kind == "field":
            struct = self.b.expression(
                "CreateNamedStruct", self.b.literal(), inputs[0], self.b.literal(), inputs[1], fields=["one", "two"]
            )
            return self.b.expression("GetStructField", self.b.expression("Alias", struct, name="s"), field="two")
        details: dict[str, dict[str, Any]] = {"add": {"symbol": "+"}}
        names = {"add": "Add", "if": "If", "coalesce": "Coalesce", "widened": "UpCast", "case": "CaseWhen"}
        if tree.kind == "sum":
            return self.b.expression("AggregateExpression", self.b.expression("Sum", *inputs))
        return self.b.expression(names[tree.kind], *inputs, **details.get(tree.kind, {}))

    def layer(self, trees: list[Tree]) -> None:
        self.made = {}
        self.node, self.ids = self.b.project(self.node, [(f"x{n}", self.expression(t)) for n, t in enumerate(trees)])

    def reported(self) -> list[Edges]:
        lineage = lineage_of(self.b.plan(self.node), self.node)
        assert not lineage.unknown
        return [frozenset((o.path[0], o.derivation.value) for o in lineage.columns[each]) for each in self.ids]


def expected(query: list[list[Tree]]) -> list[Edges]:
    below: list[Edges] = [frozenset([(f"c{n}", "IDENTITY")]) for n in range(COLUMNS)]
    for trees_of_layer in query:
        below = [known(each, below) for each in trees_of_layer]
    return below


@settings(max_examples=effort.examples(150))
@given(layers, st.permutations(range(COLUMNS)))
def test_columns_come_from_what_their_expressions_name_whatever_the_order_and_names(
    query: list[list[Tree]], order: list[int]
) -> None:
    written = Written(order)
    for each in query:
        written.layer(each)
    assert written.reported() == expected(query)


@settings(max_examples=effort.examples(75))
@given(layers, layers)
def test_a_union_has_the_origins_of_all_its_sides(one: list[list[Tree]], other: list[list[Tree]]) -> None:
    written = Written(list(range(COLUMNS)))
    table, columns = written.node, written.ids
    for each in one:
        written.layer(each)
    left, ids = written.node, written.ids
    written.node, written.ids = table, columns
    for each in other:
        written.layer(each)
    written.node, written.ids = written.b.node("Union", [left, written.node], ids), ids
    assert written.reported() == [a | b for a, b in zip(expected(one), expected(other), strict=True)]


@settings(max_examples=effort.examples(75))
@given(layers, trees)
def test_a_filter_names_all_that_its_condition_is_made_from_and_changes_no_column(
    query: list[list[Tree]], condition: Tree
) -> None:
    written = Written(list(range(COLUMNS)))
    for each in query:
        written.layer(each)
    written.made = {}
    filtered = written.b.filter(written.node, written.expression(condition))
    plan: Plan = written.b.plan(filtered)
    sources = {name for name, _ in known(condition, expected(query))}
    assert {(each.path[0], each.derivation.value) for each in lineage_of(plan, filtered).indirect} == {
        (name, "FILTER") for name in sources
    }
    assert lineage_of(plan, filtered).columns == lineage_of(plan, plan.nodes[filtered].inputs[0]).columns
