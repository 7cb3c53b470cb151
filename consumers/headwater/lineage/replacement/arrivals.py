"""Which events a live store has received and a replay of the bus didn't bring: those that a switch would lose.

Each event leaves one bit in `arrivals`, whatever way it came. So this also finds what was never on a bus: events of the
listener `jdbc`, calls of `LineageMeta`, deletions without `--bus`.

Of a live store's own records the fresh one takes over those that no replay can make again. Offsets aren't among them:
the fresh tables have their own, and the writer goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, MetaData, Table, delete, func, insert, select, text, true, update

from headwater.lineage.bulk.dead_letters import DIRECT_SOURCE
from headwater.lineage.bulk.marks import REPLACEMENTS
from headwater.lineage.bulk.positions import now_micros
from headwater.lineage.mapping.events import ARRIVALS_PER_ROW
from headwater.lineage.sql.pip5_catalog import PIP5_DATABASES
from headwater.lineage.sql.writer_tables import DEAD_LETTERS, DECISION_TABLES, EPOCHS, INGESTS, MARKS

_LETTER_STATE: Final = ("state", "attempts", "error", "created_at")
"""What became of a dead letter: a replay finds the letter again, and knows nothing of that."""


def take_over(connection: Connection, live: str, fresh: str) -> None:
    """Copy the records, in the caller's transaction. `live` and `fresh` are schemas, databases or attached files."""
    _dead_letters(connection, live, fresh)
    ingests, places = _in(live, INGESTS), _in(live, PIP5_DATABASES)
    _copy(connection, ingests, _in(fresh, INGESTS), ingests.c.source == DIRECT_SOURCE)
    _copy(connection, places, _in(fresh, PIP5_DATABASES), true())
    for table in DECISION_TABLES:
        _take_whole(connection, _in(live, table), _in(fresh, table))
    _count_epoch(connection, live, fresh)
    _count_replacement(connection, live, fresh)


def _dead_letters(connection: Connection, live: str, fresh: str) -> None:
    mine, other = _in(live, DEAD_LETTERS), _in(fresh, DEAD_LETTERS)
    known = select(mine).where(mine.c.id == other.c.id)
    values = {name: known.with_only_columns(mine.c[name]).scalar_subquery() for name in _LETTER_STATE}
    connection.execute(update(other).where(other.c.id.in_(select(mine.c.id))).values(values))
    _copy(connection, mine, other, mine.c.source == DIRECT_SOURCE)


def _copy(connection: Connection, mine: Table, other: Table, where: ColumnElement[bool]) -> None:
    """Copy the rows that aren't there yet."""
    key = next(iter(mine.primary_key)).name
    selected = select(mine).where(where, mine.c[key].not_in(select(other.c[key])))
    connection.execute(insert(other).from_select([each.name for each in mine.c], selected))


def _take_whole(connection: Connection, mine: Table, other: Table) -> None:
    """Copy all rows. A switch-over that broke off may have copied older ones."""
    connection.execute(delete(other))
    connection.execute(insert(other).from_select([each.name for each in mine.c], select(mine)))


def _count_epoch(connection: Connection, live: str, fresh: str) -> None:
    """Begin an epoch that no writer knows: rows that it knew to be stored may be others now."""
    tables = [_in(each, EPOCHS) for each in (live, fresh)]
    greatest = max(connection.execute(select(func.coalesce(func.max(each.c.epoch), 0))).scalar_one() for each in tables)
    connection.execute(delete(tables[1]))
    connection.execute(insert(tables[1]).values(id=1, epoch=greatest + 1))


def _count_replacement(connection: Connection, live: str, fresh: str) -> None:
    """Count the replacement, and leave no other mark: each writer notices that its own are missing."""
    mine, other = _in(live, MARKS), _in(fresh, MARKS)
    known = connection.execute(select(mine.c.number).where(mine.c.id == REPLACEMENTS)).scalar() or 0
    connection.execute(delete(other))
    connection.execute(insert(other).values(id=REPLACEMENTS, number=known + 1, moved_at=now_micros()))


def _in(schema: str, table: Table) -> Table:
    """Return a table in another schema, database or attached file."""
    return table.to_metadata(MetaData(), schema=schema)


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
