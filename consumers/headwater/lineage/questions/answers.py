"""What all answers have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Generic, TypeVar

from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of

T_co = TypeVar("T_co", covariant=True)


def micros_of_argument(moment: datetime, name: str) -> int:
    """Return the microseconds of a time that a question names. One without a time zone could be meant in any."""
    if moment.tzinfo is None:
        text = moment.isoformat()
        raise ConfigurationError(
            f"{name}={text} has no time zone: write {text}+00:00, or give a datetime with tzinfo=timezone.utc"
        )
    return micros_of(moment)


class LimitReason(str, Enum):
    """Why an answer may be incomplete."""

    OPAQUE = "OPAQUE"
    """Spark doesn't show what was read or written."""
    UNKNOWN_SOURCES = "UNKNOWN_SOURCES"
    """It is unknown which of a commit's inputs an output was made from."""
    UNKNOWN_SNAPSHOT = "UNKNOWN_SNAPSHOT"
    """It is unknown which version was read or written; the answer lists candidates."""
    UNKNOWN_WRITER = "UNKNOWN_WRITER"
    """The snapshot was written without headwater, or before the store existed."""
    UNKNOWN_COLUMNS = "UNKNOWN_COLUMNS"
    """The job lineage of a write didn't arrive, or not completely."""
    UNKNOWN_EFFECT = "UNKNOWN_EFFECT"
    """It is unknown whether a catalog change took effect."""
    THROUGH_VIEW = "THROUGH_VIEW"
    """Spark shows the tables below a view, not who read them through it."""
    GAP = "GAP"
    """A gap was reported or inferred for the subject."""
    OMITTED = "OMITTED"
    """A catalog option switches this lineage off."""
    DELETED = "DELETED"
    """Lineage was deleted by a person or a policy, or has expired."""
    CUT = "CUT"
    """The question's own limit of depth or size was reached."""


@dataclass(frozen=True)
class AnswerLimit:
    """One reason why an answer may be incomplete."""

    why: LimitReason
    about: str
    """The table, snapshot, column or job that it concerns, as a person reads it."""
    detail: str = ""


@dataclass(frozen=True)
class Answer(Generic[T_co]):
    """The rows of an answer, and how complete they are."""

    rows: tuple[T_co, ...]
    complete_until: datetime | None
    """Everything that was committed up to this time is included. None if that is unknown."""
    limits: tuple[AnswerLimit, ...] = ()

    @property
    def is_partial(self) -> bool:
        return bool(self.limits)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
