"""What Iceberg's own metadata files say of a table: the truth, read without Spark and without headwater."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class Metadata:
    """One metadata file of a table that is kept by path."""

    content: dict[str, Any]

    @property
    def generation(self) -> UUID:
        return UUID(self.content["table-uuid"])

    @property
    def snapshots(self) -> dict[int, dict[str, Any]]:
        """By id, in the order in which they were made."""
        events: list[dict[str, Any]] = self.content.get("snapshots", [])
        in_order = sorted(events, key=lambda each: (each.get("sequence-number", 0), each["timestamp-ms"]))
        return {each["snapshot-id"]: each for each in in_order}

    @property
    def ids(self) -> list[int]:
        return list(self.snapshots)

    @property
    def current(self) -> int | None:
        found: int = self.content.get("current-snapshot-id", -1)
        return None if found in {-1, None} else found

    @property
    def refs(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.content.get("refs", {})
        return found

    def head(self, branch: str) -> int:
        found: int = self.refs[branch]["snapshot-id"]
        return found


def metadata_at(table: Path) -> Metadata:
    """The newest, as the hint beside it says."""
    version = (table / "metadata" / "version-hint.text").read_text().strip()
    return Metadata(json.loads((table / "metadata" / f"v{version}.metadata.json").read_text()))
