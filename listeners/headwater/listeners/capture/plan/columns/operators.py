"""What each operator makes of the columns and rows of those below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from headwater.listeners.capture.plan.columns.expressions import Expressions, Outcome
from headwater.listeners.capture.plan.columns.origins import NONE, How, Members, Origins
from headwater.listeners.capture.plan.columns.values import NOTHING, Part, Scope, Value, either, value
from headwater.listeners.capture.plan.tree import Expression, Node, Plan

PASSING: Final = frozenset(
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
MADE_HERE: Final = frozenset(["CommandResult", "EmptyRelation", "LocalRelation", "OneRowRelation", "Range"])
"""Leaves that read nothing."""
_AS_MANY_AS_WRITTEN: Final = frozenset(["CreateArray", "CreateMap"])
"""What a generator makes as many rows of, whatever is in it."""


class Work:
    """What operators have at hand: the plan, and what those below them gave."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.origins = Origins(plan)
        self.outcomes: dict[int, Outcome] = {}
        self.definitions = {n.args.get("id"): n.index for n in plan.nodes if n.name == "CTERelationDef"}
        self.expressions = Expressions(plan, self.origins, self.outcomes)
        self.unknown: dict[str, None] = {}

    def below(self, node: Node, place: int = 0) -> Outcome:
        return self.outcomes[node.inputs[place]]

    def deciding(self, references: Iterable[int], scope: Scope, how: How) -> Members:
        return self.expressions.members(references, scope, how)

    def columns(self, node: Node, scope: Scope) -> list[Value]:
        """What a node gives, in order."""
        return [scope.get(each, NOTHING) for each in node.output]


Operator: TypeAlias = Callable[[Work, Node], Outcome]


def is_leaf(node: Node) -> bool:
    """Whether rows come from outside of the plan here."""
    if node.inputs or node.name in MADE_HERE or node.name in OPERATORS or not node.output:
        return False
    return not node.name.startswith("Unresolved")


def added(below: Outcome, outputs: Iterable[int], values: Iterable[Value], rows: Members = NONE) -> Outcome:
    """What was there, and these columns beside it."""
    return Outcome({**below.scope, **dict(zip(outputs, values, strict=True))}, below.rows | rows)


def leaf(work: Work, node: Node) -> Outcome:
    """Each column is its own origin."""
    origins, plan = work.origins, work.plan
    columns = ((each, origins.column(node.index, (plan.attribute(each).name,))) for each in node.output)
    return Outcome({each: value(Part(frozenset([column]))) for each, column in columns})


def _project(work: Work, node: Node) -> Outcome:
    below = work.below(node)
    values = (work.expressions.value(each, below.scope) for each in node.expressions_of("projectList"))
    return Outcome(dict(zip(node.output, values, strict=True)), below.rows)


def _aggregate(work: Work, node: Node) -> Outcome:
    below = work.below(node)
    values = (work.expressions.value(each, below.scope) for each in node.expressions_of("aggregateExpressions"))
    groups = work.deciding(node.expressions_of("groupingExpressions"), below.scope, How.GROUP_BY)
    return Outcome(dict(zip(node.output, values, strict=True)), below.rows | groups)


def _window(work: Work, node: Node) -> Outcome:
    below = work.below(node)
    made = node.expressions_of("windowExpressions")
    return added(below, node.output[-len(made) :], [work.expressions.value(each, below.scope) for each in made])


def _filter(work: Work, node: Node) -> Outcome:
    return _decided(work, node, "condition", How.FILTER)


def _sort(work: Work, node: Node) -> Outcome:
    return _decided(work, node, "order", How.SORT)


def _deduplicate(work: Work, node: Node) -> Outcome:
    return _decided(work, node, "keys", How.GROUP_BY)


def _typed_filter(work: Work, node: Node) -> Outcome:
    """A function of the user's sees the columns as an object."""
    return _decided(work, node, "deserializer", How.FILTER)


def _decided(work: Work, node: Node, argument: str, how: How) -> Outcome:
    scope, rows = work.below(node)
    return Outcome(scope, rows | work.deciding(node.expressions_of(argument), scope, how))


def _distinct(work: Work, node: Node) -> Outcome:
    """Grouped by all that there is."""
    scope, rows = work.below(node)
    return Outcome(scope, rows | _all(work, node, scope, How.GROUP_BY))


def _all(work: Work, node: Node, scope: Scope, how: How) -> Members:
    return NONE.union(*(work.origins.lift(each.members, how) for each in work.columns(node, scope)))


def _join(work: Work, node: Node) -> Outcome:
    """LEFT SEMI and LEFT ANTI give nothing of the right side, which decides all the same."""
    left, right = work.below(node), work.below(node, 1)
    both = {**left.scope, **right.scope}
    references = [
        each for name in ("condition", "asOfCondition", "orderExpression") for each in node.expressions_of(name)
    ]
    rows = left.rows | right.rows | work.deciding(references, both, How.JOIN)
    return Outcome(left.scope if node.args.get("joinType") in {"LeftSemi", "LeftAnti"} else both, rows)


