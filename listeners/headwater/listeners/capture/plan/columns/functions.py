"""Operators that hand rows to a function of the user's, of which nothing is known but what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.listeners.capture.plan.columns.expressions import OperatorOutput
from headwater.listeners.capture.plan.columns.operators import Operator, OperatorContext
from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, DerivationRank, Members
from headwater.listeners.capture.plan.columns.values import ColumnValue, ValuePart, make_value
from headwater.listeners.capture.plan.tree import PlanNode

_KEYS: Final = ("groupingAttributes", "leftGroup", "rightGroup")


def _from_all_columns(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """Whatever it gives may be made from all columns below."""
    given = [column for place, child in enumerate(node.inputs) for column in _columns(work, node, place, child)]
    members = NO_MEMBERS.union(*(value.members for value in given))
    return _function_output(work, node, members, node.output)


def _columns(work: OperatorContext, node: PlanNode, place: int, child: int) -> list[ColumnValue]:
    return work.columns(work.plan.nodes[child], work.input_of(node, place).scope)


def _from_grouped_columns(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    made = _from_all_columns(work, node)
    return made._replace(rows=made.rows | _groups(work, node))


def _groups(work: OperatorContext, node: PlanNode) -> Members:
    """Of two sides, the first columns of each are what they are grouped by."""
    scope = {}
    for place in range(len(node.inputs)):
        scope.update(work.input_of(node, place).scope)
    references = [reference for name in _KEYS for reference in node.expressions_of(name)]
    for place, name in enumerate(("leftGroupingLen", "rightGroupingLen")):
        count = node.args.get(name)
        if isinstance(count, int) and place < len(node.inputs):
            references += [-1 - attribute for attribute in work.plan.nodes[node.inputs[place]].output[:count]]
    return work.deciding_members(references, scope, DerivationRank.GROUP_BY)


def _from_deserialized_columns(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """Objects are made from some columns; what the function gives, from those."""
    scope = {}
    for place in range(len(node.inputs)):
        scope.update(work.input_of(node, place).scope)
    names = [name for name in node.args if name.lower().endswith("deserializer")]
    references = [reference for name in names for reference in node.expressions_of(name)]
    members = work.deciding_members(references, scope, DerivationRank.TRANSFORMATION)
    made = _function_output(work, node, members, node.output)
    return made._replace(rows=made.rows | _groups(work, node))


def _append_columns(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """Keys that a function makes stand beside the columns they are made from."""
    below = work.input_of(node)
    known = [attribute for attribute in node.output if attribute in below.scope]
    members = work.deciding_members(node.expressions_of("deserializer"), below.scope, DerivationRank.TRANSFORMATION)
    made = _function_output(
        work, node, members, tuple(attribute for attribute in node.output if attribute not in below.scope)
    )
    return OperatorOutput({**{attribute: below.scope[attribute] for attribute in known}, **made.scope}, made.rows)


def _function_output(
    work: OperatorContext, node: PlanNode, members: Members, outputs: tuple[int, ...]
) -> OperatorOutput:
    """All of them the same value, so that a thousand columns by a thousand cost no more than one."""
    found: ColumnValue = make_value(
        ValuePart(work.origins.lift(members, DerivationRank.TRANSFORMATION), f"{_name(work, node)}(…)")
    )
    rows = NO_MEMBERS.union(*(work.input_of(node, place).rows for place in range(len(node.inputs))))
    return OperatorOutput(dict.fromkeys(outputs, found), rows)


def _name(work: OperatorContext, node: PlanNode) -> str:
    """The user's name for the function, where there is one, or what it is for Spark."""
    for reference in node.expressions_of("functionExpr"):
        function = work.plan.expressions[reference].details.get("function") if reference >= 0 else None
        if function:
            return str(function)
    return node.name[0].lower() + node.name[1:]


FUNCTIONS: Final[Mapping[str, Operator]] = {
    **dict.fromkeys(["AppendColumns", "AppendColumnsWithObject"], _append_columns),
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
        _from_all_columns,
    ),
    **dict.fromkeys(
        ["FlatMapGroupsInPandas", "FlatMapCoGroupsInPandas", "FlatMapGroupsInPandasWithState"], _from_grouped_columns
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
        _from_deserialized_columns,
    ),
}
