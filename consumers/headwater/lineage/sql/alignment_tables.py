"""The tables of aligned jobs: which snapshots a group of jobs reads together. They are decisions, and no facts from
events, so they aren't part of the store's digest, and a replay takes them over.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Table
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

ALIGNMENT_TABLES: Final = (ALIGNMENT_GROUPS, DATA_VERSIONS, ALIGNED_JOBS)
"""In the order in which a transaction comes to them."""
