"""Dead letters of listeners: events that a listener's target refuses for ever, kept beside the spools.

Each listener's are a local log of its own, `dead-letters/NAME` in the directory of spools: the same bytes, key and
headers, and why. So `headwater events cat` shows them, and whatever reads a local log can take them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.health import Gap, GapReason
from headwater.events.keys import KIND
from headwater.events.redaction import redacted_excerpt
from headwater.journal import DeadLetterLog, Files, JournalEntry, JournalRecord, StorageError

DIRECTORY: Final = "dead-letters"
_MAX_BYTES: Final = 256 << 20
_MAX_WHY: Final = 1_000


class DeadLetterStore:
    """Keeps what listeners refuse, in the first of these places that takes it."""

    def __init__(self, places: Callable[[], Iterable[Path]], files: Files) -> None:
        self._places = places
        self._files = files

    def keep(self, listener: str, record: JournalRecord, why: str) -> Path:
        """Write one record to the disk, and return the log that it is in. A HeadwaterError where no place takes it."""
        fault: HeadwaterError = StorageError("there is no directory for dead letters")
        entry = JournalEntry(record.value, record.key, record.headers)
        for place in self._places():
            directory = place / DIRECTORY / listener
            try:
                DeadLetterLog(directory, max_bytes=_MAX_BYTES, files=self._files).keep(
                    [(entry, redacted_excerpt(why, _MAX_WHY))]
                )
            except HeadwaterError as e:
                fault = e
            else:
                return directory
        raise fault


def refused_gap(listener: str, record: JournalRecord, why: str, directory: Path) -> Gap | None:
    """The Gap that says what the listener doesn't get; None for a Gap that was refused itself, or there is no end."""
    if dict(record.headers).get(KIND) == Gap.__name__.encode():
        return None
    event = _decode(record)
    gap = Gap(
        reason=GapReason.OTHER,
        detail=f"listener {listener} refuses an event for ever, and goes on without it: {why}; it is in {directory}",
        listener=listener,
        missed=1,
    )
    if event is None:
        return gap
    update = {
        "missed_family": event.family,
        "missed_producer": event.producer,
        "first_sequence": event.sequence,
        "last_sequence": event.sequence,
        "first_family_sequence": event.family_sequence,
        "last_family_sequence": event.family_sequence,
        "first_time": event.time,
        "last_time": event.time,
    }
    return gap.model_copy(update=update)


def _decode(record: JournalRecord) -> Event | None:
    try:
        decoded = Codec().decode(record.value)
    except HeadwaterError:
        return None
    return decoded if isinstance(decoded, Event) else None
