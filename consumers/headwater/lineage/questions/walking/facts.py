"""Writes and reads as the store has them, loaded by many keys at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, or_, select

from headwater.lineage.law.commits import ALL, SOME
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import Pairs, among, is_over
from headwater.lineage.sql.tables import table_of

ICEBERG: Final = "ICEBERG"
CHANGES: Final = "CHANGES"
NOTHING: Final = "NOTHING"
_RANGES: Final = 100
_PORTION: Final = 500
Named = tuple[str | None, str | None, str | None]


class Made(NamedTuple):
    """A snapshot that a commit made, or that a change of the table made by itself (`commit_id` is none then)."""

    id: bytes
    barrier: int
    commit_id: bytes | None
    dataset: bytes | None
    name: Named
    life: str | None
    branch: str | None
    snapshot: int | None
    version: str | None
    opaque: str | None
    parent: int | None
    kind: str
    replaced: str
    made_from: str
    format: str | None
    candidates: str | None
    last: int
    at: int
    job: tuple[str | None, str | None]
    parent_job: tuple[str | None, str | None]
    run: bytes | None
    fingerprint: bytes | None
    hidden: bool = False

    @property
    def restarts(self) -> bool:
        """Nothing that was in the table before is in it any more."""
        return self.replaced == ALL


class Taken(NamedTuple):
    """What a commit read."""

    id: bytes
    barrier: int
    commit_id: bytes
    dataset: bytes | None
    name: Named
    life: str | None
    branch: str | None
    mode: str
    snapshot: int | None
    version: str | None
    since: int | None
    since_version: str | None
    opaque: str | None
    format: str | None
    candidates: str | None
    last: int
    hidden: bool = False


def made_by(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Made]:
    """By dataset and snapshot, what commits made."""
    return map(_made, _by("writes", "dataset", "snapshot").among(connection, keys))


def changed_by(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Made]:
    """The same, what changes of tables made by themselves."""
    return map(_changed, _by("modifications", "dataset", "produced").among(connection, keys))


def made_on(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Made]:
    """By dataset and the snapshot that they were made on."""
    pairs = list(keys)
    yield from map(_made, _by("writes", "dataset", "parent_snapshot").among(connection, pairs))
    yield from map(_changed, _by("modifications", "dataset", "parent_snapshot").among(connection, pairs))


def made_before(connection: Connection, datasets: Collection[bytes], at: int, number: int) -> Iterator[Made]:
    """The newest of a dataset up to a time."""
    row, change = table_of(t.WRITE).c, table_of(t.MODIFICATION).c
    writes = _writes().where(row.dataset.in_(datasets), row.first <= at).order_by(row.first.desc()).limit(number)
    yield from map(_made, connection.execute(writes))
    changes = _produced().where(change.dataset.in_(datasets), change.time <= at)
    yield from map(_changed, connection.execute(changes.order_by(change.time.desc()).limit(number)))


def made_after(connection: Connection, datasets: Collection[bytes], at: int, number: int) -> Iterator[Made]:
    """The oldest of a dataset from a time on."""
    row, change = table_of(t.WRITE).c, table_of(t.MODIFICATION).c
    writes = _writes().where(row.dataset.in_(datasets), row.first >= at).order_by(row.first).limit(number)
    yield from map(_made, connection.execute(writes))
    changes = _produced().where(change.dataset.in_(datasets), change.time >= at)
    yield from map(_changed, connection.execute(changes.order_by(change.time).limit(number)))


def made_in(connection: Connection, commits: Iterable[tuple[bytes, int]]) -> Iterator[Made]:
    """By commit and its barrier."""
    return map(_made, _by("writes", "commit_id", "barrier").by_barrier(connection, commits))


def taken_in(connection: Connection, commits: Iterable[tuple[bytes, int]]) -> Iterator[Taken]:
    return map(_taken, _by("reads", "commit_id", "barrier").by_barrier(connection, commits))


def taken_at(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Taken]:
    """By dataset and snapshot; of changes, those that end there."""
    return map(_taken, _by("reads", "dataset", "snapshot").among(connection, keys))


def sources_of(connection: Connection, made: Collection[Made]) -> dict[bytes, list[Taken]]:
    """What each was made from, by the id of its write; where that is unknown, all that its commit read."""
    commits = {(each.commit_id, each.barrier) for each in made if each.commit_id is not None}
    by_commit: dict[bytes, list[Taken]] = {}
    for each in taken_in(connection, commits):
        by_commit.setdefault(each.commit_id, []).append(each)
    told = edges_of(connection, [each for each in made if each.made_from == SOME])
    found: dict[bytes, list[Taken]] = {}
    for write in made:
        read = by_commit.get(write.commit_id or b"", [])
        some = told.get(write.id, set())
        found[write.id] = [one for one in read if one.id in some] if write.made_from == SOME else read
    return found


def edges_of(connection: Connection, made: Collection[Made]) -> Mapping[bytes, set[bytes]]:
    """The reads that edges tell, by write."""
    told: dict[bytes, set[bytes]] = {}
    if made:
        keys = [(each.id, each.barrier) for each in made]
        for each in _by("edges", "write_id", "barrier").by_barrier(connection, keys):
            told.setdefault(bytes(each[0]), set()).add(bytes(each[1]))
    return told


@cache
def _by(what: str, key: str, number: str) -> Pairs:
    """Statements are made once: making one takes longer than asking it."""
    statements = {"writes": (_writes, t.WRITE), "reads": (reads, t.READ), "edges": (_edges, t.EDGE)}
    statement, kind = statements.get(what, (_produced, t.MODIFICATION))
    row = table_of(kind).c
    return Pairs(statement(), row[key], row[number])


@cache
def _edges() -> Any:
    row = table_of(t.EDGE).c
    return select(row.write_id, row.read_id).where(row.last > row.deleted)


@cache
def _writes() -> Any:
    row, commit = table_of(t.WRITE), table_of(t.COMMIT)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    by = ("job_namespace", "job", "parent_namespace", "parent_job", "run", "fingerprint", "at")
    columns = [column for column in row.c if column.name not in _UNREAD]
    return (
        select(*columns, *(commit.c[name] for name in by)).join_from(row, commit, its).where(row.c.last > row.c.deleted)
    )


@cache
def reads() -> Any:
    row = table_of(t.READ)
    return select(*(column for column in row.c if column.name not in _UNREAD)).where(row.c.last > row.c.deleted)


@cache
def _produced() -> Any:
    row = table_of(t.MODIFICATION)
    return select(row).where(row.c.produced.is_not(None), row.c.effect == "APPLIED")


_UNREAD: Final = frozenset({"facts_stamp", "deleted", "row_count", "byte_count", "schema_id", "tag"})


def _made(each: Any) -> Made:
    return Made(
        bytes(each.id),
        each.barrier,
        bytes(each.commit_id),
        _bytes(each.dataset),
        (each.catalog, each.database_name, each.table_name),
        each.life,
        each.branch,
        each.snapshot,
        each.version,
        each.opaque,
        each.parent_snapshot,
        each.commit_kind or "UNKNOWN",
        each.replaced or "UNKNOWN",
        each.made_from or "UNKNOWN",
        each.format,
        each.candidates,
        each.last,
        each.first if each.at is None else each.at,
        (each.job_namespace, each.job),
        (each.parent_namespace, each.parent_job),
        _bytes(each.run),
        _bytes(each.fingerprint),
    )


def _changed(each: Any) -> Made:
    """CREATE TABLE begins a table; whatever else the DDL did, its rows stayed."""
    creates = each.kind == "CreateTable"
    nobody = (None, None)
    return Made(
        bytes(each.id),
        0,
        None,
        _bytes(each.dataset),
        (each.catalog, each.database_name, each.table_name),
        each.life,
        each.branch,
        each.produced,
        None,
        None,
        None if creates else each.parent_snapshot,
        each.kind,
        ALL if creates else NOTHING,
        ALL,
        None,
        None,
        each.time,
        each.time,
        nobody,
        nobody,
        None,
        None,
    )


def _taken(each: Any) -> Taken:
    return Taken(
        bytes(each.id),
        each.barrier,
        bytes(each.commit_id),
        _bytes(each.dataset),
        (each.catalog, each.database_name, each.table_name),
        each.life,
        each.branch,
        each.mode,
        each.snapshot,
        each.version,
        each.since_snapshot,
        each.since_version,
        each.opaque,
        each.format,
        each.candidates,
        each.last,
    )


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def ranges_over(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Taken]:
    """Changes that were read, if a snapshot can be among them: by their numbers, where these have an order."""
    row = table_of(t.READ).c
    wanted = sorted(set(keys))
    ordered = reads().where(row.mode == CHANGES, or_(row.format.is_(None), row.format != ICEBERG))
    for start in range(0, len(wanted), _RANGES):
        portion = wanted[start : start + _RANGES]
        over = is_over(connection.dialect.name, row.dataset, row.snapshot, row.since_snapshot, portion)
        yield from map(_taken, connection.execute(ordered.where(over)))
    others = reads().where(row.mode == CHANGES, row.format == ICEBERG, row.since_snapshot.is_not(None))
    yield from map(_taken, among(connection, others, row.dataset, {dataset for dataset, _ in wanted}))


def unversioned_before(connection: Connection, datasets: Collection[bytes], at: int) -> Iterator[Made]:
    """Of a dataset without versions, the newest first."""
    row = table_of(t.WRITE).c
    newest = _writes().where(row.dataset.in_(datasets), row.first <= at, row.snapshot.is_(None))
    portion = newest.order_by(row.first.desc(), row.id).limit(_PORTION)
    for start in count(0, _PORTION):
        found = connection.execute(portion.offset(start)).all()
        yield from map(_made, found)
        if len(found) < _PORTION:
            return


def known_targets(connection: Connection, datasets: Collection[bytes]) -> set[bytes]:
    """Those of which something is known that they were made from."""
    row = table_of(t.TABLE_EDGE).c
    return {bytes(each[0]) for each in among(connection, select(row.target).distinct(), row.target, datasets)}
