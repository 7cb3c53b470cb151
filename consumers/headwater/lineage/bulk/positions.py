"""How far a bus has been read: offsets of consumer groups, and up to when everything is here. Both go forward only."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.bulk.api import Ingest, Offset, Partition
from headwater.lineage.bulk.putting import forward, put
from headwater.lineage.bulk.tables import INGESTS, OFFSETS
from headwater.lineage.law.telling import clean
from headwater.lineage.rows import hash_of


def advance(connection: Connection, offsets: Iterable[Offset]) -> None:
    """One that is behind what is there changes nothing."""
    rows = [_offset_row(each) for each in offsets]
    put(connection, OFFSETS, rows, forward("next_offset", "moved_at"))


def offsets_of(connection: Connection, group: str, cluster: str | None = None) -> dict[Partition, int]:
    """What a group reads next."""
    column = OFFSETS.c
    wanted = select(column.cluster, column.topic, column.partition_number, column.next_offset).where(
        column.consumer_group == group
    )
    if cluster is not None:
        wanted = wanted.where(column.cluster == cluster)
    return {Partition(each[0], each[1], each[2]): each[3] for each in connection.execute(wanted)}


def ingested(connection: Connection, ingests: Iterable[Ingest]) -> None:
    rows = [_ingest_row(each) for each in ingests]
    put(connection, INGESTS, rows, forward("stored_until", "stored_at"))


def bus_stored_until(connection: Connection) -> int | None:
    """Up to when all of every partition is here that a writer reads: None where none does. A topic that was made anew
    has taken the place of the one of that name."""
    column = INGESTS.c
    wanted = select(
        column.source, column.cluster, column.topic, column.topic_name, column.partition_number, column.stored_until
    ).where(column.producer.is_(None))
    newest: dict[tuple[Any, ...], int] = {}
    for source, cluster, topic, name, number, until in connection.execute(wanted.order_by(column.stored_at, column.id)):
        newest[source, cluster, name or topic, number] = until
    return min(newest.values(), default=None)


def now() -> int:
    """In microseconds."""
    return time.time_ns() // 1_000


def _offset_row(offset: Offset) -> dict[str, Any]:
    where = _where(offset.partition)
    key = (offset.group, *where.values())
    return {
        "id": hash_of(OFFSETS.name, key),
        "consumer_group": offset.group,
        **where,
        "next_offset": offset.next,
        "moved_at": now(),
    }


def _ingest_row(ingest: Ingest) -> dict[str, Any]:
    where = _where(ingest.partition)
    producer = None if ingest.producer is None else ingest.producer.bytes
    return {
        "id": hash_of(INGESTS.name, (ingest.source, producer, *where.values())),
        "source": ingest.source,
        **where,
        "topic_name": clean(ingest.topic_name),
        "producer": producer,
        "stored_until": ingest.until,
        "stored_at": now(),
    }


def _where(partition: Partition) -> dict[str, Any]:
    return {"cluster": partition.cluster, "topic": partition.topic, "partition_number": partition.number}
