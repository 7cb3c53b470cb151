"""A table's timeline as the driver told it: instants in the order in which they were completed.

An instant is called by the time at which it was asked for. Where several write at once they are completed in another
order, and that is the order in which the table's states follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.listeners.capture.statements import Facts

FORMAT: Final = "hudi"
COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions that make a table's rows what they are."""


@dataclass(frozen=True, slots=True)
class Instant:
    """A completed one."""

    number: int
    completed: int
    """Milliseconds, by the clock of who did it."""
    own: bool = False
    """This driver did it."""
    action: str = ""
    operation: str | None = None
    undone: tuple[int, ...] = ()
    """What a rollback or restore took back."""
    at: int = 0
    """When it was completed, as Hudi writes it."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A commit as the hook saw it."""

    path: str
    number: int
    inserted: int
    changed: int
    bytes: int
    services: bool
    """Whether table services ran with it, which ask for no callbacks."""


def looked_up(facts: Facts) -> Mapping[str, Any]:
    return facts.looked_up.get(FORMAT, {})


def noted(facts: Facts) -> list[Noted]:
    return [read_note(note) for note in facts.noted if note.get("hook") == FORMAT]


def read_note(note: Mapping[str, Any]) -> Noted:
    return Noted(
        path=note["path"],
        number=int(note["instant"]),
        inserted=note["inserted"],
        changed=note["changed"],
        bytes=note["bytes"],
        services=bool(note.get("services")),
    )


def timeline(facts: Facts, path: str | None) -> list[Instant] | None:
    """None where it wasn't looked at, or couldn't be."""
    told = looked_up(facts).get("timelines", {}).get(path)
    return None if told is None else [_instant(each) for each in told]


def instants(told: Sequence[Sequence[Any]]) -> list[Instant]:
    """As relations have them."""
    return [Instant(int(number), completed, bool(own)) for number, completed, own in told]


def before(number: int, line: Sequence[Instant]) -> int | None:
    """The commit that was completed right before this one."""
    commits = [each.number for each in line if each.action in COMMITS]
    place = commits.index(number) if number in commits else 0
    return commits[place - 1] if place else None


def _instant(told: Mapping[str, Any]) -> Instant:
    return Instant(
        number=int(told["instant"]),
        completed=told["completed"],
        action=told["action"],
        operation=told.get("operation"),
        undone=tuple(int(each) for each in told.get("undone", ())),
        at=int(told["at"]),
    )
