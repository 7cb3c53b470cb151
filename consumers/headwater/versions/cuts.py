"""Cuts: which snapshot of each table of a group is read together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.errors import ConfigurationError


@dataclass(frozen=True)
class TableSnapshot:
    """A snapshot of a table, and which generation of the table it is of."""

    snapshot: int
    generation: str | None = None
    identity: str | None = None
    """What tells it from another snapshot with its number, where a roll-back lets numbers come again."""


@dataclass(frozen=True)
class Cut:
    """A snapshot of each table of a group."""

    snapshots: Mapping[str, TableSnapshot]

    def __getitem__(self, table: str) -> TableSnapshot:
        return self.snapshots[table]

    def to_json(self) -> str:
        found = {name: _fields(snapshot) for name, snapshot in sorted(self.snapshots.items())}
        return json.dumps(found, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Cut:
        return cls({name: TableSnapshot(**fields) for name, fields in json.loads(text).items()})

    def __str__(self) -> str:
        return ", ".join(f"{name}@{snapshot.snapshot}" for name, snapshot in sorted(self.snapshots.items()))


@dataclass(frozen=True)
class DataVersion:
    """A number of a group, and the cut that it stands for."""

    number: int
    cut: Cut
    claimed_by: str
    claimed_at: int


@dataclass(frozen=True)
class GroupState:
    """A group as it is in the store."""

    name: str
    tables: tuple[str, ...]
    newest: int


@dataclass(frozen=True)
class JobProgress:
    """How far a job of a group is."""

    job: str
    checkpoint: str
    epoch: int
    done: int | None
    running: int | None
    moved_at: int


def check_name(kind: str, name: str) -> str:
    """Return a name of a group or a job, or raise an error that says what it may be."""
    if not name.strip() or "\n" in name:
        raise ConfigurationError(f"a {kind} can't be called {name!r}: give it a name of one line")
    return name.strip()


def _fields(each: TableSnapshot) -> dict[str, int | str]:
    fields: dict[str, int | str | None] = {
        "snapshot": each.snapshot,
        "generation": each.generation,
        "identity": each.identity,
    }
    return {name: value for name, value in fields.items() if value is not None}
