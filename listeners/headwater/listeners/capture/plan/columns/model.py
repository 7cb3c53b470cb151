"""What is known of the columns of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.events.lineage import Derivation


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of a leaf of the plan, and how it comes into what it is told of."""

    leaf: int
    """The node that reads it: a relation, an RDD, a stream. Rows made by the query itself have no origin."""
    path: tuple[str, ...]
    """The column, and the fields of structs that lead on from it."""
    derivation: Derivation
    """Of the whole way from the leaf."""
    expression: str | None = None
    """The expression as text, literals as `?`, bounded in length; none where the value is passed on as it is."""


@dataclass(frozen=True)
class Lineage:
    columns: Mapping[int, tuple[Origin, ...]] = field(default_factory=dict)
    """By the id of an attribute that the query gives: where its values come from, and what chooses among them."""
    indirect: tuple[Origin, ...] = ()
    """What decides about the rows: joins, filters, groups, sorting, windows."""
    leaves: tuple[int, ...] = ()
    """All that is read, subqueries included, in the plan's order."""
    unknown: tuple[str, ...] = ()
    """Operators that weren't understood: columns that come through them have no origins, and the caller tells a Gap."""
    fields: Mapping[tuple[str, ...], tuple[Origin, ...]] = field(default_factory=dict)
    """By the path of a column of a target, where rows of a table are changed one by one."""
