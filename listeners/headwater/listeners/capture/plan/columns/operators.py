"""What each operator makes of the columns and rows of those below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from headwater.listeners.capture.plan.columns.expressions import Expressions, OperatorOutput
from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, DerivationRank, Members, OriginSets
from headwater.listeners.capture.plan.columns.values import (
    NO_VALUE,
    ColumnValue,
    Scope,
    ValuePart,
    make_value,
    merge_values,
)
from headwater.listeners.capture.plan.tree import Expression, Plan, PlanNode

PASS_THROUGH: Final = frozenset(
    [
        "CollectMetrics",
        "CTERelationDef",
        "EventTimeWatermark",
        "GlobalLimit",
        "LocalLimit",
        "Offset",
        "PipeOperator",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "ReturnAnswer",
        "Sample",
        "SQLFunctionNode",
        "Subquery",
        "SubqueryAlias",
        "Tail",
        "UnresolvedHint",
        "View",
        "WriteFiles",
    ]
)
"""Give the columns of their child as they are, and choose no rows by what is in them."""
GENERATED_LEAVES: Final = frozenset(
    ["CommandResult", "EmptyRelation", "LocalRelation", "OneRowRelation", "Range", "UnionLoopRef"]
)
"""Leaves that read nothing, or what the plan has read above them: a recursive query refers to itself."""
_FIXED_SIZE: Final = frozenset(["CreateArray", "CreateMap"])
"""What a generator makes as many rows of, whatever is in it."""


class OperatorContext:
    """What operators have at hand: the plan, and what those below them gave."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.origins = OriginSets(plan)
        self.outcomes: dict[int, OperatorOutput] = {}
        self.definitions = {n.args.get("id"): n.index for n in plan.nodes if n.name == "CTERelationDef"}
        self.expressions = Expressions(plan, self.origins, self.outcomes)
        self.unknown: dict[str, None] = {}

    def input_of(self, node: PlanNode, place: int = 0) -> OperatorOutput:
        return self.outcomes[node.inputs[place]]

    def deciding_members(self, references: Iterable[int], scope: Scope, how: DerivationRank) -> Members:
        return self.expressions.members(references, scope, how)

    def columns(self, node: PlanNode, scope: Scope) -> list[ColumnValue]:
        """What a node gives, in order."""
        return [scope.get(attribute, NO_VALUE) for attribute in node.output]


Operator: TypeAlias = Callable[[OperatorContext, PlanNode], OperatorOutput]


def is_leaf(node: PlanNode) -> bool:
    """Whether rows come from outside of the plan here."""
    if node.inputs or node.name in GENERATED_LEAVES or node.name in OPERATORS or not node.output:
        return False
    return not node.name.startswith("Unresolved")


def add_columns(
    below: OperatorOutput, outputs: Iterable[int], values: Iterable[ColumnValue], rows: Members = NO_MEMBERS
) -> OperatorOutput:
    """What was there, and these columns beside it."""
    return OperatorOutput({**below.scope, **dict(zip(outputs, values, strict=True))}, below.rows | rows)


