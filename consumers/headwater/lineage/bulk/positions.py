"""Offsets of consumer groups, and the time up to which each partition is stored. Both only increase."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.bulk.api import BusPartition, ConsumerOffset, IngestProgress
from headwater.lineage.mapping.keys import clean_text
from headwater.lineage.rows import hash_key
from headwater.lineage.sql.upsert import insert_or_update, keep_greatest
from headwater.lineage.sql.writer_tables import INGESTS, OFFSETS


def advance_offsets(connection: Connection, offsets: Iterable[ConsumerOffset]) -> None:
    """Store offsets. An offset that is less than the stored one changes nothing."""
    rows = [offset_row(each) for each in offsets]
    insert_or_update(connection, OFFSETS, rows, keep_greatest("next_offset", "moved_at"))


def select_offsets(connection: Connection, group: str, cluster: str | None = None) -> dict[BusPartition, int]:
    """Return the next offset of each partition that a group reads."""
    column = OFFSETS.c
    query = select(column.cluster, column.topic, column.partition_number, column.next_offset).where(
        column.consumer_group == group
    )
    if cluster is not None:
        query = query.where(column.cluster == cluster)
    return {BusPartition(each[0], each[1], each[2]): each[3] for each in connection.execute(query)}


def select_groups(connection: Connection) -> set[str]:
    """Return the groups that have offsets."""
    return {*connection.execute(select(OFFSETS.c.consumer_group).distinct()).scalars()}


def advance_ingests(connection: Connection, ingests: Iterable[IngestProgress]) -> None:
    rows = [ingest_row(each) for each in ingests]
    insert_or_update(connection, INGESTS, rows, keep_greatest("stored_until", "stored_at"))


def bus_stored_until(connection: Connection) -> int | None:
    """Return the time up to which every partition of every bus is stored, or None without a bus. A recreated topic
    replaces the older one of its name."""
    newest: dict[tuple[Any, ...], int] = {}
    rows: Iterable[Any] = connection.execute(_select_stored())
    for source, cluster, topic, name, number, until in rows:
        newest[source, cluster, name or topic, number] = until
    return min(newest.values(), default=None)


@cache
def _select_stored() -> Any:
    """Build the statement once: building it takes longer than executing it."""
    column = INGESTS.c
    partition = (column.source, column.cluster, column.topic, column.topic_name, column.partition_number)
    stored = select(*partition, column.stored_until).where(column.producer.is_(None))
    return stored.order_by(column.stored_at, column.id)


def now_micros() -> int:
    """Return the current time in microseconds."""
    return time.time_ns() // 1_000


def offset_row(offset: ConsumerOffset) -> dict[str, Any]:
    where = _where(offset.partition)
    key = (offset.group, *where.values())
    return {
        "id": hash_key(OFFSETS.name, key),
        "consumer_group": offset.group,
        **where,
        "next_offset": offset.next,
        "moved_at": now_micros(),
    }


def ingest_row(ingest: IngestProgress) -> dict[str, Any]:
    where = _where(ingest.partition)
    producer = None if ingest.producer is None else ingest.producer.bytes
    return {
        "id": hash_key(INGESTS.name, (ingest.source, producer, *where.values())),
        "source": ingest.source,
        **where,
        "topic_name": clean_text(ingest.topic_name),
        "producer": producer,
        "stored_until": ingest.until,
        "stored_at": now_micros(),
    }


def _where(partition: BusPartition) -> dict[str, Any]:
    return {"cluster": partition.cluster, "topic": partition.topic, "partition_number": partition.number}
