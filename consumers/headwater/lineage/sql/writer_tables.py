"""The tables that a writer keeps for itself, and those of aligned jobs and corrections.

Aligned jobs write which snapshots a group of jobs reads together, and corrections how far they are: decisions, and no
facts from events. So none of these tables is part of the store's digest, and a replay takes the decisions over.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, SmallInteger, Table
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from headwater.lineage.rows import ColumnType
from headwater.lineage.sql.tables import METADATA, TYPES

_TEXT: Final = TYPES[ColumnType.TEXT]
_HASH: Final = TYPES[ColumnType.BINARY]


def _table(name: str, *columns: Column[Any]) -> Table:
    return Table(name, METADATA, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4")


def _required_column(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _key(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


ALIGNMENT_GROUPS: Final = _table(
    "alignment_groups",
    _key("id", _HASH),
    _required_column("name", _TEXT),
    _required_column("tables", _TEXT),
    _required_column("newest", BigInteger()),
    _required_column("created_at", BigInteger()),
)
"""Groups of jobs that read the same snapshots. `tables` is a JSON list, which never changes. `newest` is the number of
the newest data version, 0 before the first one; it is increased by compare-and-set."""

DATA_VERSIONS: Final = _table(
    "data_versions",
    _key("group_id", _HASH),
    _key("number", BigInteger()),
    _required_column("cut", _TEXT),
    _required_column("claimed_by", _TEXT),
    _required_column("claimed_at", BigInteger()),
)
"""The data versions of each group. `cut` is a JSON object: each table's snapshot. A row never changes."""

ALIGNED_JOBS: Final = _table(
    "aligned_jobs",
    _key("group_id", _HASH),
    _key("job_id", _HASH),
    _required_column("job", _TEXT),
    _required_column("checkpoint", _TEXT),
    _required_column("epoch", BigInteger()),
    Column("done", BigInteger()),
    Column("running", BigInteger()),
    _required_column("moved_at", BigInteger()),
)
"""How far each job of a group is: the data version that it has committed last, and the one that it works on. `epoch`
counts its starts, so that a process that was thought to be dead finds out that another one has taken over."""

CORRECTIONS: Final = _table(
    "corrections",
    _key("id", _HASH),
    _required_column("name", _TEXT),
    _required_column("source", _TEXT),
    _required_column("snapshot", BigInteger()),
    _required_column("mode", _TEXT),
    _required_column("state", _TEXT),
    _required_column("plan", _TEXT),
    _required_column("epoch", BigInteger()),
    _required_column("made_at", BigInteger()),
    _required_column("moved_at", BigInteger()),
)
"""Corrections that were begun. `plan` is JSON, which never changes. `epoch` counts the processes that worked on it, so
that one that was thought to be dead finds out that another one has taken over."""

CORRECTION_STEPS: Final = _table(
    "correction_steps",
    _key("correction_id", _HASH),
    _key("number", BigInteger()),
    _required_column("kind", _TEXT),
    _required_column("subject", _TEXT),
    _required_column("state", _TEXT),
    _required_column("detail", _TEXT),
    _required_column("moved_at", BigInteger()),
)
"""What a correction does, step by step. `detail` is a JSON object. A step is RUNNING before anything is done for it."""

DECISION_TABLES: Final = (ALIGNMENT_GROUPS, DATA_VERSIONS, ALIGNED_JOBS, CORRECTIONS, CORRECTION_STEPS)
"""In the order in which a transaction comes to them."""


_BYTES: Final = LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


def _id() -> Column[Any]:
    """Return the primary key: a hash of what identifies a row, because MySQL can't index long texts completely."""
    return Column("id", _HASH, primary_key=True)


OFFSETS: Final = _table(
    "consumer_offsets",
    _id(),
    _required_column("consumer_group", _TEXT),
    _required_column("cluster", _TEXT),
    _required_column("topic", _TEXT),
    _required_column("partition_number", Integer()),
    _required_column("next_offset", BigInteger()),
    _required_column("moved_at", BigInteger()),
)
"""The next offset of a consumer group in a partition. It only increases. Clusters and topics stand there by id, so a
recreated topic is another one."""

INGESTS: Final = _table(
    "ingest_progress",
    _id(),
    _required_column("source", _TEXT),
    _required_column("cluster", _TEXT),
    _required_column("topic", _TEXT),
    _required_column("topic_name", _TEXT),
    _required_column("partition_number", Integer()),
    Column("producer", _HASH),
    _required_column("stored_until", BigInteger()),
    _required_column("stored_at", BigInteger()),
)
"""The time up to which a partition is completely stored: the bus's append time, or the driver's own time for events
that come directly from a driver (source `jdbc`, with the producer instead of a partition). Microseconds; it only
increases. `stored_at` is when the writer recorded it."""

INSTANTS: Final = _table(
    "writer_instants",
    Column("writer", _HASH, primary_key=True),
    Column("number", BigInteger(), primary_key=True, autoincrement=False),
    _required_column("state", _TEXT),
    _required_column("requested_at", BigInteger()),
    Column("completed_at", BigInteger()),
    Column("detail", _TEXT),
)
"""The instants of each writer process: REQUESTED, COMPLETED or GIVEN_UP."""

DEAD_LETTERS: Final = _table(
    "dead_letters",
    _id(),
    _required_column("state", _TEXT),
    _required_column("reason", _TEXT),
    _required_column("error", _TEXT),
    _required_column("source", _TEXT),
    _required_column("cluster", _TEXT),
    _required_column("topic", _TEXT),
    _required_column("topic_name", _TEXT),
    _required_column("partition_number", Integer()),
    _required_column("position", BigInteger()),
    Column("producer", _HASH),
    Column("sequence", BigInteger()),
    Column("kind", _TEXT),
    Column("append_time", BigInteger()),
    _required_column("created_at", BigInteger()),
    _required_column("attempts", Integer()),
    Column("record_key", _BYTES),
    _required_column("headers", _TEXT),
    _required_column("data", _BYTES),
)
"""Events that couldn't be stored or sent, with everything that a retry needs. Forwarders have the same table."""
_STATE_LENGTH: Final = 16
"""MySQL wants to know how much of a text is in an index."""
_BY_STATE: Final = Index(
    "ix_dead_letters_state",
    DEAD_LETTERS.c.state,
    DEAD_LETTERS.c.created_at,
    mysql_length={"state": _STATE_LENGTH},
    mariadb_length={"state": _STATE_LENGTH},
)

EPOCHS: Final = _table(
    "deletion_epochs",
    Column("id", SmallInteger(), primary_key=True, autoincrement=False),
    _required_column("epoch", BigInteger()),
)
"""One row that counts deletions, expiries and restores. After each of them, rows may be gone that a writer knew to be
stored."""

MARKS: Final = _table(
    "writer_marks",
    _id(),
    _required_column("number", BigInteger()),
    _required_column("moved_at", BigInteger()),
    Column("set_back_at", BigInteger()),
)
"""How many transactions each connection of a writer has committed. A number that is less than the writer remembers
shows it that the database was set back; `set_back_at` is when it noticed that, in microseconds."""

WRITER_TABLES: Final = (OFFSETS, INGESTS, INSTANTS, DEAD_LETTERS, EPOCHS, MARKS)
