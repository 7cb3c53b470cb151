"""Column lineage: which columns of which inputs a column of an output is made from, and how."""

from __future__ import annotations

from headwater.events.base import Model
from headwater.events.scalars import Count, EventEnum, FieldPath, SqlString


class Derivation(EventEnum):
    """How a source column comes into an output. The first three carry its values into one column (direct); the others
    decide about rows or choices without carrying values (indirect)."""

    UNKNOWN = "UNKNOWN"
    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"

    @property
    def is_direct(self) -> bool:
        return self in {Derivation.IDENTITY, Derivation.TRANSFORMATION, Derivation.AGGREGATION}


class ColumnLineage(Model):
    """One edge: a column of an output is made from a column of an input.

    `output` and `input` count in the event's outputs and inputs; for a view, `input` counts in its sources.

    >>> edge = ColumnLineage(
    ...     output=0, input=0, source=("amount",), target=("total",), derivation=Derivation.AGGREGATION
    ... )
    >>> edge.derivation.is_direct
    True
    """

    output: Count
    input: Count
    source: FieldPath
    target: FieldPath | None = None
    """Absent where the source decides about the whole output, as the column of a filter does."""
    derivation: Derivation
    expression: SqlString | None = None
    """The expression as text, literals as `?` unless capture.sql is true."""
