"""The status of forwarders for people: a small file beside the state of each, which its process rewrites.

How far a forwarder is: where it began, the offsets that it committed, and what the bus lost before it was read.

The offsets count only where the bus has none of the group. Kafka forgets those of a group that has had no member for a
week (offsets.retention.minutes), and then a forwarder that began at the end would silently pass over what came since.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from headwater.consumers.sources import OffsetGap
from headwater.events.health import GapReason
from headwater.forwarders.configuration import ForwarderSettings
from headwater.forwarders.dead_letters import WAITING_STATES
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.forwarders.state import ForwarderLock, ForwarderState
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
            rows = [(*gap.partition, gap.first, gap.end, gap.reason.value, time.time()) for gap in gaps]
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


_ENDING: Final = ".json"


@dataclass(frozen=True)
class ForwarderStatus:
    """A forwarder, as its process saw it last."""

    name: str
    type: str
    state: str
    """`running`, `waiting` for its bus or target, or `stopped`."""
    lag: int | None
    rate: float
    """Events a second over the last minute."""
    sent: int
    filtered: int
    dead_letters: int
    postponed: int
    """Events that the target failed on, which are tried again with the next ones."""
    lost: Sequence[LostRecords]
    """What the bus no longer had when it was to be read, the newest first."""
    waiting_for: str | None
    last_error: str | None
    last_error_at: datetime | None
    sent_until: datetime | None
    started_at: datetime | None
    process: int | None


def write_status(directory: Path, settings: ForwarderSettings, metrics: ForwarderMetrics, began: float) -> None:
    fields = {
        "name": settings.name,
        "type": settings.config.type,
        "state": "waiting" if metrics.fault else "running",
        "lag": metrics.lag,
        "rate": round(metrics.rate.read(), 1),
        "sent": metrics.sent,
        "filtered": metrics.filtered,
        "dead_letters": metrics.dead_letters_waiting,
        "postponed": metrics.postponed,
        "waiting_for": metrics.fault,
        "last_error": metrics.last_error,
        "last_error_at": metrics.last_error_at,
        "sent_until": None if metrics.sent_until is None else metrics.sent_until / 1_000_000,
        "started_at": began,
        "process": os.getpid(),
        "written_at": time.time(),
    }
    aside = directory / f".{settings.name}{_ENDING}.{os.getpid()}"
    aside.write_text(json.dumps(fields), "utf-8")
    aside.replace(directory / f"{settings.name}{_ENDING}")


def read_statuses(directory: Path) -> Iterator[ForwarderStatus]:
    """Yield the status of each forwarder that has run with this directory."""
    for place in sorted(directory.glob("*.db")):
        yield read_status(directory, place.stem)


def read_status(directory: Path, name: str) -> ForwarderStatus:
    """Return the status of a forwarder. Dead letters are counted now, the rest is what its process wrote."""
    place = directory / f"{name}{_ENDING}"
    fields: dict[str, Any] = json.loads(place.read_text("utf-8")) if place.exists() else {}
    lock = ForwarderLock(directory, name)
    is_free = lock.acquire()
    lock.release()
    with ForwarderState(directory, name) as state:
        dead_letters, lost = state.letters.count_dead_letters(*WAITING_STATES), ForwarderProgress(state).lost()
    return ForwarderStatus(
        name=name,
        type=fields.get("type", ""),
        state="stopped" if is_free else fields.get("state", "running"),
        lag=fields.get("lag"),
        rate=0.0 if is_free else fields.get("rate", 0.0),
        sent=fields.get("sent", 0),
        filtered=fields.get("filtered", 0),
        dead_letters=dead_letters,
        postponed=0 if is_free else fields.get("postponed", 0),
        lost=lost,
        waiting_for=None if is_free else fields.get("waiting_for"),
        last_error=fields.get("last_error"),
        last_error_at=_moment(fields.get("last_error_at")),
        sent_until=_moment(fields.get("sent_until")),
        started_at=_moment(fields.get("started_at")),
        process=None if is_free else fields.get("process"),
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
