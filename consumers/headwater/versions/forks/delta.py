"""Positions of streams in Delta tables, and the tables' logs, as far as a move from one table to another needs them.

An offset names the next file: version 7 with the lowest index says that all of version 6 was read. The stream checks by
`reservoirId` that it reads the table that it knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from headwater.errors import ConfigurationError
from headwater.versions.forks.checkpoint import ForkError, local_path

_LOG: Final = "_delta_log"
_BEFORE_FIRST: Final = frozenset({-1, -100})
"""The index in front of a version's first file, as it is written and as Delta has it in memory."""
_FIRST_FORM: Final = 1
"""The form of offsets that every release reads."""


@dataclass(frozen=True)
class DeltaPosition:
    """Where a stream stands in a Delta table."""

    table_id: str
    version: int
    index: int
    is_state: bool
    """It still reads the state that the table had when the query began."""

    @classmethod
    def parse(cls, text: str) -> DeltaPosition:
        fields = json.loads(text)
        return cls(
            fields["reservoirId"],
            int(fields["reservoirVersion"]),
            int(fields["index"]),
            bool(fields.get("isStartingVersion", False)),
        )

    @property
    def last_read(self) -> int | None:
        """The version of which all was read, and nothing of the next; None in the middle of a version."""
        return None if self.is_state or self.index not in _BEFORE_FIRST else self.version - 1


def offset_behind(table_id: str, version: int) -> str:
    """Return the offset of a stream that has read all of a version and nothing of the next."""
    fields = {
        "sourceVersion": _FIRST_FORM,
        "reservoirId": table_id,
        "reservoirVersion": version + 1,
        "index": -1,
        "isStartingVersion": False,
    }
    return json.dumps(fields, separators=(",", ":"))


class LocalDeltaTable:
    """The log of a Delta table on this machine."""

    def __init__(self, location: str) -> None:
        self.location: Final = location
        self._log: Final = local_path(location, "table") / _LOG
        if not self._log.is_dir():
            raise ConfigurationError(f"{location} isn't a Delta table: it has no {_LOG}. Name the table's directory")

    @staticmethod
    def is_at(location: str) -> bool:
        """Whether there is a table of this format."""
        return (local_path(location, "table") / _LOG).is_dir()

    @property
    def id(self) -> str:
        """The table's id, from the newest version that sets it, or the newest that repeats it."""
        for number in reversed(self._versions()):
            for action in self._actions(number):
                if action.get("metaData"):
                    return str(action["metaData"]["id"])
            if (repeated := self._repeated_id(number)) is not None:
                return repeated
        raise ForkError(
            f"the log of {self.location} doesn't show the table's id any more. The source that reads it can be named "
            "by its number in the checkpoint; a table to go on from has to show it"
        )

    def is_read_by(self, offset: dict[str, Any]) -> bool:
        """Whether an offset stands in this table."""
        return offset.get("reservoirId") == self.id

    def move(self, text: str, old: str, version: int | None, suitable: Callable[[int], int | None]) -> str:
        """Return the offset in this table for an offset in the old one.

        `version` of this table holds what was read of the old one; not given, this table is a clone that begins with
        just that. `suitable(version)` finds the batch behind which all of a version had been read.
        """
        position = DeltaPosition.parse(text)
        read = position.last_read
        if read is None:
            raise ForkError(
                f"this batch ends in the middle of version {position.version} of {old}: no version of another table "
                "holds just that. Fork at a batch that ends with a version"
            )
        if version is None:
            version = self._cloned(old, read, suitable)
        elif version not in self._versions():
            raise ForkError(f"{self.location} has no version {version}: its newest is {max(self._versions())}")
        return offset_behind(self.id, version)

    def versions_with_new_rows(self, after: int) -> list[int]:
        """Return the versions behind one that brought files which a stream reads."""
        return [number for number in self._versions() if number > after and self._has_new_rows(number)]

    def _has_new_rows(self, version: int) -> bool:
        files = (each["add"] for each in self._actions(version) if each.get("add"))
        return any(each.get("dataChange", True) for each in files)

    def _cloned(self, old: str, read: int, suitable: Callable[[int], int | None]) -> int:
        """Return the version with which this clone begins, after a look at what it is a clone of."""
        advice = f"say which of its versions holds what the query had read: {old}={self.location}@VERSION"
        info: dict[str, Any] = next((each["commitInfo"] for each in self._actions(0) if each.get("commitInfo")), {})
        parameters = info.get("operationParameters") or {}
        if info.get("operation") != "CLONE" or not str(parameters.get("sourceVersion", "")).isdecimal():
            raise ForkError(f"{self.location} doesn't begin as a clone of another table: {advice}")
        cloned = int(parameters["sourceVersion"])
        if cloned != read:
            batch = suitable(cloned)
            other = "no batch that is still there ends so" if batch is None else f"batch {batch} ends so"
            raise ForkError(
                f"this batch had read version {read} of {old} and all before it, and {self.location} is a clone of "
                f"version {cloned}: {other}. Clone version {read}, fork at another batch, or {advice}"
            )
        return 0

    def _versions(self) -> list[int]:
        return sorted(int(each.stem) for each in self._log.glob("*.json") if each.stem.isdecimal())

    def _actions(self, version: int) -> Iterator[dict[str, Any]]:
        path = self._log / f"{version:020}.json"
        if not path.exists():
            return
        try:
            yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())
        except ValueError as error:
            raise ForkError(f"{path} isn't whole: {error}") from error

    def _repeated_id(self, version: int) -> str | None:
        """Return the id from the checksum of a version, which repeats the table's metadata."""
        try:
            found = json.loads((self._log / f"{version:020}.crc").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return (found.get("metadata") or {}).get("id")
