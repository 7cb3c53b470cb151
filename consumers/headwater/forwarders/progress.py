"""How far a forwarder is: where it began, the offsets that it committed, and what the bus lost before it was read.

The offsets count only where the bus has none of the group. Kafka forgets those of a group that has had no member for a
week (offsets.retention.minutes), and then a forwarder that began at the end would silently pass over what came since.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from headwater.consumers.sources import OffsetGap
from headwater.events.health import GapReason
from headwater.forwarders.state import ForwarderState
from headwater.lineage.bulk import BusPartition

_MOST_LOST = 1_000


@dataclass(frozen=True)
class LostRecords:
    """Records that the bus no longer had when the forwarder came to them."""

    gap: OffsetGap
    found_at: datetime


class ForwarderProgress:
    """The progress in a forwarder's state."""

    def __init__(self, state: ForwarderState) -> None:
        self._state = state

    def has_begun(self, place: str) -> bool:
        """Return whether the forwarder has begun to read this bus."""
        return bool(self._state.select("SELECT 1 FROM beginnings WHERE place = ?", place))

    def begin(self, place: str, start: str) -> None:
        """Record that the forwarder begins to read this bus now."""
        with self._state.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO beginnings VALUES (?, ?, ?)", (place, start, time.time()))

    def positions(self) -> dict[BusPartition, int]:
        """Return the offsets that were committed last."""
        rows = self._state.select("SELECT cluster, topic, partition, next FROM positions")
        return {BusPartition(*where): at for *where, at in rows}

    def record_positions(self, positions: Mapping[BusPartition, int]) -> None:
        """Record offsets that are committed. Call it before the bus has them: then the copy is never behind."""
        with self._state.transaction() as connection:
            rows = [(*partition, at) for partition, at in positions.items()]
            connection.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)", rows)

    def record_lost(self, gaps: Iterable[OffsetGap]) -> None:
        """Keep what was lost, for whoever asks for the status. The same gap is kept once."""
        with self._state.transaction() as connection:
            rows = [(*each.partition, each.first, each.end, each.reason.value, time.time()) for each in gaps]
            connection.executemany("INSERT OR IGNORE INTO lost VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            newest = "SELECT found_at FROM lost ORDER BY found_at DESC LIMIT 1 OFFSET ?"
            connection.execute(f"DELETE FROM lost WHERE found_at < ({newest})", (_MOST_LOST - 1,))  # noqa: S608

    def lost(self) -> list[LostRecords]:
        """Return what was lost, the newest first."""
        rows = self._state.select("SELECT * FROM lost ORDER BY found_at DESC, first DESC")
        return [
            LostRecords(
                OffsetGap(BusPartition(cluster, topic, number), first, end, GapReason(reason)),
                datetime.fromtimestamp(found_at, timezone.utc),
            )
            for cluster, topic, number, first, end, reason, found_at in rows
        ]
