"""Makes a Gap event of records that a bus lost before they were read."""

from __future__ import annotations

from datetime import datetime, timezone
from hashlib import blake2b
from uuid import UUID

from headwater.consumers.sources.api import OffsetGap
from headwater.events.health import Gap
from headwater.lineage.rows import hash_key


def gap_event(offset_gap: OffsetGap, topic: str, *, reader: str = "") -> Gap:
    """Return the Gap. Whoever finds the same gap makes the same event, but for its time.

    `reader` names who missed the records, where others may have read them: its Gap is an event of its own.
    """
    where, following = offset_gap.partition, offset_gap.end
    named = hash_key("offset_gap", (where.cluster, where.topic, where.number, offset_gap.first))
    if reader:
        named = blake2b(named + reader.encode(), digest_size=16).digest()
    return Gap(
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
        listener=reader or None,
    )


def _detail(gap: OffsetGap, topic: str) -> str:
    if gap.end is None:
        return f"{topic} no longer has what came from {gap.first} on, if anything did: it was deleted and made again"
    return f"{topic} no longer has what comes before {gap.end}"
