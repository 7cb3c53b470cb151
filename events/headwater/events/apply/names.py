"""How names are compared: as Spark does, without regard to case unless spark.sql.caseSensitive is true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.events.apply.errors import ImpossibleChangeError, listed
from headwater.events.scalars import FieldPath


@dataclass(frozen=True, slots=True)
class Names:
    case_sensitive: bool = False

    def same(self, one: str, other: str) -> bool:
        return one == other or (not self.case_sensitive and _folded(one) == _folded(other))

    def find(self, names: Sequence[str], name: str) -> int | None:
        """Where a name stands. One that is written just so goes before one that differs in case only."""
        if name in names:
            return names.index(name)
        if self.case_sensitive:
            return None
        folded = _folded(name)
        found = [index for index, candidate in enumerate(names) if _folded(candidate) == folded]
        if len(found) > 1:
            raise ImpossibleChangeError(f"{name} may be any of {listed(names[index] for index in found)}")
        return found[0] if found else None

    def starts_with(self, path: FieldPath, start: FieldPath) -> bool:
        """Whether `path` is the column `start`, or a field in it."""
        return len(path) >= len(start) and all(map(self.same, path, start))

    def same_paths(self, some: Iterable[FieldPath], others: Iterable[FieldPath]) -> bool:
        return [self._key(path) for path in some] == [self._key(path) for path in others]

    def _key(self, path: FieldPath) -> FieldPath:
        return path if self.case_sensitive else tuple([_folded(name) for name in path])


def _folded(name: str) -> str:
    """As Java's equalsIgnoreCase: letter by letter, so that ß isn't ss."""
    return name.lower() if name.isascii() else "".join([_folded_letter(letter) for letter in name])


def _folded_letter(letter: str) -> str:
    upper = letter.upper()
    lower = (upper if len(upper) == 1 else letter).lower()
    return lower if len(lower) == 1 else letter