def _lateral_join(work: Work, node: Node) -> Outcome:
    left = work.below(node)
    query = work.plan.nodes[work.plan.expressions[node.expressions_of("right")[0]].details["plan"]]
    inner, resolved = work.outcomes[query.index], work.expressions.resolved
    made: Scope = {}
    for attribute, held in zip(query.output, work.columns(query, inner.scope), strict=True):
        parts = tuple(part._replace(members=resolved(part.members, left.scope)) for part in held.parts)
        made[attribute] = Value(parts, resolved(held.members, left.scope))
    both = {**left.scope, **made}
    rows = left.rows | resolved(inner.rows, left.scope)
    return Outcome(both, rows | work.deciding(node.expressions_of("condition"), both, How.JOIN))


def _union(work: Work, node: Node) -> Outcome:
    """By position, under the first child's ids."""
    below = [(work.plan.nodes[each], work.outcomes[each]) for each in _united(work.plan, node)]
    columns = [work.columns(child, outcome.scope) for child, outcome in below]
    values = (either(several) for several in zip(*columns, strict=True))
    rows = NONE.union(*(outcome.rows for _, outcome in below))
    return Outcome(dict(zip(node.output, values, strict=True)), rows)


def _united(plan: Plan, node: Node) -> list[int]:
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


def _compared(work: Work, node: Node) -> Outcome:
    """INTERSECT and EXCEPT: values are the left side's; which rows stay, is decided by all columns of both."""
    left, right = work.below(node), work.below(node, 1)
    sides = ((node.inputs[0], left), (node.inputs[1], right))
    compared = (_all(work, work.plan.nodes[each], outcome.scope, How.FILTER) for each, outcome in sides)
    return Outcome(left.scope, (left.rows | right.rows).union(*compared))


def _expand(work: Work, node: Node) -> Outcome:
    """Each row as often as there are projections: GROUPING SETS, UNPIVOT."""
    scope, rows = work.below(node)
    projections = [tuple(each["x"]) for each in node.args["projections"]]
    made: dict[int, Value] = {}
    values: Scope = {}
    for attribute, references in zip(node.output, zip(*projections, strict=True), strict=True):
        for each in references:
            if each not in made:
                made[each] = work.expressions.value(each, scope)
        values[attribute] = either(made[each] for each in dict.fromkeys(references))
    return Outcome(values, rows)


def _generate(work: Work, node: Node) -> Outcome:
    below = work.below(node)
    outputs = [-1 - each for each in node.expressions_of("generatorOutput")]
    reference = node.expressions_of("generator")[0]
    generator = work.plan.expressions[reference]
    if generator.name == "Stack":
        return added(below, outputs, _stacked(work, generator.inputs[1:], len(outputs), below.scope))
    rows = work.deciding([reference], below.scope, How.FILTER) if _makes_rows(work.plan, generator) else NONE
    return added(below, outputs, [work.expressions.value(reference, below.scope)] * len(outputs), rows)


def _makes_rows(plan: Plan, generator: Expression) -> bool:
    """Whether what is in its columns decides how many rows there are."""
    first = plan.expressions[generator.inputs[0]] if generator.inputs and generator.inputs[0] >= 0 else None
    return generator.name != "JsonTuple" and (first is None or first.name not in _AS_MANY_AS_WRITTEN)


def _stacked(work: Work, references: tuple[int, ...], width: int, scope: Scope) -> list[Value]:
    """`stack(n, a, b, c, d)`: n rows, filled one after the other."""
    rows = (references[n::width] for n in range(width))
    return [either(work.expressions.value(each, scope) for each in column) for column in rows]


def _with_ctes(work: Work, node: Node) -> Outcome:
    return work.outcomes[_main(node)]


def _main(node: Node) -> int:
    index = node.plan_of("plan")
    return node.inputs[-1] if index is None else index


def _cte(work: Work, node: Node) -> Outcome:
    """A reference has ids of its own for the columns of the definition."""
    defined = work.plan.nodes[work.definitions[node.args["cteId"]]]
    scope, rows = work.outcomes[defined.index]
    return Outcome(dict(zip(node.output, work.columns(defined, scope), strict=True)), rows)


def needed_by(work: Work, node: Node) -> list[int]:
    """The nodes that a node stands on, but for subqueries in its expressions."""
    if node.name == "WithCTE":
        return [_main(node)]
    if node.name == "CTERelationRef":
        found = work.definitions.get(node.args["cteId"])
        return [] if found is None else [found]
    return _united(work.plan, node) if node.name == "Union" else list(node.inputs)


OPERATORS: Final[Mapping[str, Operator]] = {
    "Aggregate": _aggregate,
    "AsOfJoin": _join,
    "CTERelationRef": _cte,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Distinct": _distinct,
    "Except": _compared,
    "Expand": _expand,
    "Filter": _filter,
    "Generate": _generate,
    "Intersect": _compared,
    "Join": _join,
    "LateralJoin": _lateral_join,
    "Project": _project,
    "Sort": _sort,
    "TypedFilter": _typed_filter,
    "Union": _union,
    "Window": _window,
    "WithCTE": _with_ctes,
}
