"""Which events a live store has received and a replay of the bus didn't bring: those that a switch would lose.

Each event leaves one bit in `arrivals`, whatever way it came. So this also finds what was never on a bus: events of the
listener `jdbc`, calls of `LineageMeta`, deletions without `--bus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from headwater.lineage.mapping.events import ARRIVALS_PER_ROW

_MISSING: Final = """
SELECT l.producer, l.family, l.block, l.bits, COALESCE(f.bits, 0)
FROM {live}.arrivals l LEFT JOIN {fresh}.arrivals f ON f.id = l.id
WHERE f.id IS NULL OR (l.bits & ~f.bits) <> 0
ORDER BY l.producer, l.family, l.block
"""
_MOST_NAMED: Final = 5


class MissingEvents(NamedTuple):
    """Events of one producer and family that the fresh tables lack."""

    producer: UUID
    family: str
    events: int
    first: int
    """The family's sequence number of the first one."""
    last: int


def find_missing_events(connection: Connection, live: str, fresh: str) -> list[MissingEvents]:
    """Compare `arrivals` of two schemas, databases or attached files."""
    found: dict[tuple[bytes, str], list[int]] = {}
    for producer, family, block, mine, other in connection.execute(text(_MISSING.format(live=live, fresh=fresh))):
        numbers = [block * ARRIVALS_PER_ROW + 1 + bit for bit in range(ARRIVALS_PER_ROW) if (mine & ~other) >> bit & 1]
        if numbers:
            found.setdefault((bytes(producer), family), []).extend(numbers)
    return [
        MissingEvents(UUID(bytes=producer), family, len(numbers), min(numbers), max(numbers))
        for (producer, family), numbers in found.items()
    ]


def describe_missing(missing: Sequence[MissingEvents]) -> str:
    """Return whose events are missing, in words."""
    most = sorted(missing, key=lambda each: -each.events)[:_MOST_NAMED]
    words = [
        f"{each.events} of producer {each.producer} ({each.family.lower()} events {each.first} to {each.last})"
        for each in most
    ]
    more = len(missing) - len(most)
    return ", ".join(words) + (f" and of {more} more producers" if more else "")
