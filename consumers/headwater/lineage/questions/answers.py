"""What all answers have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Why(str, Enum):
    """Why an answer may lack something."""

    OPAQUE = "OPAQUE"
    """Something was read or written that Spark doesn't show."""
    UNKNOWN_SOURCES = "UNKNOWN_SOURCES"
    """What was made from what isn't known of a commit."""
    UNKNOWN_SNAPSHOT = "UNKNOWN_SNAPSHOT"
    """Which version was read or made isn't known; the candidates are told."""
    UNKNOWN_WRITER = "UNKNOWN_WRITER"
    """A snapshot was made by somebody without headwater, or before the store began."""
    UNKNOWN_COLUMNS = "UNKNOWN_COLUMNS"
    """The shape of a write never came, or not all of it."""
    UNKNOWN_EFFECT = "UNKNOWN_EFFECT"
    """A change of a catalog may have happened, or not."""
    GAP = "GAP"
    """A Gap was told, or is inferred, of what was asked for."""
    OMITTED = "OMITTED"
    """A catalog's options switch this off."""
    DELETED = "DELETED"
    """Lineage was deleted by somebody, by a policy, or has expired."""
    CUT = "CUT"
    """The question's own limit was reached: of depth, or of number."""


@dataclass(frozen=True)
class Limit:
    """One reason for which an answer may lack something."""

    why: Why
    about: str
    """The table, snapshot, column or job that it concerns, as a person reads it."""
    detail: str = ""


@dataclass(frozen=True)
class Answer(Generic[T_co]):
    """Rows, and how far they can be believed."""

    rows: tuple[T_co, ...]
    complete_until: datetime | None
    """All that was committed up to here is in it; None where nothing is known of that."""
    limits: tuple[Limit, ...] = ()

    @property
    def is_partial(self) -> bool:
        return bool(self.limits)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
