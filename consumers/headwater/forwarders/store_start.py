"""A forwarder that begins with what a store has: its rows become records, and the bus goes on from the store's offsets.

The offsets are read first. So what the writer stores meanwhile comes from the bus too, and nothing is missed. Rows that
a deletion hides aren't sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Engine, Select, and_, func, select

from headwater.consumers.sources import BusRecord, EventSource, SourceBatch
from headwater.errors import TerminalError
from headwater.events import Event
from headwater.events.avro import Codec
from headwater.events.keys import key_of
from headwater.forwarders.store_events import (
    CommitRows,
    LineageRows,
    StoredRow,
    commit_event,
    current_modifications,
    lineage_event,
    modification_event,
)
from headwater.lineage.bulk import BulkLineageMeta, BusPartition
from headwater.lineage.rows import hash_key
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import RowKind
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.tables import stamp_name, table_of
from headwater.lineage.sql.tombstones import commit_not_hidden, not_hidden

_LARGEST: Final = 64 << 20
"""Bytes of an event: job lineage that drivers split is whole here."""
_PARTITION: Final = BusPartition("store", "store")
_PAGE: Final = 200


class StoreStart:
    """What a store has, for one group of the writer that fills it."""

    def __init__(self, store: BulkLineageMeta, engine: Engine, group: str) -> None:
        self._engine = engine
        self.offsets: Final[Mapping[BusPartition, int]] = dict(store.offsets(group))
        """Where the bus goes on."""
        if not self.offsets:
            raise TerminalError(
                f"the store has no offsets of the group {group}: name that of its writer by --writer-group, or begin "
                "at the beginning of the bus"
            )

    def open(self) -> EventSource:
        return StoreSource(self._engine)


class StoreSource:
    """A source of the events that a store's rows make. Each has the same offset whenever it is read."""

    kind = topic = "store"

    def __init__(self, engine: Engine) -> None:
        self._connection = engine.connect()
        self._codec = Codec(max_bytes=_LARGEST)
        self._events = store_events(self._connection)
        self._is_read = False

    def poll(self, most: int, timeout: float) -> SourceBatch:  # noqa: ARG002 - nothing new comes
        records = tuple(map(self._record, islice(self._events, most)))
        self._is_read = not records
        return SourceBatch(records, {_PARTITION: records[-1].offset + 1} if records else {})

    def _record(self, event: Event) -> BusRecord:
        """The offset is a hash of the event's id: dead letters are known by it."""
        named = hash_key("store_event", (event.producer.bytes, event.sequence))
        offset = int.from_bytes(named[:7], "big")
        return BusRecord(self._codec.encode(event), _PARTITION, offset, None, key_of(event))

    def rest(self) -> None:
        """Do nothing: rows wait."""

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        """Do nothing: who didn't come to the end reads all of it again."""

    def rewind(self) -> None:
        self._events = store_events(self._connection)

    def lag(self) -> int | None:
        return 0 if self._is_read else None

    def close(self) -> None:
        self._connection.close()


def store_events(connection: Connection) -> Iterator[Event]:
    """Yield the events of all that a store has now: tables, views and databases; then each statement's job lineage with
    its newest commit."""
    yield from _modifications(connection)
    for page in _pages(_newest_commits(connection)):
        yield from _commits(connection, page)


def _modifications(connection: Connection) -> Iterator[Event]:
    table, catalog = table_of(t.MODIFICATION), table_of(t.CATALOG)
    order = (table.c.time, table.c.producer, table.c.sequence)
    keys = select(
        *(table.c[name] for name in ("id", "dataset", "catalog_id", "catalog", "database_name", "kind", "effect"))
    ).order_by(*order)
    current = current_modifications(
        (row.id, row.dataset or (row.catalog_id, row.catalog, row.database_name), row.kind, row.effect)
        for row in connection.execute(keys)
    )
    named = {"catalog_type": catalog.c.type, "catalog_location": catalog.c.location}
    joined = _with_dataset(table).outerjoin(catalog, catalog.c.id == table.c.catalog_id)
    query = _select(table, joined, named).order_by(*order).execution_options(yield_per=_PAGE)
    for row in connection.execute(query).mappings():
        if row["id"] in current and (event := modification_event(row)) is not None:
            yield event


def _newest_commits(connection: Connection) -> Iterator[StoredRow]:
    """Yield the newest commit of each statement of each job, as far as nothing hides it."""
    table = table_of(t.COMMIT)
    by = ("fingerprint", "job_namespace", "job")
    newest = (
        select(*(table.c[name] for name in by), func.max(table.c.barrier).label("newest"))
        .where(table.c.fingerprint.is_not(None), commit_not_hidden(table.c))
        .group_by(*(table.c[name] for name in by))
    ).subquery()
    same = [table.c[name] == newest.c[name] for name in by]
    query = select(table).join(newest, and_(table.c.barrier == newest.c.newest, *same)).order_by(table.c.barrier)
    yield from connection.execute(query).mappings().all()


