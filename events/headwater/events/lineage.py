"""Column lineage: which columns of which inputs a column of an output is made from, and how."""

from __future__ import annotations

from headwater.events.base import Model
from headwater.events.scalars import Count, FieldPath, PlanSql, Word


class Derivation(Word):
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
    """One edge. `output` and `input` count in the event's outputs and inputs (for a view, in its sources)."""

    output: Count
    input: Count
    source: FieldPath
    target: FieldPath | None = None
    """Absent where the source decides about the whole output, as the column of a filter does."""
    derivation: Derivation
    expression: PlanSql | None = None
    """The expression as text, literals as `?` unless capture.sql is true."""
