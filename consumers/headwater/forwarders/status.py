"""The status of forwarders for people: a small file beside the state of each, which its process rewrites."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from headwater.forwarders.configuration import ForwarderSettings
from headwater.forwarders.dead_letters import WAITING_STATES
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.forwarders.progress import ForwarderProgress, LostRecords
from headwater.forwarders.state import ForwarderLock, ForwarderState

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
