"""Names that are no tables but parts of one: its branches and tags, and the metadata tables of Iceberg and Paimon."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from sqlalchemy import Connection

from headwater.lineage.questions.names import UnknownNameError, find_dataset

_ICEBERG: Final = frozenset(
    {
        *("all_data_files", "all_delete_files", "all_entries", "all_files", "all_manifests", "changes", "data_files"),
        *("delete_files", "entries", "files", "history", "manifests", "metadata_log_entries", "partitions"),
        *("position_deletes", "refs", "snapshots"),
    }
)
MAIN: Final = "main"
"""The branch that a table's name means."""


class PartKind(str, Enum):
    """What of a table a name means."""

    BRANCH = "branch"
    TAG = "tag"
    SNAPSHOT = "snapshot"
    TIME = "time"
    METADATA = "metadata table"


_PREFIXES: Final = {
    "branch_": PartKind.BRANCH,
    "tag_": PartKind.TAG,
    "snapshot_id_": PartKind.SNAPSHOT,
    "at_timestamp_": PartKind.TIME,
}


class TablePart(NamedTuple):
    """A part of a table, as Spark names it: `lake.db.t.branch_test`, `lake.db.t.snapshots`, `lake.db.t$snapshots`."""

    table: str
    kind: PartKind
    name: str
    """`test` of `branch_test`, `snapshots` of a metadata table."""

    @property
    def text(self) -> str:
        if self.kind is PartKind.METADATA:
            return f"a metadata table of {self.table}"
        return f"the {self.kind.value} {self.name} of {self.table}"


def part_of(name: str) -> TablePart | None:
    """Return which part of which table a name means, if that table is there; None if it can't mean one."""
    table, dollar, last = name.partition("$")
    if table.count("`") % 2:
        table += "`"
    if not dollar:
        table, _, last = name.rpartition(".")
    last = last.strip("`")
    if not table or not last:
        return None
    for prefix, kind in _PREFIXES.items():
        if last.startswith(prefix) and len(last) > len(prefix):
            return TablePart(table, kind, last[len(prefix) :])
    return TablePart(table, PartKind.METADATA, last) if dollar or last.lower() in _ICEBERG else None


def find_part(connection: Connection, name: str) -> TablePart | None:
    """Return which part of a table that the store knows a name means; None if the store knows a table of that name."""
    part = part_of(name)
    if part is None or _is_known(connection, name) or not _is_known(connection, part.table):
        return None
    return part


def split_branch(connection: Connection, name: str) -> tuple[str, str | None]:
    """Return the table that the store knows and the branch of it that a name means; no branch for main."""
    part = find_part(connection, name)
    if part is None or part.kind is not PartKind.BRANCH:
        return name, None
    return part.table, None if part.name == MAIN else part.name


def _is_known(connection: Connection, table: str) -> bool:
    try:
        find_dataset(connection, table)
    except UnknownNameError:
        return False
    return True
