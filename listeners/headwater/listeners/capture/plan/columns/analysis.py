"""A walk over the nodes that a query stands on, from the leaves up: the plan is written in that order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from headwater.listeners.capture.plan.columns.expressions import OperatorOutput
from headwater.listeners.capture.plan.columns.functions import FUNCTIONS
from headwater.listeners.capture.plan.columns.operators import (
    GENERATED_LEAVES,
    OPERATORS,
    PASS_THROUGH,
    Operator,
    OperatorContext,
    inputs_of,
    is_leaf,
    read_leaf,
)
from headwater.listeners.capture.plan.columns.origins import ColumnOrigin, Members, QueryLineage
from headwater.listeners.capture.plan.columns.row_changes import RowChanges, merge_rows
from headwater.listeners.capture.plan.columns.values import NO_VALUE, ColumnValue
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_RULES: dict[str, Operator] = {**OPERATORS, **FUNCTIONS, "MergeRows": merge_rows}
RowChangesReader: TypeAlias = "Callable[[Analysis, PlanNode], RowChanges]"
_NO_READERS: Final[Mapping[str, RowChangesReader]] = MappingProxyType({})


class Analysis:
    """Of one plan; what was found of a node serves all questions. `ends` are nodes that count as leaves: what is below
    them isn't looked at."""

    def __init__(
        self, plan: Plan, ends: Collection[int] = (), row_changes: Mapping[str, RowChangesReader] = _NO_READERS
    ) -> None:
        self.plan = plan
        self.ends = ends
        self.row_changes = row_changes
        """By the name of a command, what reads how it changes rows."""
        self.work = OperatorContext(plan)
        self.leaves: dict[int, None] = {}
        self._origins_by_value: dict[int, tuple[ColumnValue, tuple[ColumnOrigin, ...]]] = {}

    def look_at(self, nodes: Iterable[int], expressions: Iterable[int] = ()) -> None:
        """Find what these nodes give, and the subqueries in these expressions."""
        needed: set[int] = set()
        waiting = [*nodes, *self._subqueries(expressions)]
        while waiting:
            index = waiting.pop()
            if index in needed:
                continue
            needed.add(index)
            waiting.extend(self._children_of(self.plan.nodes[index]))
        for index in sorted(needed.difference(self.work.outcomes)):
            self.work.outcomes[index] = self._outcome(self.plan.nodes[index])

    def lineage(self, query: int) -> QueryLineage:
        node = self.plan.nodes[query]
        self.look_at([query])
        scope, rows = self.work.outcomes[query]
        columns = {attribute: self.origins_of(scope.get(attribute, NO_VALUE)) for attribute in node.output}
        return QueryLineage(columns, self.origins_of_rows(rows), self.all_leaves(), self.unknown())

    def origins_of(self, value: ColumnValue) -> tuple[ColumnOrigin, ...]:
        """In order, each once; the same object for the same value."""
        known = self._origins_by_value.get(id(value))
        if known is not None:
            return known[1]
        found: dict[ColumnOrigin, None] = {}
        for part in value.parts:
            found.update(dict.fromkeys(self.work.origins.column_origins(self._ordered(part.members), part.text)))
        origins = tuple(found)
        self._origins_by_value[id(value)] = (value, origins)  # holds the value, so that its id stays its own
        return origins

    def origins_of_rows(self, rows: Members) -> tuple[ColumnOrigin, ...]:
        """What decides about rows is given without a text: it would be as many edges as conditions."""
        return tuple(self.work.origins.column_origins(self._ordered(rows), None))

    def all_leaves(self) -> tuple[int, ...]:
        return tuple(sorted(self.leaves))

    def unknown(self) -> tuple[str, ...]:
        missing = (f"column {name}" for name in self.work.expressions.missing)
        return tuple(dict.fromkeys((*self.work.unknown, *missing)))

    def _ordered(self, members: Members) -> list[int]:
        """Without attributes of a query around this one: there is none."""
        outer = self.work.origins.outer(members)
        for member in outer:
            self.work.expressions.missing[self.work.origins.place(member)[1][0]] = None
        return self.work.origins.in_order(members.difference(outer))

    def _outcome(self, node: PlanNode) -> OperatorOutput:
        rule = _RULES.get(node.name)
        try:
            if node.index in self.ends:
                self.leaves[node.index] = None
                return read_leaf(self.work, node)
            if rule is not None:
                return rule(self.work, node)
            if node.name in PASS_THROUGH:
                return self.work.input_of(node)
            if is_leaf(node):
                self.leaves[node.index] = None
                return read_leaf(self.work, node)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            pass  # it isn't written as we know it
        if node.name not in GENERATED_LEAVES:
            self.work.unknown[node.class_name or node.name] = None
        return OperatorOutput(dict.fromkeys(node.output, NO_VALUE))

    def _children_of(self, node: PlanNode) -> Iterator[int]:
        if node.index in self.ends:
            return
        yield from inputs_of(self.work, node)
        if self._has_subqueries:
            yield from self._subqueries(_references(node.args))

    @cached_property
    def _has_subqueries(self) -> bool:
        return any("plan" in expression.details for expression in self.plan.expressions)

    def _subqueries(self, references: Iterable[int]) -> Iterator[int]:
        """Plans within expressions, by their nodes."""
        waiting = [reference for reference in references if reference >= 0]
        seen: set[int] = set()
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            expression = self.plan.expressions[index]
            if "plan" in expression.details:
                yield expression.details["plan"]
            waiting.extend(child for child in expression.inputs if child >= 0)


def lineage_of_brief_plan(plan: Plan, query: int, ends: Collection[int] = ()) -> QueryLineage:
    """What is read, of a plan that is written without its columns."""
    wanted = plan.only(dict.fromkeys(ends, ())).subtree(query)
    leaves = tuple(node.index for node in wanted if node.index in ends or is_leaf(node))
    return QueryLineage(leaves=leaves, unknown=(f"a plan of more than {plan.brief:,} columns and expressions",))


def _references(arguments: Any) -> Iterator[int]:
    """All expressions that a node's arguments name, however deep they stand."""
    waiting = [arguments]
    while waiting:
        given = waiting.pop()
        if isinstance(given, list):
            waiting.extend(given)
        elif isinstance(given, dict):
            found = given.get("x")
            if isinstance(found, int):
                yield found
            elif isinstance(found, list):
                yield from found
            else:
                waiting.extend(given.values())


def lineage_of(plan: Plan, query: int, ends: Collection[int] = ()) -> QueryLineage:
    """Of the columns that this node gives. Never raises for a plan that was parsed, however odd. Nodes in `ends` count
    as leaves."""
    if plan.brief is not None:
        return lineage_of_brief_plan(plan, query, ends)
    return Analysis(plan, ends).lineage(query)
