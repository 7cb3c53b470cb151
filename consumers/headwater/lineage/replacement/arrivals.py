"""Which events a live store has received and a replay of the bus didn't bring: those that a switch would lose.

Each event leaves one bit in `arrivals`, whatever way it came. So this also finds what was never on a bus: events of the
listener `jdbc`, calls of `LineageMeta`, deletions without `--bus`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from headwater.lineage.mapping.events import ARRIVALS_PER_ROW
from headwater.lineage.replacement.comparison import RowDifference
from headwater.lineage.rows.tables import ARRIVAL

_MISSING: Final = """
SELECT l.producer, l.family, l.block, l.bits, COALESCE(f.bits, 0)
FROM {live}.arrivals l LEFT JOIN {fresh}.arrivals f ON f.id = l.id
WHERE f.id IS NULL OR (l.bits & ~f.bits) <> 0
ORDER BY l.producer, l.family, l.block
"""


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
    return _by_producer(connection.execute(text(_MISSING.format(live=live, fresh=fresh))))


def missing_in(differences: Iterable[RowDifference]) -> list[MissingEvents]:
    """Return the events that rows of a comparison show to be missing from the fresh tables."""
    return _by_producer(
        (*each.live.key, each.live.bits, 0 if each.fresh is None else each.fresh.bits)
        for each in differences
        if each.kind == ARRIVAL and each.live is not None
    )


def _by_producer(blocks: Iterable[Any]) -> list[MissingEvents]:
    found: dict[tuple[bytes, str], list[int]] = {}
    for producer, family, block, mine, other in blocks:
        if mine & ~other:
            found.setdefault((bytes(producer), family), []).extend(_numbers(block, mine & ~other))
    return [
        MissingEvents(UUID(bytes=producer), family, len(numbers), min(numbers), max(numbers))
        for (producer, family), numbers in found.items()
    ]


def describe_missing(missing: Iterable[MissingEvents], most: int = 5) -> str:
    """Return whose events are missing, in words."""
    each = sorted(missing, key=lambda one: -one.events)
    words = [
        f"{one.events} of producer {one.producer} ({one.family.lower()} events {one.first} to {one.last})"
        for one in each[:most]
    ]
    more = f" and of {len(each) - most} more producers" if len(each) > most else ""
    return ", ".join(words) + more


def _numbers(block: int, bits: int) -> list[int]:
    first = block * ARRIVALS_PER_ROW + 1
    return [first + bit for bit in range(ARRIVALS_PER_ROW) if bits >> bit & 1]