def _commits(connection: Connection, commits: Sequence[StoredRow]) -> Iterator[Event]:
    ids = [commit["id"] for commit in commits]
    reads, writes = (_accesses(connection, kind, ids) for kind in (t.READ, t.WRITE))
    hidden = _hidden_writes(connection, ids)
    made_from = _made_from(connection, [row["id"] for rows in writes.values() for row in rows])
    lineages = _lineages(connection, {commit["fingerprint"] for commit in commits})
    for commit in commits:
        rows = CommitRows(commit, reads.get(commit["id"], []), writes.get(commit["id"], []), made_from)
        if not rows.writes or hidden.intersection(row["id"] for row in rows.writes):
            continue
        if (found := lineages.pop(commit["fingerprint"], None)) is not None:
            yield lineage_event(LineageRows(*found, time=commit["last"]))
        yield commit_event(rows)


def _accesses(connection: Connection, kind: RowKind, commits: Sequence[bytes]) -> dict[bytes, list[StoredRow]]:
    """Return reads or writes by commit, with their places."""
    table, place = table_of(kind), table_of(t.PLACE)
    more = {column.name: column for column in place.c if column.name not in {"id", *table.c.keys()}}
    joined = table.join(place, place.c.id == table.c.place_id)
    dataset = table_of(t.DATASET)
    query = _select(table, joined.outerjoin(dataset, dataset.c.id == place.c.dataset), more)
    return _by(connection, query.where(table.c.commit_id.in_(commits)).order_by(table.c.id), "commit_id")


def _hidden_writes(connection: Connection, commits: Sequence[bytes]) -> set[bytes]:
    """Return the writes that a deletion hides."""
    write, place, commit = table_of(t.WRITE), table_of(t.PLACE), table_of(t.COMMIT)
    row = (
        select(write.c.id, write.c.commit_id, write.c.last, write.c.snapshot)
        .add_columns(*(place.c[name] for name in ("dataset", "catalog", "database_name", "table_name", "generation")))
        .select_from(write.join(place, place.c.id == write.c.place_id))
        .where(write.c.commit_id.in_(commits))
        .subquery()
    )
    seen = (
        select(row.c.id)
        .select_from(row.join(commit, commit.c.id == row.c.commit_id))
        .where(not_hidden(row.c, commit.c, DATA))
    )
    every = {each[0] for each in connection.execute(select(row.c.id))}
    return every - {each[0] for each in connection.execute(seen)}


def _made_from(connection: Connection, writes: Sequence[bytes]) -> dict[bytes, list[bytes]]:
    edge = table_of(t.COMMIT_EDGE)
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for page in _pages(iter(writes)):
        query = select(edge.c.write_id, edge.c.read_id).where(edge.c.write_id.in_(page))
        for write, read in connection.execute(query):
            found[write].append(read)
    return found


def _lineages(
    connection: Connection, fingerprints: set[bytes]
) -> dict[bytes, tuple[StoredRow, list[StoredRow], list[StoredRow]]]:
    """Return of each job lineage the variant that arrived first, with its tables and columns."""
    lineage = table_of(t.JOB_LINEAGE)
    query = select(lineage).where(lineage.c.fingerprint.in_(fingerprints)).order_by(lineage.c[stamp_name("first")])
    first: dict[bytes, StoredRow] = {}
    for row in connection.execute(query).mappings():
        first.setdefault(row["fingerprint"], row)
    places, columns = table_of(t.JOB_LINEAGE_TABLE), table_of(t.JOB_LINEAGE_COLUMN)
    tables = _select(places, _with_dataset(places), {}).where(places.c.fingerprint.in_(first))
    by_place = _by(connection, tables.order_by(places.c.side, places.c.position), "fingerprint")
    edges = select(columns).where(columns.c.fingerprint.in_(first)).order_by(columns.c.output, columns.c.input)
    by_edge = _by(connection, edges.order_by(columns.c.id), "fingerprint")
    return {
        key: (row, _of_variant(by_place.get(key, []), row), _of_variant(by_edge.get(key, []), row))
        for key, row in first.items()
    }


def _of_variant(rows: list[StoredRow], lineage: StoredRow) -> list[StoredRow]:
    return [row for row in rows if row["variant"] == lineage["variant"]]


def _with_dataset(table: Any) -> Any:
    dataset = table_of(t.DATASET)
    return table.outerjoin(dataset, dataset.c.id == table.c.dataset)


def _select(table: Any, joined: Any, more: Mapping[str, Any]) -> Any:
    """Select a table's columns, the name of its dataset, and more columns by their names."""
    dataset = table_of(t.DATASET).c
    named = {"dataset_namespace": dataset.namespace, "dataset_name": dataset.name, **more}
    return select(table, *(column.label(name) for name, column in named.items())).select_from(joined)


def _by(connection: Connection, query: Select[Any], column: str) -> dict[bytes, list[StoredRow]]:
    found: dict[bytes, list[StoredRow]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row[column]].append(row)
    return found


def _pages(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while page := list(islice(rows, _PAGE)):
        yield page
