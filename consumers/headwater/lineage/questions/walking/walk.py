"""What a walk keeps while it goes: one for each question."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.lineage.questions.walking.facts import CHANGES, Made, Taken
from headwater.lineage.questions.walking.hiding import Hiding
from headwater.lineage.questions.walking.identities import Identities
from headwater.lineage.questions.walking.limits import Limits
from headwater.lineage.questions.walking.makers import Makers, Wanted


class Basis(str, Enum):
    """Which of the two answers to "made from"."""

    COMMIT = "commit"
    """What the commit of the snapshot read."""
    STATE = "state"
    """What all commits read whose rows may still be in the table: those since its last full overwrite."""


class Step(NamedTuple):
    """A snapshot was made from what was read, so far from where the walk began."""

    depth: int
    made: Made
    taken: Taken


class Walk:
    def __init__(self, connection: Connection, as_of: int | None = None) -> None:
        self.connection = connection
        self.as_of = as_of
        self.hiding = Hiding(connection)
        self.identities = Identities(connection)
        self.limits = Limits()
        self.makers = Makers(connection, self.hiding, self.identities)


def wanted_of(taken: Taken, at: int) -> Wanted | None:
    """The snapshot that was read; none where it isn't known, or where there are none."""
    if taken.dataset is None or taken.snapshot is None:
        return None
    return Wanted(taken.dataset, taken.snapshot, taken.life, taken.branch, at)


def is_range(taken: Taken) -> bool:
    return taken.mode == CHANGES
