"""Loads writes and reads of snapshots by many keys at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from heapq import merge
from itertools import count
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, select

from headwater.events.scalars import Format
from headwater.lineage.mapping.commits import ALL, SOME
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.accesses import access_of, place_keys
from headwater.lineage.sql.key_lookup import PairLookup, RangeLookup, select_by_keys
from headwater.lineage.sql.tables import row_exists, table_of

ICEBERG: Final = Format.ICEBERG.value
PAIMON: Final = Format.PAIMON.value
ORDERED: Final = tuple(format_.value for format_ in Format if format_.has_ordered_snapshots)
CHANGES: Final = "CHANGES"
NOTHING: Final = "NOTHING"
_PORTION: Final = 500
BY_TIME: Final = attrgetter("first")
NameParts = tuple[str | None, str | None, str | None]


class SnapshotWrite(NamedTuple):
    """A snapshot that a commit wrote, or that a catalog change created by itself (then `commit_id` is None)."""

    id: bytes
    barrier: int
    commit_id: bytes | None
    dataset: bytes | None
    name: NameParts
    generation: str | None
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
    evidence: str | None = None
    """How the commit is known, where its driver didn't report it: RECONCILED."""
    main: bool = True
    """Whether it is of the branch that the table's name means. One that is held back has no branch, either."""
    hidden: LimitReason | None = None
    """Why it isn't shown; None for what is visible."""

    @property
    def restarts(self) -> bool:
        """Whether the commit replaced everything that was in the table."""
        return self.replaced == ALL


class SnapshotRead(NamedTuple):
    """What a commit read."""

    id: bytes
    barrier: int
    commit_id: bytes
    dataset: bytes | None
    name: NameParts
    generation: str | None
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
    hidden: LimitReason | None = None
    """Why it isn't shown; None for what is visible."""


def load_writes(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotWrite]:
    """Load commits' writes by dataset and snapshot."""
    return map(to_write, _by_dataset(connection, "writes", "snapshot", keys))


def load_catalog_changes(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotWrite]:
    """Load snapshots that catalog changes created, by dataset and snapshot."""
    return map(change_to_write, _lookup("modifications", "dataset", "produced").among(connection, keys))


def load_created_snapshots(connection: Connection, datasets: Collection[bytes]) -> Iterator[SnapshotWrite]:
    """Load all snapshots of these datasets that catalog changes created, newest first."""
    row = table_of(t.MODIFICATION).c
    changes = map(change_to_write, select_by_keys(connection, produced_by_changes(), row.dataset, datasets))
    yield from sorted(changes, key=attrgetter("at"), reverse=True)


def load_children(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotWrite]:
    """Load writes by dataset and parent snapshot."""
    pairs = list(keys)
    yield from map(to_write, _by_dataset(connection, "writes", "parent_snapshot", pairs))
    yield from map(change_to_write, _lookup("modifications", "dataset", "parent_snapshot").among(connection, pairs))


def load_writes_of_commits(connection: Connection, commits: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotWrite]:
    """Load writes by commit and barrier."""
    return map(to_write, _lookup("writes", "commit_id", "barrier").by_barrier(connection, commits))


def load_reads_of_commits(connection: Connection, commits: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotRead]:
    return map(_to_read, _lookup("reads", "commit_id", "barrier").by_barrier(connection, commits))


def load_reads_at(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotRead]:
    """Load reads by dataset and snapshot; for changes, by the snapshot at which they end."""
    return map(_to_read, _by_dataset(connection, "reads", "snapshot", keys, is_lazy=True))


def load_pointers(connection: Connection, datasets: Collection[bytes], kind: str) -> list[SnapshotWrite]:
    """Load the commits of a kind that only point to a snapshot: their places say which there are."""
    place = table_of(t.PLACE).c
    is_of_kind = (place.dataset.in_(datasets), place.commit_kind == kind)
    places = [bytes(key) for key in connection.scalars(select(place.id).where(*is_of_kind))]
    return [to_write(row) for row in select_by_keys(connection, _writes(), access_of(t.WRITE).c.place_id, places)]


def load_sources(
    connection: Connection, made: Collection[SnapshotWrite], known: Mapping[bytes, list[SnapshotRead]] | None = None
) -> dict[bytes, list[SnapshotRead]]:
    """Return the reads that each write was made from, by its id. If that is unknown, all reads of its commit. Reads of
    commits that are `known` aren't loaded."""
    by_commit = dict(known or {})
    commits = {(write.commit_id, write.barrier) for write in made if write.commit_id is not None}
    for source in load_reads_of_commits(connection, {commit for commit in commits if commit[0] not in by_commit}):
        by_commit.setdefault(source.commit_id, []).append(source)
    edges = load_edges(connection, [write for write in made if write.made_from == SOME])
    found: dict[bytes, list[SnapshotRead]] = {}
    for write in made:
        read = by_commit.get(write.commit_id or b"", [])
        some = edges.get(write.id, set())
        found[write.id] = [one for one in read if one.id in some] if write.made_from == SOME else read
    return found


