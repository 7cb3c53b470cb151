"""Positions of streams in Iceberg tables, and the tables' metadata, as far as a move to another table needs them.

An offset names a snapshot, and how many of the files that it added were read. It doesn't say of which table: snapshots
have random ids, so the table that has the snapshot is the one.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError
from headwater.versions.forks.checkpoint import ForkError, local_path

_METADATA: Final = "metadata"
_FILE: Final = re.compile(r"v?(\d+)(?:-[0-9a-fA-F-]+)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
_GZIP: Final = b"\x1f\x8b"
_READABLE: Final = frozenset({"append", "replace"})
"""Snapshots that a stream passes without an option."""


class LocalIcebergTable:
    """The newest metadata of an Iceberg table on this machine."""

    def __init__(self, location: str) -> None:
        self.location: Final = location
        root = local_path(location, "table") / _METADATA
        files = [(int(found[1]), each) for each in root.glob("*") if (found := _FILE.fullmatch(each.name))]
        if not files:
            raise ConfigurationError(f"{location} isn't an Iceberg table: it has no {_METADATA}. Name its directory")
        self._metadata: Final = _read(max(files)[1])
        self._snapshots: Final = {each["snapshot-id"]: each for each in self._metadata.get("snapshots") or ()}

    @staticmethod
    def is_at(location: str) -> bool:
        """Whether there is a table of this format."""
        return (local_path(location, "table") / _METADATA).is_dir()

    def is_read_by(self, offset: dict[str, Any]) -> bool:
        """Whether an offset stands in this table."""
        return offset.get("snapshot_id") in self._snapshots

    def move(self, text: str, old: str, version: int | None) -> str:
        """Return the offset in this table for an offset in the old one. `version`, a snapshot of this table, holds what
        was read of the old one."""
        if version is None:
            raise ForkError(
                f"say which snapshot of {self.location} holds what the query had read: {old}={self.location}@SNAPSHOT"
            )
        if not LocalIcebergTable.is_at(old):
            raise ForkError(
                f"name the directory of the table that the source {old} reads: it shows whether the batch ends with a "
                "snapshot"
            )
        LocalIcebergTable(old).require_end(json.loads(text))
        return self.offset_behind(version)

    def require_end(self, offset: dict[str, Any]) -> None:
        """Raise an error unless a stream at this offset has read all of a snapshot and nothing of the next."""
        snapshot = offset["snapshot_id"]
        if offset.get("scan_all_files") or offset["position"] != self._added(snapshot):
            raise ForkError(
                f"this batch ends in the middle of snapshot {snapshot} of {self.location}: no snapshot of another "
                "table holds just that. Fork at a batch that ends with a snapshot"
            )

    def offset_behind(self, snapshot: int) -> str:
        """Return the offset of a stream that has read all of a snapshot and nothing of the next."""
        if snapshot not in self._line():
            raise ForkError(f"{self.location} has no snapshot {snapshot} on main: a stream reads main alone")
        operation = (self._snapshots[snapshot].get("summary") or {}).get("operation")
        if operation not in _READABLE:
            raise ForkError(
                f"snapshot {snapshot} of {self.location} is of the kind {operation}, at which a stream ends with an "
                "error: make the table by CREATE TABLE … AS SELECT, or name an appended snapshot"
            )
        position = self._added(snapshot)
        fields = {"version": 1, "snapshot_id": snapshot, "position": position, "scan_all_files": False}
        return json.dumps(fields, separators=(",", ":"))

    def _added(self, snapshot: int) -> int:
        return int((self._snapshots[snapshot].get("summary") or {}).get("added-data-files", 0))

    def _line(self) -> set[int]:
        found: set[int] = set()
        current: int | None = self._metadata.get("current-snapshot-id")
        while current is not None and current in self._snapshots:
            found.add(current)
            current = self._snapshots[current].get("parent-snapshot-id")
        return found


def _read(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    try:
        found: dict[str, Any] = json.loads(gzip.decompress(content) if content.startswith(_GZIP) else content)
    except (ValueError, OSError, EOFError) as error:
        raise ForkError(f"{path} isn't whole: {error}") from error
    return found
