"""From the columns of a query to those of what its rows are written into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from headwater.events.scalars import FieldPath
from headwater.listeners.capture.plan.columns.model import Lineage, Origin
from headwater.listeners.capture.plan.tree import Plan, PlanError

ByTarget: TypeAlias = dict[FieldPath, tuple[Origin, ...]]


def by_position(lineage: Lineage, plan: Plan, query: int, target_columns: Sequence[str]) -> ByTarget:
    """AppendData, overwrites, CREATE TABLE AS SELECT and the writers of files: the n-th goes into the n-th."""
    output = plan.nodes[query].output
    if len(output) != len(target_columns):
        raise PlanError(f"{len(output)} columns are written into {len(target_columns)}")
    return {(name,): lineage.columns.get(each, ()) for name, each in zip(target_columns, output, strict=True)}


def by_name(
    lineage: Lineage, plan: Plan, query: int, target_columns: Sequence[str], *, case_sensitive: bool = False
) -> ByTarget:
    """What a query gives beside the target's columns is left out, and so is what it doesn't give."""
    fold = str if case_sensitive else str.lower
    given = {fold(plan.attribute(each).name): each for each in reversed(plan.nodes[query].output)}
    names = [name for name in target_columns if fold(name) in given]
    return {(name,): lineage.columns.get(given[fold(name)], ()) for name in names}