def load_edges(connection: Connection, made: Collection[SnapshotWrite]) -> Mapping[bytes, set[bytes]]:
    """Return the reads of each write, as `commit_edges` has them."""
    edges: dict[bytes, set[bytes]] = {}
    if made:
        keys = [(write.id, write.barrier) for write in made]
        for edge in _lookup("edges", "write_id", "barrier").by_barrier(connection, keys):
            edges.setdefault(bytes(edge[0]), set()).add(bytes(edge[1]))
    return edges


def _by_dataset(
    connection: Connection, what: str, number: str, keys: Iterable[tuple[bytes, int]], *, is_lazy: bool = False
) -> Iterator[Any]:
    """Select reads or writes by dataset and number: by their places, which PostgreSQL looks up in the same
    statement."""
    if connection.dialect.name == "postgresql":
        return _lookup(what, "dataset", number).among(connection, keys, is_lazy=is_lazy)
    places = place_keys(connection, t.READ if what == "reads" else t.WRITE, keys)
    return _lookup(what, "place_id", number).among(connection, places, is_lazy=is_lazy)


@cache
def _lookup(what: str, key: str, number: str) -> PairLookup:
    """Build a statement once: building one takes longer than executing it."""
    statements = {"writes": (_writes, t.WRITE), "reads": (reads, t.READ), "edges": (_edges, t.COMMIT_EDGE)}
    statement, kind = statements.get(what, (produced_by_changes, t.MODIFICATION))
    row = (table_of if kind in {t.COMMIT_EDGE, t.MODIFICATION} else access_of)(kind).c
    chosen = statement()
    if key == "dataset" and kind != t.MODIFICATION:  # not the places of the other kind
        chosen = chosen.where((row.mode if kind == t.READ else row.made_from).is_not(None))
    return PairLookup(chosen, row[key], row[number])


@cache
def _edges() -> Any:
    row = table_of(t.COMMIT_EDGE).c
    return select(row.write_id, row.read_id)


@cache
def _writes() -> Any:
    row, commit = access_of(t.WRITE), table_of(t.COMMIT)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    columns = (*(row.c[name] for name in OF_WRITE), *(commit.c[name] for name in OF_COMMIT))
    return select(*columns).join_from(row, commit, its)


@cache
def reads() -> Any:
    row = access_of(t.READ).c
    return select(*(row[name] for name in _OF_READ))


@cache
def produced_by_changes() -> Any:
    row = table_of(t.MODIFICATION)
    return select(row).where(row.c.produced.is_not(None), row.c.effect == "APPLIED")


_NOBODY: Final = (None, None)
_NAME: Final = ("catalog", "database_name", "table_name", "generation", "branch")
OF_WRITE: Final = (
    *("id", "barrier", "commit_id", "dataset", *_NAME, "snapshot", "version", "opaque", "parent_snapshot"),
    *("commit_kind", "replaced", "made_from", "format", "candidates", "main", "last", "first"),
)
OF_COMMIT: Final = (
    *("committed_at", "job_namespace", "job", "parent_namespace", "parent_job", "run", "fingerprint", "evidence"),
)
_OF_READ: Final = (
    *("id", "barrier", "commit_id", "dataset", *_NAME, "mode", "snapshot", "version", "since_snapshot"),
    *("since_version", "opaque", "format", "candidates", "last"),
)


def to_write(row: Iterable[Any]) -> SnapshotWrite:
    """Convert a row of `_writes`. Its columns are in the order of the names here: there can be very many rows, and to
    ask each for its columns by their names takes twice as long."""
    # fmt: off
    (
        id_, barrier, commit_id, dataset, catalog, database, table, generation, branch,
        snapshot, version, opaque, parent, kind, replaced, made_from, format_, candidates, main, last, first,
        committed_at, job_namespace, job, parent_namespace, parent_job, run, fingerprint, evidence,
    ) = row
    # fmt: on
    return SnapshotWrite(
        id=bytes(id_),
        barrier=barrier,
        commit_id=bytes(commit_id),
        dataset=None if dataset is None else bytes(dataset),
        name=(catalog, database, table),
        generation=generation,
        branch=branch,
        snapshot=snapshot,
        version=version,
        opaque=opaque,
        parent=parent,
        kind=kind or "UNKNOWN",
        replaced=replaced or "UNKNOWN",
        made_from=made_from or "UNKNOWN",
        format=format_,
        candidates=candidates,
        last=last,
        at=first if committed_at is None else committed_at,
        job=(job_namespace, job),
        parent_job=(parent_namespace, parent_job),
        run=None if run is None else bytes(run),
        fingerprint=None if fingerprint is None else bytes(fingerprint),
        evidence=evidence,
        main=main != 0,
    )


