"""How names are compared: as Spark does, without regard to case unless spark.sql.caseSensitive is true.

What a change names and a table doesn't have is an error that says which change it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.errors import TerminalError
from headwater.events.changes import TableChange
from headwater.events.scalars import FieldPath
from headwater.events.tables import Transform
from headwater.events.types.short_text import quoted

_SHOWN: Final = 20


class ChangeError(TerminalError):
    """The change at `index` can't have happened to this table: the table is another one than it was taken for."""

    def __init__(self, index: int, change: TableChange, what: str) -> None:
        super().__init__(f"change {index} ({change.change}): {what}")
        self.index = index
        self.change = change


class ImpossibleChangeError(TerminalError):
    """What is wrong with a change, before it is known which one of a list it is."""


class MissingColumnError(ImpossibleChangeError):
    """A path leads nowhere."""


def missing(path: Iterable[str], there: Iterable[str]) -> MissingColumnError:
    return MissingColumnError(f"there is no column {spelled(path)}; there is {listed(there)}")


def spelled(path: Iterable[str]) -> str:
    """A path as SQL writes it."""
    return ".".join([quoted(name) for name in path])


def shown(transform: Transform) -> str:
    """A partition field as SQL writes it: bucket(16, id), or by its name alone."""
    if not transform.columns and transform.field_name:
        return quoted(transform.field_name)
    return f"{transform.name}({', '.join([*transform.arguments, *map(spelled, transform.columns)])})"


def listed(names: Iterable[str]) -> str:
    return enumerated([quoted(name) for name in names])


def enumerated(every: Sequence[str]) -> str:
    rest = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + rest if every else "nothing"


@dataclass(frozen=True, slots=True)
class Names:
    case_sensitive: bool = False

    def same(self, one: str, other: str) -> bool:
        return one == other or (not self.case_sensitive and _fold(one) == _fold(other))

    def find(self, names: Sequence[str], name: str) -> int | None:
        """Where a name stands. One that is written just so goes before one that differs in case only."""
        if name in names:
            return names.index(name)
        if self.case_sensitive:
            return None
        folded = _fold(name)
        found = [index for index, candidate in enumerate(names) if _fold(candidate) == folded]
        if len(found) > 1:
            raise ImpossibleChangeError(f"{name} may be any of {listed(names[index] for index in found)}")
        return found[0] if found else None

    def starts_with(self, path: FieldPath, start: FieldPath) -> bool:
        """Whether `path` is the column `start`, or a field in it."""
        return len(path) >= len(start) and all(map(self.same, path, start))

    def same_paths(self, some: Iterable[FieldPath], others: Iterable[FieldPath]) -> bool:
        return [self._key(path) for path in some] == [self._key(path) for path in others]

    def _key(self, path: FieldPath) -> FieldPath:
        return path if self.case_sensitive else tuple([_fold(name) for name in path])


def _fold(name: str) -> str:
    """As Java's equalsIgnoreCase: letter by letter, so that ß isn't ss."""
    return name.lower() if name.isascii() else "".join([_folded_letter(letter) for letter in name])


def _folded_letter(letter: str) -> str:
    upper = letter.upper()
    lower = (upper if len(upper) == 1 else letter).lower()
    return lower if len(lower) == 1 else letter
