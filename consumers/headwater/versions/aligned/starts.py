"""Where an aligned job begins: at the newest data version, at a certain one, or after what a table contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.errors import ConfigurationError
from headwater.events.jobs import StartPosition, StartReason
from headwater.events.names import DatasetId, TableName
from headwater.lineage.questions.names import find, find_known, parts_of
from headwater.lineage.store import Store, translate_errors
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.cuts import Cut, TableSnapshot
from headwater.versions.questions import contained
from headwater.versions.table_parts import split_branch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlalchemy import Connection


def start_options(source: str, cut: Cut, spark: SparkSession | None = None) -> dict[str, str]:
    """Return the options with which Spark's `readStream` on a table begins after the snapshot that a cut has of it."""
    if spark is None:
        from pyspark.sql import SparkSession as Sessions  # noqa: PLC0415 - an extra

        spark = Sessions.getActiveSession()
        if spark is None:
            raise ConfigurationError("there is no Spark session here: give one as spark=")
    if source not in cut.snapshots:
        raise ConfigurationError(f"the cut has no {source}: it is of {', '.join(sorted(cut.snapshots))}")
    return TableLooker(spark).source(source).stream_options(cut[source].snapshot)


def contained_cut(looker: TableLooker, store: Store, start: str, tables: Mapping[str, str]) -> Cut:
    """Return which snapshots of these tables are in another table at a snapshot: `lake.db.b@11`."""
    with translate_errors(store.target.words), store.engine.connect() as connection:
        answer = contained(connection, start)
        datasets = {table: find(connection, split_branch(connection, table)[0]).dataset for table in tables.values()}
    labels = {dataset.label for dataset in datasets.values()}
    doubts = [limit for limit in answer.limits if limit.about.partition("@")[0] not in labels]
    if doubts:  # those about a source itself are about what it was made from
        raise ConfigurationError(
            f"what {answer.of.label} contains isn't known for sure: {doubts[0].about}: {doubts[0].detail}. "
            "Begin at a data version, by its number"
        )
    found: dict[str, TableSnapshot] = {}
    for table, dataset in datasets.items():
        rows = [row for row in answer.rows if row.table.dataset.key == dataset.key]
        versions = {(row.table.snapshot, row.table.position) for row in rows}
        if len(versions) != 1 or not all(row.is_whole for row in rows) or rows[0].table.position is not None:
            known = ", ".join(sorted({row.table.label for row in rows})) or "nothing of it"
            raise ConfigurationError(
                f"{answer.of.label} contains {known}: a job can begin after it only if it contains one snapshot of "
                f"{table} as a whole. Begin at a data version, by its number"
            )
        snapshot = rows[0].table.snapshot
        if snapshot is None:
            raise ConfigurationError(f"which snapshot of {table} is in {answer.of.label} isn't known")
        found[table] = looker.source(table).at(snapshot)
        if rows[0].table.generation not in (None, found[table].generation):
            raise ConfigurationError(f"{table} was dropped and made again since {answer.of.label} was made from it")
    return Cut(found)


def start_positions(store: Store, cut: Cut) -> tuple[StartPosition, ...]:
    """Return what a job's start tells of its sources."""
    with translate_errors(store.target.words), store.engine.connect() as connection:
        return tuple(_position(connection, table, snapshot) for table, snapshot in sorted(cut.snapshots.items()))


def _position(connection: Connection, table: str, each: TableSnapshot) -> StartPosition:
    stored, branch = split_branch(connection, table)
    catalog, database, name = _parts(stored)
    known = find_known(connection, stored)
    dataset = None if known is None else DatasetId(namespace=known.namespace, name=known.name)
    return StartPosition(
        dataset=dataset,
        table=TableName(catalog=catalog, database=database, table=name),
        generation=each.generation,
        branch=branch,
        main=branch is None,
        snapshot=each.snapshot,
        reason=StartReason.ALIGNED,
    )


def _parts(table: str) -> tuple[str, str, str]:
    """Return a table's catalog, database and name; the catalog is Spark's own where none is named."""
    *rest, name = parts_of(table)
    return (rest[0], ".".join(rest[1:]), name) if len(rest) > 1 else ("spark_catalog", ".".join(rest), name)
