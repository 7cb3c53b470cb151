"""What table formats call a commit in their own logs, as commit kinds.

A listener reads these words from a driver's commit, and reconciling reads them from a table's log: both have to say the
same of one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events.jobs import CommitKind

ICEBERG_KINDS: Final[Mapping[str, CommitKind]] = {
    "append": CommitKind.APPEND,
    "replace": CommitKind.REPLACE,
    "overwrite": CommitKind.OVERWRITE,
    "delete": CommitKind.DELETE,
}
DELTA_KINDS: Final[Mapping[str, CommitKind]] = {
    "DELETE": CommitKind.DELETE,
    "TRUNCATE": CommitKind.TRUNCATE,
    "MERGE": CommitKind.MERGE,
    "UPDATE": CommitKind.UPDATE,
    "OPTIMIZE": CommitKind.COMPACT,
    "REORG": CommitKind.COMPACT,
    "RESTORE": CommitKind.RESTORE,
    "CLONE": CommitKind.CLONE,
    "VACUUM START": CommitKind.VACUUM,
    "VACUUM END": CommitKind.VACUUM,
    "COMPUTE STATS": CommitKind.ANALYZE,
    "CREATE TABLE": CommitKind.CREATE,
    "CREATE TABLE AS SELECT": CommitKind.CREATE,
}
"""Those that say all by themselves; `delta_commit_kind` knows the others."""
HUDI_KINDS: Final[Mapping[str, CommitKind]] = {
    "INSERT": CommitKind.APPEND,
    "BULK_INSERT": CommitKind.APPEND,
    "BOOTSTRAP": CommitKind.APPEND,
    "UPSERT": CommitKind.MERGE,
    "DELETE": CommitKind.DELETE,
    "DELETE_PARTITION": CommitKind.DELETE,
    "INSERT_OVERWRITE": CommitKind.OVERWRITE,
    "INSERT_OVERWRITE_TABLE": CommitKind.OVERWRITE,
    "CLUSTER": CommitKind.COMPACT,
    "COMPACT": CommitKind.COMPACT,
    "LOG_COMPACT": CommitKind.COMPACT,
    "ALTER_SCHEMA": CommitKind.ALTER,
}
_DELTA_ALTERING: Final = (
    "SET ",
    "UNSET ",
    "ADD ",
    "DROP ",
    "RENAME ",
    "CHANGE ",
    "REPLACE COLUMN",
    "CLUSTER ",
    "UPGRADE ",
)
_DELTA_REPLACING: Final = ("REPLACE TABLE", "CREATE OR REPLACE TABLE")
_DELTA_REPLACEMENTS: Final[Mapping[bool | None, CommitKind]] = {
    True: CommitKind.OVERWRITE,
    False: CommitKind.REPLACE,
    None: CommitKind.UNKNOWN,
}


def delta_commit_kind(
    operation: str, parameters: Mapping[str, Any], *, is_first: bool, keeps_id: bool | None
) -> CommitKind:
    """Return what a commit of Delta did.

    `is_first` says that the table has no earlier version, `keeps_id` that its id is the one of the version before; None
    is unknown. Delta says CREATE OR REPLACE TABLE of a `saveAsTable` that overwrites, too. That keeps the table, and
    perhaps some of its partitions; only a table that is made anew gets another id.
    """
    if operation == "WRITE":
        return CommitKind.OVERWRITE if parameters.get("mode") == "Overwrite" else CommitKind.APPEND
    if operation == "STREAMING UPDATE":
        return CommitKind.OVERWRITE if parameters.get("outputMode") == "Complete" else CommitKind.APPEND
    if operation.startswith(_DELTA_REPLACING):
        return CommitKind.CREATE if is_first else _DELTA_REPLACEMENTS[keeps_id]
    if operation.startswith(_DELTA_ALTERING):
        return CommitKind.ALTER
    return DELTA_KINDS.get(operation, CommitKind.OTHER)


def hudi_operation(operation: str | None) -> str:
    """Return Hudi's word for an operation. A write whose records were prepared before is the same to a reader."""
    return (operation or "").removesuffix("_PREPPED")