def read_leaf(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """Each column is its own origin."""
    origins, plan = work.origins, work.plan
    columns = ((attribute, origins.column(node.index, (plan.attribute(attribute).name,))) for attribute in node.output)
    return OperatorOutput({attribute: make_value(ValuePart(frozenset([column]))) for attribute, column in columns})


def _project(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    below = work.input_of(node)
    values = (work.expressions.value(reference, below.scope) for reference in node.expressions_of("projectList"))
    return OperatorOutput(dict(zip(node.output, values, strict=True)), below.rows)


def _aggregate(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    below = work.input_of(node)
    values = (
        work.expressions.value(reference, below.scope) for reference in node.expressions_of("aggregateExpressions")
    )
    groups = work.deciding_members(node.expressions_of("groupingExpressions"), below.scope, DerivationRank.GROUP_BY)
    return OperatorOutput(dict(zip(node.output, values, strict=True)), below.rows | groups)


def _window(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    below = work.input_of(node)
    made = node.expressions_of("windowExpressions")
    return add_columns(
        below, node.output[-len(made) :], [work.expressions.value(reference, below.scope) for reference in made]
    )


def _attach_sequence(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """A number for each row, which pandas on Spark takes for an index."""
    below = work.input_of(node)
    made = [attribute for attribute in node.output if attribute not in below.scope]
    return add_columns(below, made, [NO_VALUE] * len(made))


def _filter(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    return _add_deciding(work, node, "condition", DerivationRank.FILTER)


def _sort(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    return _add_deciding(work, node, "order", DerivationRank.SORT)


def _deduplicate(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    return _add_deciding(work, node, "keys", DerivationRank.GROUP_BY)


def _typed_filter(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """A function of the user's sees the columns as an object."""
    return _add_deciding(work, node, "deserializer", DerivationRank.FILTER)


def _add_deciding(work: OperatorContext, node: PlanNode, argument: str, how: DerivationRank) -> OperatorOutput:
    scope, rows = work.input_of(node)
    return OperatorOutput(scope, rows | work.deciding_members(node.expressions_of(argument), scope, how))


def _distinct(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """Grouped by all that there is."""
    scope, rows = work.input_of(node)
    return OperatorOutput(scope, rows | _add_deciding_columns(work, node, scope, DerivationRank.GROUP_BY))


def _add_deciding_columns(work: OperatorContext, node: PlanNode, scope: Scope, how: DerivationRank) -> Members:
    return NO_MEMBERS.union(*(work.origins.lift(value.members, how) for value in work.columns(node, scope)))


def _join(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """LEFT SEMI and LEFT ANTI give nothing of the right side, which decides all the same."""
    left, right = work.input_of(node), work.input_of(node, 1)
    both = {**left.scope, **right.scope}
    references = [
        reference
        for name in ("condition", "asOfCondition", "orderExpression")
        for reference in node.expressions_of(name)
    ]
    rows = left.rows | right.rows | work.deciding_members(references, both, DerivationRank.JOIN)
    return OperatorOutput(left.scope if node.args.get("joinType") in {"LeftSemi", "LeftAnti"} else both, rows)


def _lateral_join(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    left = work.input_of(node)
    query = work.plan.nodes[work.plan.expressions[node.expressions_of("right")[0]].details["plan"]]
    inner, resolved = work.outcomes[query.index], work.expressions.resolved
    made: Scope = {}
    for attribute, held in zip(query.output, work.columns(query, inner.scope), strict=True):
        parts = tuple(part._replace(members=resolved(part.members, left.scope)) for part in held.parts)
        made[attribute] = ColumnValue(parts, resolved(held.members, left.scope))
    both = {**left.scope, **made}
    rows = left.rows | resolved(inner.rows, left.scope)
    return OperatorOutput(
        both, rows | work.deciding_members(node.expressions_of("condition"), both, DerivationRank.JOIN)
    )


def _union(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """By position, under the first child's ids."""
    below = [(work.plan.nodes[index], work.outcomes[index]) for index in _union_inputs(work.plan, node)]
    columns = [work.columns(child, outcome.scope) for child, outcome in below]
    values = (merge_values(several) for several in zip(*columns, strict=True))
    rows = NO_MEMBERS.union(*(outcome.rows for _, outcome in below))
    return OperatorOutput(dict(zip(node.output, values, strict=True)), rows)


def _union_inputs(plan: Plan, node: PlanNode) -> list[int]:
    """What is united: a UNION of a UNION is one, or the sets of a long chain would be made again at each step."""
    found: list[int] = []
    waiting = list(reversed(node.inputs))
    while waiting:
        child = plan.nodes[waiting.pop()]
        if child.name == "Union":
            waiting.extend(reversed(child.inputs))
        else:
            found.append(child.index)
    return found


def _set_operation(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """INTERSECT and EXCEPT: values are the left side's; which rows stay, is decided by all columns of both."""
    left, right = work.input_of(node), work.input_of(node, 1)
    sides = ((node.inputs[0], left), (node.inputs[1], right))
    compared = (
        _add_deciding_columns(work, work.plan.nodes[index], outcome.scope, DerivationRank.FILTER)
        for index, outcome in sides
    )
    return OperatorOutput(left.scope, (left.rows | right.rows).union(*compared))


def _expand(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """Each row as often as there are projections: GROUPING SETS, UNPIVOT."""
    scope, rows = work.input_of(node)
    projections = [tuple(projection["x"]) for projection in node.args["projections"]]
    made: dict[int, ColumnValue] = {}
    values: Scope = {}
    for attribute, references in zip(node.output, zip(*projections, strict=True), strict=True):
        for reference in references:
            if reference not in made:
                made[reference] = work.expressions.value(reference, scope)
        values[attribute] = merge_values(made[reference] for reference in dict.fromkeys(references))
    return OperatorOutput(values, rows)


def _generate(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    below = work.input_of(node)
    outputs = [-1 - reference for reference in node.expressions_of("generatorOutput")]
    reference = node.expressions_of("generator")[0]
    generator = work.plan.expressions[reference]
    if generator.name == "Stack":
        return add_columns(below, outputs, _stacked(work, generator.inputs[1:], len(outputs), below.scope))
    rows = (
        work.deciding_members([reference], below.scope, DerivationRank.FILTER)
        if _makes_rows(work.plan, generator)
        else NO_MEMBERS
    )
    values = _of_array(work, generator, outputs, below.scope)
    return add_columns(below, outputs, values or [work.expressions.value(reference, below.scope)] * len(outputs), rows)


def _of_array(
    work: OperatorContext, generator: Expression, outputs: list[int], scope: Scope
) -> list[ColumnValue] | None:
    """Rows of structs that are listed: `explode(array(struct(…), struct(…)))`, `inline(array(…))`. None of others."""
    array = work.plan.expressions[generator.inputs[0]] if generator.inputs and generator.inputs[0] >= 0 else None
    if array is None or array.name != "CreateArray" or generator.name not in {"Explode", "Inline"}:
        return None
    element = merge_values(work.expressions.value(reference, scope) for reference in array.inputs)
    if element.struct is None:
        return None
    if generator.name == "Explode":
        return [element]
    return [work.expressions.field(element, (work.plan.attribute(attribute).name,)) for attribute in outputs]


def _makes_rows(plan: Plan, generator: Expression) -> bool:
    """Whether what is in its columns decides how many rows there are."""
    first = plan.expressions[generator.inputs[0]] if generator.inputs and generator.inputs[0] >= 0 else None
    return generator.name != "JsonTuple" and (first is None or first.name not in _FIXED_SIZE)


def _stacked(work: OperatorContext, references: tuple[int, ...], width: int, scope: Scope) -> list[ColumnValue]:
    """`stack(n, a, b, c, d)`: n rows, filled one after the other."""
    rows = (references[n::width] for n in range(width))
    return [merge_values(work.expressions.value(reference, scope) for reference in column) for column in rows]


def _with_ctes(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    return work.outcomes[_main(node)]


def _main(node: PlanNode) -> int:
    index = node.plan_of("plan")
    return node.inputs[-1] if index is None else index


def _cte(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """A reference has ids of its own for the columns of the definition."""
    defined = work.plan.nodes[work.definitions[node.args["cteId"]]]
    scope, rows = work.outcomes[defined.index]
    return OperatorOutput(dict(zip(node.output, work.columns(defined, scope), strict=True)), rows)


def inputs_of(work: OperatorContext, node: PlanNode) -> list[int]:
    """The nodes that a node stands on, but for subqueries in its expressions."""
    if node.name == "WithCTE":
        return [_main(node)]
    if node.name == "CTERelationRef":
        found = work.definitions.get(node.args["cteId"])
        return [] if found is None else [found]
    return _union_inputs(work.plan, node) if node.name == "Union" else list(node.inputs)


OPERATORS: Final[Mapping[str, Operator]] = {
    "Aggregate": _aggregate,
    "AsOfJoin": _join,
    "AttachDistributedSequence": _attach_sequence,
    "CTERelationRef": _cte,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Distinct": _distinct,
    "Except": _set_operation,
    "Expand": _expand,
    "Filter": _filter,
    "Generate": _generate,
    "Intersect": _set_operation,
    "Join": _join,
    "LateralJoin": _lateral_join,
    "Project": _project,
    "Sort": _sort,
    "TypedFilter": _typed_filter,
    "Union": _union,
    "Window": _window,
    "WithCTE": _with_ctes,
}
