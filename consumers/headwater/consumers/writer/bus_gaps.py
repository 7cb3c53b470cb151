"""Reports records that a bus lost as Gap events in the store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from uuid import UUID

from headwater.consumers.sources import OffsetGap
from headwater.events.health import Gap
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, hash_key
from headwater.lineage.rows import tables as t


def gap_rows(offset_gap: OffsetGap, topic: str) -> Iterator[Row]:
    """Return the rows of the Gap. Everybody who finds the same gap writes the same rows."""
    where, following = offset_gap.partition, offset_gap.end
    named = hash_key("offset_gap", (where.cluster, where.topic, where.number, offset_gap.first))
    gap = Gap(
        producer=UUID(bytes=named),
        sequence=1,
        family_sequence=1,
        time=datetime.now(timezone.utc),
        reason=offset_gap.reason,
        detail=_detail(offset_gap, topic),
        cluster=where.cluster,
        topic=topic,
        topic_id=where.topic,
        partition=where.number,
        first_offset=offset_gap.first,
        last_offset=None if following is None else max(offset_gap.first, following - 1),
        missed=None if following is None else following - offset_gap.first,
    )
    return (row for row in map_event(gap) if row.kind == t.GAP)


def _detail(gap: OffsetGap, topic: str) -> str:
    if gap.end is None:
        return f"{topic} no longer has what came from {gap.first} on, if anything did: it was deleted and made again"
    return f"{topic} no longer has what comes before {gap.end}"
