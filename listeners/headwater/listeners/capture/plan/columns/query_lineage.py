"""What is known of the columns of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from headwater.events.column_lineage import Derivation
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.plan.tree import Plan, PlanError


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """A column of a leaf of the plan, and how it comes into its target."""

    leaf: int
    """The node that reads it: a relation, an RDD, a stream. Rows made by the query itself have no origin."""
    path: tuple[str, ...]
    """The column, and the fields of structs that lead on from it."""
    derivation: Derivation
    """Of the whole way from the leaf."""
    expression: str | None = None
    """The expression as text, literals as `?`, bounded in length; none where the value is passed on as it is."""


@dataclass(frozen=True)
class QueryLineage:
    columns: Mapping[int, tuple[ColumnOrigin, ...]] = field(default_factory=dict)
    """By the id of an attribute that the query gives: where its values come from, and what chooses among them."""
    indirect: tuple[ColumnOrigin, ...] = ()
    """What decides about the rows: joins, filters, groups, sorting, windows."""
    leaves: tuple[int, ...] = ()
    """All that is read, subqueries included, in the plan's order."""
    unknown: tuple[str, ...] = ()
    """Operators that weren't understood: columns that come through them have no origins, and the caller tells a Gap."""
    fields: Mapping[tuple[str, ...], tuple[ColumnOrigin, ...]] = field(default_factory=dict)
    """By the path of a column of a target, where rows of a table are changed one by one."""


OriginsByTarget: TypeAlias = dict[FieldPath, tuple[ColumnOrigin, ...]]


def match_by_position(lineage: QueryLineage, plan: Plan, query: int, target_columns: Sequence[str]) -> OriginsByTarget:
    """AppendData, overwrites, CREATE TABLE AS SELECT and the writers of files: the n-th goes into the n-th."""
    output = plan.nodes[query].output
    if len(output) != len(target_columns):
        raise PlanError(f"{len(output)} columns are written into {len(target_columns)}")
    return {(name,): lineage.columns.get(attribute, ()) for name, attribute in zip(target_columns, output, strict=True)}


def match_by_name(
    lineage: QueryLineage, plan: Plan, query: int, target_columns: Sequence[str], *, case_sensitive: bool = False
) -> OriginsByTarget:
    """What a query gives beside the target's columns is left out, and so is what it doesn't give."""
    fold = str if case_sensitive else str.lower
    given = {fold(plan.attribute(attribute).name): attribute for attribute in reversed(plan.nodes[query].output)}
    names = [name for name in target_columns if fold(name) in given]
    return {(name,): lineage.columns.get(given[fold(name)], ()) for name in names}