def change_to_write(change: Any) -> SnapshotWrite:
    """Convert a catalog change. CREATE TABLE starts a table; other DDL keeps its rows."""
    creates = change.kind == "CreateTable"
    return SnapshotWrite(
        id=bytes(change.id),
        barrier=0,
        commit_id=None,
        dataset=_bytes(change.dataset),
        name=(change.catalog, change.database_name, change.table_name),
        generation=change.generation,
        branch=change.branch,
        snapshot=change.produced,
        version=None,
        opaque=None,
        parent=None if creates else change.parent_snapshot,
        kind=change.kind,
        replaced=ALL if creates else NOTHING,
        made_from=ALL,
        format=None,
        candidates=None,
        last=change.time,
        at=change.time,
        job=_NOBODY,
        parent_job=_NOBODY,
        run=None,
        fingerprint=None,
    )


def _to_read(found: Iterable[Any]) -> SnapshotRead:
    """Convert a row of `reads`, by the order of its columns."""
    read, barrier, commit, dataset, catalog, database, table, *others = found
    return SnapshotRead(bytes(read), barrier, bytes(commit), _bytes(dataset), (catalog, database, table), *others)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def is_unordered(table_format: str | None) -> bool:
    """Whether a format's snapshot ids don't tell which snapshot came first, or nobody here knows that they do."""
    return table_format is not None and table_format not in ORDERED


def known_sources(connection: Connection, datasets: Collection[bytes]) -> set[bytes]:
    """Return the datasets that any commit read."""
    return {bytes(place.dataset) for place in _places_read().by_key(connection, datasets)}


@cache
def _places_read() -> PairLookup:
    place, read = table_of(t.PLACE).c, table_of(t.READ)
    is_read = row_exists(read, where=read.c.place_id == place.id)
    return PairLookup(select(place.dataset).where(place.mode.is_not(None), is_read), place.dataset, place.id)


def load_ranges_containing(connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[SnapshotRead]:
    """Load reads of changes that can include these snapshots: by number, where numbers are ordered."""
    numbers: dict[bytes, list[int]] = {}
    for dataset, number in keys:
        numbers.setdefault(dataset, []).append(number)
    places = list(_places_of_changes().by_key(connection, numbers))
    ordered = [
        (bytes(place.id), one) for place in places if not _has_no_order(place) for one in numbers[bytes(place.dataset)]
    ]
    yield from map(_to_read, _ranges().among(connection, ordered, is_lazy=True))
    row, others = access_of(t.READ).c, [bytes(place.id) for place in places if _has_no_order(place)]
    beginning_known = reads().where(row.since_snapshot.is_not(None))
    yield from map(_to_read, select_by_keys(connection, beginning_known, row.place_id, others))


def _has_no_order(place: Any) -> bool:
    return is_unordered(place.format)


@cache
def _places_of_changes() -> PairLookup:
    place = table_of(t.PLACE).c
    return PairLookup(
        select(place.id, place.dataset, place.format).where(place.mode == CHANGES), place.dataset, place.id
    )


@cache
def _ranges() -> RangeLookup:
    row = access_of(t.READ).c
    return RangeLookup(reads().where(row.mode == CHANGES), row.place_id, row.snapshot, row.since_snapshot)


def write_places(connection: Connection, datasets: Iterable[bytes]) -> list[bytes]:
    """Return the places at which commits write these datasets."""
    return [place for place, _ in place_keys(connection, t.WRITE, ((dataset, None) for dataset in datasets))]


def load_unversioned_before(connection: Connection, datasets: Collection[bytes], at: int) -> Iterator[SnapshotWrite]:
    """Load the writes of a dataset without versions, newest first."""
    row = access_of(t.WRITE).c
    return _newest_first(connection, _writes().where(row.first <= at, row.snapshot.is_(None)), datasets)


def load_written_before(connection: Connection, datasets: Collection[bytes], at: int | None) -> Iterator[SnapshotWrite]:
    """Load all writes of a dataset, or those until a time, newest first."""
    chosen = _writes() if at is None else _writes().where(access_of(t.WRITE).c.first <= at)
    return _newest_first(connection, chosen, datasets)


def _newest_first(connection: Connection, chosen: Any, datasets: Collection[bytes]) -> Iterator[SnapshotWrite]:
    """Each place is read by itself, in the order of an index."""
    row = access_of(t.WRITE).c
    ordered = chosen.order_by(row.first.desc(), row.id)
    places = write_places(connection, datasets)
    found = (_in_portions(connection, ordered.where(row.place_id == place)) for place in places)
    return map(to_write, merge(*found, key=BY_TIME, reverse=True))


def _in_portions(connection: Connection, ordered: Any) -> Iterator[Any]:
    for start in count(0, _PORTION):
        found = connection.execute(ordered.limit(_PORTION).offset(start)).all()
        yield from found
        if len(found) < _PORTION:
            return


def known_targets(connection: Connection, datasets: Collection[bytes]) -> set[bytes]:
    """Return the datasets that have any known source."""
    row = table_of(t.TABLE_EDGE).c
    return {
        bytes(target[0]) for target in select_by_keys(connection, select(row.target).distinct(), row.target, datasets)
    }
