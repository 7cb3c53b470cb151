"""Reports records that a bus lost as Gap events in the store."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.consumers.sources import OffsetGap
from headwater.consumers.sources.gap_events import gap_event
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row
from headwater.lineage.rows import tables as t


def gap_rows(offset_gap: OffsetGap, topic: str) -> Iterator[Row]:
    """Return the rows of the Gap. Everybody who finds the same gap writes the same rows."""
    return (row for row in map_event(gap_event(offset_gap, topic)) if row.kind == t.GAP)
