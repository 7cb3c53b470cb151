"""What a bus had and no longer has is told in the store as a Gap with its range."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from uuid import UUID

from headwater.consumers.sources import Hole
from headwater.events.health import Gap
from headwater.lineage.law import changes
from headwater.lineage.rows import Row, hash_of
from headwater.lineage.rows import tables as t


def gap_rows(hole: Hole, topic: str) -> Iterator[Row]:
    """Whoever finds the same hole tells the same Gap."""
    where, following = hole.partition, hole.following
    named = hash_of("hole", (where.cluster, where.topic, where.number, hole.first))
    gap = Gap(
        producer=UUID(bytes=named),
        sequence=1,
        family_sequence=1,
        time=datetime.now(timezone.utc),
        reason=hole.why,
        detail=_detail(hole, topic),
        cluster=where.cluster,
        topic=topic,
        topic_id=where.topic,
        partition=where.number,
        first_offset=hole.first,
        last_offset=None if following is None else max(hole.first, following - 1),
        missed=None if following is None else following - hole.first,
    )
    return (row for row in changes(gap) if row.kind == t.GAP)


def _detail(hole: Hole, topic: str) -> str:
    if hole.following is None:
        return f"{topic} no longer has what came from {hole.first} on, if anything did: it was deleted and made again"
    return f"{topic} no longer has what comes before {hole.following}"
