"""A table of Delta whose log is written by a test."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from headwater.versions.aligned.formats.delta import DeltaTable

NOTHING: Any = None


class DeltaStory(DeltaTable):
    """A table of Delta whose log is here."""

    def __init__(self) -> None:
        super().__init__(NOTHING, "t")
        self.log: dict[int, list[dict[str, Any]]] = {}
        self.reads: list[int] = []

    def now(self, generation: str = "one") -> DeltaStory:
        snapshot = SimpleNamespace(
            version=lambda: max(self.log),
            metadata=lambda: SimpleNamespace(id=lambda: generation),
            transactions=lambda: SimpleNamespace(get=self._transaction),
        )
        loaded: Any = SimpleNamespace(table=SimpleNamespace(deltaLog=lambda: None, initialSnapshot=lambda: snapshot))
        self.look(loaded)
        return self

    def _transaction(self, app: str) -> Any:
        known = [each["txn"] for log in self.log.values() for each in log if "txn" in each]
        found = [each["version"] for each in known if each["appId"] == app]
        return SimpleNamespace(isDefined=lambda: bool(found), get=lambda: found[-1])

    def _read(self, version: int) -> str | None:
        self.reads.append(version)
        actions = self.log.get(version)
        return None if actions is None else "\n".join(map(json.dumps, actions)) + "\n"


def add(**more: Any) -> dict[str, Any]:
    return {"add": {"path": "f", "dataChange": True, **more}}
