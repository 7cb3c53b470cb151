"""Operators that hand rows to a function of the user's, of which nothing is known but what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.listeners.capture.plan.columns.expressions import Outcome
from headwater.listeners.capture.plan.columns.operators import Operator, Work
from headwater.listeners.capture.plan.columns.origins import NONE, How, Members
from headwater.listeners.capture.plan.columns.values import Part, Value, value
from headwater.listeners.capture.plan.tree import Node

_KEYS: Final = ("groupingAttributes", "leftGroup", "rightGroup")


def _of_all_columns(work: Work, node: Node) -> Outcome:
    """Whatever it gives may be made from all columns below."""
    given = [each for place, child in enumerate(node.inputs) for each in _columns(work, node, place, child)]
    members = NONE.union(*(each.members for each in given))
    return _made(work, node, members, node.output)


def _columns(work: Work, node: Node, place: int, child: int) -> list[Value]:
    return work.columns(work.plan.nodes[child], work.below(node, place).scope)


def _of_grouped_columns(work: Work, node: Node) -> Outcome:
    made = _of_all_columns(work, node)
    return made._replace(rows=made.rows | _groups(work, node))


def _groups(work: Work, node: Node) -> Members:
    """Of two sides, the first columns of each are what they are grouped by."""
    scope = {}
    for place in range(len(node.inputs)):
        scope.update(work.below(node, place).scope)
    references = [each for name in _KEYS for each in node.expressions_of(name)]
    for place, name in enumerate(("leftGroupingLen", "rightGroupingLen")):
        count = node.args.get(name)
        if isinstance(count, int) and place < len(node.inputs):
            references += [-1 - each for each in work.plan.nodes[node.inputs[place]].output[:count]]
    return work.deciding(references, scope, How.GROUP_BY)


def _of_deserialized(work: Work, node: Node) -> Outcome:
    """Objects are made from some columns; what the function gives, from those."""
    scope = {}
    for place in range(len(node.inputs)):
        scope.update(work.below(node, place).scope)
    names = [name for name in node.args if name.lower().endswith("deserializer")]
    references = [each for name in names for each in node.expressions_of(name)]
    members = work.deciding(references, scope, How.TRANSFORMATION)
    made = _made(work, node, members, node.output)
    return made._replace(rows=made.rows | _groups(work, node))


def _beside(work: Work, node: Node) -> Outcome:
    """Keys that a function makes stand beside the columns they are made from."""
    below = work.below(node)
    known = [each for each in node.output if each in below.scope]
    members = work.deciding(node.expressions_of("deserializer"), below.scope, How.TRANSFORMATION)
    made = _made(work, node, members, tuple(each for each in node.output if each not in below.scope))
    return Outcome({**{each: below.scope[each] for each in known}, **made.scope}, made.rows)


def _made(work: Work, node: Node, members: Members, outputs: tuple[int, ...]) -> Outcome:
    """All of them the same value, so that a thousand columns by a thousand cost no more than one."""
    found: Value = value(Part(work.origins.lift(members, How.TRANSFORMATION), f"{_name(work, node)}(…)"))
    rows = NONE.union(*(work.below(node, place).rows for place in range(len(node.inputs))))
    return Outcome(dict.fromkeys(outputs, found), rows)


def _name(work: Work, node: Node) -> str:
    """The user's name for the function, where there is one, or what it is for Spark."""
    for reference in node.expressions_of("functionExpr"):
        told = work.plan.expressions[reference].details.get("function") if reference >= 0 else None
        if told:
            return str(told)
    return node.name[0].lower() + node.name[1:]


FUNCTIONS: Final[Mapping[str, Operator]] = {
    **dict.fromkeys(["AppendColumns", "AppendColumnsWithObject"], _beside),
    **dict.fromkeys(
        [
            "MapElements",
            "MapInArrow",
            "MapInPandas",
            "MapPartitions",
            "MapPartitionsInR",
            "MapPartitionsInRWithArrow",
            "PythonMapInArrow",
            "ScriptTransformation",
            "SerializeFromObject",
        ],
        _of_all_columns,
    ),
    **dict.fromkeys(
        ["FlatMapGroupsInPandas", "FlatMapCoGroupsInPandas", "FlatMapGroupsInPandasWithState"], _of_grouped_columns
    ),
    **dict.fromkeys(
        [
            "CoGroup",
            "DeserializeToObject",
            "FlatMapGroupsInR",
            "FlatMapGroupsInRWithArrow",
            "FlatMapGroupsWithState",
            "MapGroups",
        ],
        _of_deserialized,
    ),
}
