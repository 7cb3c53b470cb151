"""Loads the writes of tables that are nearest to a time: of one table, or of many at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, bindparam, select, true

from headwater.lineage.questions.traversal.snapshot_rows import (
    BY_TIME,
    OF_COMMIT,
    OF_WRITE,
    SnapshotWrite,
    change_to_write,
    produced_by_changes,
    to_write,
    write_places,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import array_text, unnested_pairs
from headwater.lineage.sql.tables import table_of

_DIALECTS: Final = frozenset({"postgresql"})
"""SQLite answers single statements sooner, and MariaDB knows no LATERAL."""

_WIDTH: Final = len(OF_WRITE) + len(OF_COMMIT)


class HistoryPart(NamedTuple):
    """The newest writes of a table up to a time."""

    writes: list[SnapshotWrite]
    since: int | None
    """All writes from this time on are among them; None if there are no others before."""


class Portion(NamedTuple):
    """Which part of a history is wanted."""

    datasets: Collection[bytes]
    """All identities of the table."""
    at: int


def load_histories(connection: Connection, wanted: Mapping[bytes, Portion], number: int) -> dict[bytes, HistoryPart]:
    """Load the newest writes of many tables, each up to a time: at least so many of each, if there are."""
    pairs = {(dataset, part.at) for part in wanted.values() for dataset in part.datasets}
    writes = _by_pair(_newest_writes(connection, pairs, number), "first")
    changes = _by_pair(_newest_changes(connection, pairs, number), "time")
    return {table: _part(part, writes, changes, number) for table, part in wanted.items()}


_Pair = tuple[bytes, int]
_Found = Mapping[_Pair, list[tuple[int, Any]]]


def _part(part: Portion, writes: _Found, changes: _Found, number: int) -> HistoryPart:
    """Put together what was found of the identities of a table."""
    found, since = list[SnapshotWrite](), list[int]()
    for rows, convert in ((writes, _to_write), (changes, change_to_write)):
        for dataset in part.datasets:
            its = rows.get((dataset, part.at), [])
            found += [convert(row) for _, row in its]
            if len(its) >= number:
                since.append(min(time for time, _ in its))
    return HistoryPart(found, max(since, default=None))


def _to_write(row: Any) -> SnapshotWrite:
    return to_write(row[:_WIDTH])


def _by_pair(rows: Iterable[tuple[_Pair, Any]], time: str) -> dict[_Pair, list[tuple[int, Any]]]:
    found: dict[_Pair, list[tuple[int, Any]]] = {}
    for pair, row in rows:
        found.setdefault(pair, []).append((getattr(row, time), row))
    return found


def _newest_writes(connection: Connection, pairs: Collection[_Pair], number: int) -> Iterator[tuple[_Pair, Any]]:
    if connection.dialect.name in _DIALECTS:
        yield from _execute_for(connection, _writes_of_many(), pairs, number)
        return
    near = nearest_writes(is_before=True)
    for dataset, at in pairs:
        places = write_places(connection, [dataset])
        found = [connection.execute(near, {"place": place, "at": at, "number": number}) for place in places]
        for row in islice(merge(*found, key=BY_TIME, reverse=True), number):
            yield (dataset, at), row


def _newest_changes(connection: Connection, pairs: Collection[_Pair], number: int) -> Iterator[tuple[_Pair, Any]]:
    if connection.dialect.name in _DIALECTS:
        yield from _execute_for(connection, _changes_of_many(), pairs, number)
        return
    near = nearest_changes(is_before=True)
    for dataset, at in pairs:
        for row in connection.execute(near, {"datasets": [dataset], "at": at, "number": number}):
            yield (dataset, at), row


def _execute_for(
    connection: Connection, statement: Any, pairs: Collection[_Pair], number: int
) -> Iterator[tuple[_Pair, Any]]:
    if not pairs:
        return
    datasets, times = zip(*sorted(pairs), strict=True)
    given = {"hashes": array_text(datasets), "numbers": array_text(times), "number": number}
    for row in connection.execute(statement, given).all():
        yield (bytes(row.of_dataset), row.up_to), row


def load_writes_before(
    connection: Connection, datasets: Collection[bytes], at: int, number: int
) -> Iterator[SnapshotWrite]:
    """Load the newest writes of a dataset up to a time."""
    return _load_nearest(connection, datasets, at, number, is_before=True)


def load_writes_after(
    connection: Connection, datasets: Collection[bytes], at: int, number: int
) -> Iterator[SnapshotWrite]:
    """Load the oldest writes of a dataset from a time on."""
    return _load_nearest(connection, datasets, at, number, is_before=False)


def _load_nearest(
    connection: Connection, datasets: Collection[bytes], at: int, number: int, *, is_before: bool
) -> Iterator[SnapshotWrite]:
    places, given = write_places(connection, datasets), {"at": at, "number": number}
    near = nearest_writes(is_before=is_before)
    found = [connection.execute(near, {"place": place, **given}) for place in places]
    yield from map(to_write, islice(merge(*found, key=BY_TIME, reverse=is_before), number))
    changes = nearest_changes(is_before=is_before)
    yield from map(change_to_write, connection.execute(changes, {"datasets": list(datasets), **given}))


@cache
def nearest_writes(*, is_before: bool) -> Any:
    """Select the nearest writes of one place before or after a time: an index has them in this order. Their commits are
    joined afterwards, as a planner that joins first may read all commits."""
    row = table_of(t.WRITE).c
    at, place = bindparam("at", type_=row.first.type), bindparam("place", type_=row.place_id.type)
    condition = row.first <= at if is_before else row.first >= at
    nearest = select(table_of(t.WRITE)).where(row.place_id == place, condition)
    order = row.first.desc() if is_before else row.first
    one = nearest.order_by(order).limit(bindparam("number")).subquery("one")
    where = table_of(t.PLACE).alias("its_place")
    chosen = _with_commits(one, where, one.join(where, one.c.place_id == where.c.id))
    return chosen.order_by(one.c.first.desc() if is_before else one.c.first)


def _with_commits(one: Any, where: Any, among: Any, *more: Any) -> Any:
    """Select the columns that `to_write` expects, and more, of writes and their places that stand among other
    things."""
    commit = table_of(t.COMMIT)
    columns = (one.c[name] if name in one.c else where.c[name] for name in OF_WRITE)
    its = and_(one.c.commit_id == commit.c.id, one.c.barrier == commit.c.barrier)
    chosen = select(*columns, *(commit.c[name] for name in OF_COMMIT), *more).select_from(among)
    return chosen.join(commit, its)


@cache
def nearest_changes(*, is_before: bool) -> Any:
    """Select the nearest catalog changes of datasets, before or after a time, that created snapshots."""
    row = table_of(t.MODIFICATION).c
    at: Any = bindparam("at", type_=row.time.type)
    among: Any = bindparam("datasets", expanding=True)
    chosen = produced_by_changes().where(row.dataset.in_(among), row.time <= at if is_before else row.time >= at)
    return chosen.order_by(row.time.desc() if is_before else row.time).limit(bindparam("number"))


@cache
def _writes_of_many() -> Any:
    """Select the newest writes of each dataset up to its time, in one statement."""
    wanted, place, row = _wanted_pairs(), table_of(t.PLACE), table_of(t.WRITE)
    newest = select(row).where(row.c.place_id == place.c.id, row.c.first <= wanted.c.b).correlate(place, wanted)
    of_place = newest.order_by(row.c.first.desc()).limit(bindparam("number")).lateral("of_place")
    is_place = and_(place.c.dataset == wanted.c.a, place.c.made_from.is_not(None))
    where = (column for column in place.c if column.name not in of_place.c)
    of_dataset = select(of_place, *where).select_from(place).join(of_place, true()).where(is_place).correlate(wanted)
    one = of_dataset.order_by(of_place.c.first.desc()).limit(bindparam("number")).lateral("one")
    return _with_commits(one, one, wanted.join(one, true()), *_of(wanted))


@cache
def _changes_of_many() -> Any:
    """Select the newest catalog changes of each dataset up to its time that created snapshots, in one statement."""
    wanted, row = _wanted_pairs(), table_of(t.MODIFICATION).c
    newest = produced_by_changes().where(row.dataset == wanted.c.a, row.time <= wanted.c.b)
    one = newest.order_by(row.time.desc()).limit(bindparam("number")).lateral("one")
    return select(*one.c, *_of(wanted)).join_from(wanted, one, true())


def _wanted_pairs() -> Any:
    return unnested_pairs(bindparam("hashes"), bindparam("numbers"))


def _of(wanted: Any) -> tuple[Any, Any]:
    """Return the columns that say for which dataset, and up to which time, a row was found."""
    return wanted.c.a.label("of_dataset"), wanted.c.b.label("up_to")
