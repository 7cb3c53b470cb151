"""The commands that change rows one by one, each read into the same: a target, assignments and conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from headwater.events.column_lineage import Derivation
from headwater.listeners.capture.plan.columns.analysis import Analysis, RowChangesReader, lineage_of_brief_plan
from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, ColumnOrigin, DerivationRank, QueryLineage
from headwater.listeners.capture.plan.columns.row_changes import (
    ACTIONS,
    Assignment,
    RowChanges,
    argument,
    merge_alternatives,
    read_clauses,
)
from headwater.listeners.capture.plan.columns.values import ColumnValue, Scope, merge_values
from headwater.listeners.capture.plan.tree import Expression, Plan, PlanNode


def merge_lineage(plan: Plan, command: int, brought: Mapping[str, RowChangesReader]) -> QueryLineage:
    """The lineage of an UPDATE, DELETE or MERGE, in whatever form: `fields` has what is assigned.

    Conditions are indirect: what rows are matched by is JOIN, all else FILTER. What isn't assigned has no edges, and
    neither has a column that is set to itself. A command that isn't known is reported in `unknown`. `brought` reads the
    commands that aren't Spark's own, by their names.
    """
    node = plan.nodes[command]
    if plan.brief is not None:
        return lineage_of_brief_plan(plan, command)
    analysis = Analysis(plan, row_changes={**brought, **_READERS})
    reader = analysis.row_changes.get(node.name)
    if reader is None:
        return QueryLineage(unknown=(node.class_name or node.name,))
    changes = reader(analysis, node)
    return QueryLineage(
        indirect=analysis.origins_of_rows(changes.rows),
        leaves=analysis.all_leaves(),
        unknown=analysis.unknown(),
        fields=_fields(analysis, changes),
    )


def _fields(analysis: Analysis, changes: RowChanges) -> dict[tuple[str, ...], tuple[ColumnOrigin, ...]]:
    """By the target's columns in their order."""
    assigned: dict[tuple[str, ...], list[ColumnValue]] = {}
    for path, reference, scope in _unfolded(analysis, changes.assignments):
        assigned.setdefault(path, []).append(analysis.work.expressions.value(reference, scope))
    places = {analysis.plan.attribute(attribute).name: n for n, attribute in enumerate(changes.target)}
    own = _leaves_of(analysis, changes.target)
    found: dict[tuple[str, ...], tuple[ColumnOrigin, ...]] = {}
    for path in sorted(assigned, key=lambda path: (places.get(path[0], len(places)), path)):
        origins = tuple(
            origin for origin in analysis.origins_of(merge_values(assigned[path])) if not _is_itself(origin, path, own)
        )
        if origins:
            found[path] = origins
    return found


def _unfolded(analysis: Analysis, assignments: Iterable[Assignment]) -> Iterator[Assignment]:
    """A struct that is put together is assigned field by field: Spark writes `set a.b = …` so."""
    waiting = list(reversed(list(assignments)))
    while waiting:
        target, reference, scope = waiting.pop()
        fields = analysis.work.expressions.struct_fields(reference, scope)
        if fields is None:
            yield Assignment(target, reference, scope)
        else:
            waiting.extend(Assignment((*target, name), reference, place) for name, reference, place in reversed(fields))


def _is_itself(origin: ColumnOrigin, path: tuple[str, ...], own: frozenset[int]) -> bool:
    return origin.derivation is Derivation.IDENTITY and origin.path == path and origin.leaf in own


def _leaves_of(analysis: Analysis, attributes: tuple[int, ...]) -> frozenset[int]:
    """Where the target itself is read."""
    return frozenset(n for n in analysis.leaves if not {*attributes}.isdisjoint(analysis.plan.nodes[n].output))


def merge_changes(actions: tuple[str, ...], target: str, source: str, condition: str) -> RowChangesReader:
    """A MERGE that names its target, its source and what it does."""

    def read(analysis: Analysis, node: PlanNode) -> RowChanges:
        plan, work = analysis.plan, analysis.work
        sides = [side for side in (node.plan_of(target), node.plan_of(source)) if side is not None]
        done = [*read_clauses(plan, node, actions)]
        matching = node.expressions_of(condition)
        conditions = [ref for action in done for ref in argument(action, "condition")]
        analysis.look_at(sides, [*matching, *conditions, *(ref for action in done for ref in action.inputs)])
        scope = _scope_of(analysis, sides)
        rows = NO_MEMBERS.union(*(work.outcomes[side].rows for side in sides))
        rows |= work.deciding_members(matching, scope, DerivationRank.JOIN) | work.deciding_members(
            conditions, scope, DerivationRank.FILTER
        )
        assignments = (assignment for action in done for assignment in _assignments(plan, action, scope))
        return RowChanges(plan.nodes[sides[0]].output, tuple(assignments), rows)

    return read


def _assignments(plan: Plan, action: Expression, scope: Scope) -> Iterator[Assignment]:
    for reference in (*argument(action, "assignments"), *argument(action, "actions")):
        expression = plan.expressions[reference]
        if expression.name == "Assignment":
            yield _assignment(plan, expression, scope)
        elif "targetColNameParts" in expression.details.get("args", {}):
            yield Assignment(tuple(expression.details["args"]["targetColNameParts"]), expression.inputs[0], scope)


def _assignment(plan: Plan, expression: Expression, scope: Scope) -> Assignment:
    return Assignment(_path(plan, argument(expression, "key")[0]), argument(expression, "value")[0], scope)


