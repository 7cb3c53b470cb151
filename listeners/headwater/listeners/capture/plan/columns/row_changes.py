"""What a row becomes where rows of a table are changed one by one: UPDATE, DELETE and MERGE, in whatever form.

Recorded are assignments and conditions. That rows which aren't changed stay what they are is no edge, although some
plans carry them along: a MERGE has the same lineage however its table is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from headwater.listeners.capture.plan.columns.expressions import OperatorOutput
from headwater.listeners.capture.plan.columns.operators import OperatorContext
from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, DerivationRank, Members
from headwater.listeners.capture.plan.columns.values import Scope, merge_values
from headwater.listeners.capture.plan.tree import Expression, Plan, PlanNode

INSTRUCTIONS = ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions")
ACTIONS = ("matchedActions", "notMatchedActions", "notMatchedBySourceActions")
CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")


class Assignment(NamedTuple):
    """What a field of the target becomes."""

    target: tuple[str, ...]
    reference: int
    scope: Scope


@dataclass(frozen=True)
class RowChanges:
    """What a command does to its target."""

    target: tuple[int, ...]
    """Ids of the target's columns."""
    assignments: tuple[Assignment, ...] = ()
    rows: Members = NO_MEMBERS
    """What decides about which rows are changed, and how."""


def merge_rows(work: OperatorContext, node: PlanNode) -> OperatorOutput:
    """What a MERGE became: for each row one of some instructions, each of which gives all columns anew."""
    scope, rows = work.input_of(node)
    ways = merge_alternatives(work.plan, node)
    values = (merge_values(work.expressions.value(way[n], scope) for way in ways) for n in range(len(node.output)))
    outputs = dict(zip(node.output, values, strict=True))
    return OperatorOutput(
        outputs, rows | work.deciding_members(instruction_conditions(work.plan, node), scope, DerivationRank.FILTER)
    )


def merge_alternatives(plan: Plan, node: PlanNode) -> list[tuple[int, ...]]:
    """The rows that its instructions give; of one that is split in two, both."""
    done = read_clauses(plan, node, INSTRUCTIONS)
    ways = (argument(action, name) for action in done for name in ("output", "otherOutput"))
    return [way for way in ways if way]


def instruction_conditions(plan: Plan, node: PlanNode) -> list[int]:
    return [ref for action in read_clauses(plan, node, INSTRUCTIONS) for ref in argument(action, "condition")]


def argument(expression: Expression, name: str) -> tuple[int, ...]:
    """References that an argument of an expression is, where its arguments are given by name."""
    value: Any = expression.details.get("args", {}).get(name)
    found = value.get("x", ()) if isinstance(value, dict) else ()
    return (found,) if isinstance(found, int) else tuple(found)


def read_clauses(plan: Plan, node: PlanNode, names: Iterable[str]) -> Iterator[Expression]:
    return (plan.expressions[ref] for name in names for ref in node.expressions_of(name) if ref >= 0)
