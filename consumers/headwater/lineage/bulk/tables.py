"""Tables beside the rows that events make: what a writer keeps of itself. None is in the digest.

They stand on the same metadata, so that whoever makes the store's tables makes these too.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, SmallInteger, Table
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from headwater.lineage.rows import Type
from headwater.lineage.sql.tables import METADATA, TYPES

_TEXT: Final = TYPES[Type.TEXT]
_HASH: Final = TYPES[Type.BINARY]
_BYTES: Final = LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


def _table(name: str, *columns: Column[Any]) -> Table:
    return Table(name, METADATA, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4")


def _needed(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _id() -> Column[Any]:
    """The hash of what names a row: MySQL has no keys of long texts."""
    return Column("id", _HASH, primary_key=True)


OFFSETS: Final = _table(
    "consumer_offsets",
    _id(),
    _needed("consumer_group", _TEXT),
    _needed("cluster", _TEXT),
    _needed("topic", _TEXT),
    _needed("partition_number", Integer()),
    _needed("next_offset", BigInteger()),
    _needed("moved_at", BigInteger()),
)
"""What a consumer group reads next of a partition. It goes forward only. Clusters and topics stand there by their ids:
a topic that was made anew is another one."""

INGESTS: Final = _table(
    "ingests",
    _id(),
    _needed("source", _TEXT),
    _needed("cluster", _TEXT),
    _needed("topic", _TEXT),
    _needed("topic_name", _TEXT),
    _needed("partition_number", Integer()),
    Column("producer", _HASH),
    _needed("stored_until", BigInteger()),
    _needed("stored_at", BigInteger()),
)
"""Up to which time all of a partition is here: the bus's append time, and for what comes straight from a driver (source
`jdbc`, the producer in the place of a partition) the driver's own. Microseconds; it goes forward only. `stored_at` is
when the writer said so."""

INSTANTS: Final = _table(
    "instants",
    Column("writer", _HASH, primary_key=True),
    Column("number", BigInteger(), primary_key=True, autoincrement=False),
    _needed("state", _TEXT),
    _needed("requested_at", BigInteger()),
    Column("inflight_at", BigInteger()),
    Column("completed_at", BigInteger()),
    Column("detail", _TEXT),
)
"""The timeline of each writer process: REQUESTED, INFLIGHT, COMPLETED."""

LETTERS: Final = _table(
    "dead_letters",
    _id(),
    _needed("state", _TEXT),
    _needed("reason", _TEXT),
    _needed("words", _TEXT),
    _needed("source", _TEXT),
    _needed("cluster", _TEXT),
    _needed("topic", _TEXT),
    _needed("topic_name", _TEXT),
    _needed("partition_number", Integer()),
    _needed("position", BigInteger()),
    Column("producer", _HASH),
    Column("sequence", BigInteger()),
    Column("kind", _TEXT),
    Column("appended", BigInteger()),
    _needed("at", BigInteger()),
    _needed("attempts", Integer()),
    Column("record_key", _BYTES),
    _needed("headers", _TEXT),
    _needed("data", _BYTES),
    Column("mirrored_at", BigInteger()),
)
"""Events that couldn't be stored, with all that it takes to try again. `mirrored_at` is when one was sent to the
dead-letter topic; what didn't come from Kafka has none, and says so from the beginning."""
_UNSENT: Final = Index("ix_dead_letters_mirrored_at", LETTERS.c.mirrored_at, LETTERS.c.at)

EPOCHS: Final = _table(
    "cache_epochs",
    Column("id", SmallInteger(), primary_key=True, autoincrement=False),
    _needed("epoch", BigInteger()),
)
"""One row, which counts deletions, expiries and restores: what a writer knows to be in the store may be gone after one.
"""

OWN: Final = (OFFSETS, INGESTS, INSTANTS, LETTERS, EPOCHS)