def _path(plan: Plan, key: int) -> tuple[str, ...]:
    """The column, or the field of it, that an expression over the target names."""
    names: list[str] = []
    while key >= 0:
        expression = plan.expressions[key]
        if expression.name == "GetStructField":
            names.append(expression.details["field"])
        key = expression.inputs[0]
    return (plan.attribute(-1 - key).name, *reversed(names))


def _scope_of(analysis: Analysis, nodes: Iterable[int]) -> Scope:
    scope: Scope = {}
    for index in nodes:
        scope.update(analysis.work.outcomes[index].scope)
    return scope


def update_changes(table: str) -> RowChangesReader:
    """An UPDATE or DELETE that names its table, its condition and, perhaps, its assignments."""

    def read(analysis: Analysis, node: PlanNode) -> RowChanges:
        plan, index = analysis.plan, node.plan_of(table)
        if index is None:
            return RowChanges(())
        condition, keyed = node.expressions_of("condition"), node.expressions_of("assignments")
        positional = node.expressions_of("updateExpressions")
        analysis.look_at([index], [*condition, *keyed, *positional])
        scope, rows = analysis.work.outcomes[index]
        target = plan.nodes[index].output
        assignments = [_assignment(plan, plan.expressions[assignment], scope) for assignment in keyed]
        for attribute, reference in zip(target, positional, strict=False):
            assignments.append(Assignment((plan.attribute(attribute).name,), reference, scope))
        return RowChanges(
            target, tuple(assignments), rows | analysis.work.deciding_members(condition, scope, DerivationRank.FILTER)
        )

    return read


def _rewrite_changes(analysis: Analysis, node: PlanNode) -> RowChanges:
    """ReplaceData and WriteDelta: the query gives rows as they shall be, under the names of the target's columns."""
    plan, query = analysis.plan, node.plan_of("query")
    relation = node.plan_of("originalTable")
    if query is None or relation is None:
        return RowChanges(())
    is_merge = any(below.name == "MergeRows" for below in plan.subtree(query))
    condition = () if is_merge else node.expressions_of("condition")
    analysis.work.expressions.assumed = frozenset(condition)
    analysis.look_at([query], condition)
    target = plan.nodes[relation].output
    if not _leaves_of(analysis, target):
        analysis.look_at([relation])
    scope = _scope_of(analysis, analysis.leaves)
    rows = analysis.work.outcomes[query].rows | analysis.work.deciding_members(condition, scope, DerivationRank.FILTER)
    names = {plan.attribute(attribute).name for attribute in target}
    assignments = (
        alternative for alternative in _column_alternatives(analysis, query) if alternative.target[0] in names
    )
    return RowChanges(target, tuple(assignments), rows)


def _column_alternatives(analysis: Analysis, query: int) -> Iterator[Assignment]:
    """What each of a query's columns may be, one by one: whatever is put together from several ways is taken apart."""
    plan, waiting = analysis.plan, [query]
    while waiting:
        node = plan.nodes[waiting.pop()]
        if node.name == "Union":
            waiting.extend(reversed(node.inputs))
            continue
        ways = (
            _ALTERNATIVES[node.name](plan, node)
            if node.name in _ALTERNATIVES
            else [tuple(-1 - attribute for attribute in node.output)]
        )
        scope = analysis.work.outcomes[node.inputs[0] if node.name in _ALTERNATIVES else node.index].scope
        for way in ways:
            for attribute, reference in zip(node.output, way, strict=True):
                yield Assignment((plan.attribute(attribute).name,), reference, scope)


def _projections(plan: Plan, node: PlanNode) -> list[tuple[int, ...]]:
    return [tuple(projection["x"]) for projection in node.args["projections"]]


def _single_projection(plan: Plan, node: PlanNode) -> list[tuple[int, ...]]:
    return [node.expressions_of("projectList")]


def wrapped_changes(argument: str) -> RowChangesReader:
    """A command that holds the plan of the one that it takes the place of."""

    def read(analysis: Analysis, node: PlanNode) -> RowChanges:
        index = node.plan_of(argument)
        inner = None if index is None else analysis.plan.nodes[index]
        reader = None if inner is None else analysis.row_changes.get(inner.name)
        return RowChanges(()) if inner is None or reader is None else reader(analysis, inner)

    return read


def delete_by_query(query: str) -> RowChangesReader:
    """A DELETE that holds a query for the rows that go."""

    def read(analysis: Analysis, node: PlanNode) -> RowChanges:
        index = node.plan_of(query)
        if index is None:
            return RowChanges(())
        analysis.look_at([index])
        return RowChanges(analysis.plan.nodes[index].output, (), analysis.work.outcomes[index].rows)

    return read


_ALTERNATIVES: Final[Mapping[str, Callable[[Plan, PlanNode], list[tuple[int, ...]]]]] = {
    "Expand": _projections,
    "MergeRows": merge_alternatives,
    "Project": _single_projection,
}
_READERS: Final[Mapping[str, RowChangesReader]] = {
    "DeleteFromTable": update_changes("table"),
    "MergeIntoTable": merge_changes(ACTIONS, "targetTable", "sourceTable", "mergeCondition"),
    "ReplaceData": _rewrite_changes,
    "UpdateTable": update_changes("table"),
    "WriteDelta": _rewrite_changes,
}
