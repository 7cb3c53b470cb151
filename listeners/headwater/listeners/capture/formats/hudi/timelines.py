"""A table's timeline as the driver reported it: instants in the order in which they were completed.

An instant is called by the time at which it was asked for. Where several write at once they are completed in another
order, and that is the order in which the table's states follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.listeners.capture.statements import StatementFacts

FORMAT: Final = "hudi"
COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})
"""Actions that make a table's rows what they are."""


@dataclass(frozen=True, slots=True)
class HudiInstant:
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
class HudiCommit:
    """A commit as the hook saw it."""

    path: str
    number: int
    inserted: int
    changed: int
    bytes: int
    services: bool
    """Whether table services ran with it, which ask for no callbacks."""


def timeline_facts(facts: StatementFacts) -> Mapping[str, Any]:
    return facts.looked_up.get(FORMAT, {})


def recorded_commits(facts: StatementFacts) -> list[HudiCommit]:
    return [parse_commit(note) for note in facts.hook_facts if note.get("hook") == FORMAT]


def parse_commit(note: Mapping[str, Any]) -> HudiCommit:
    return HudiCommit(
        path=note["path"],
        number=int(note["instant"]),
        inserted=note["inserted"],
        changed=note["changed"],
        bytes=note["bytes"],
        services=bool(note.get("services")),
    )


def timeline(facts: StatementFacts, path: str | None) -> list[HudiInstant] | None:
    """None where it wasn't looked at, or couldn't be."""
    instants = timeline_facts(facts).get("timelines", {}).get(path)
    return None if instants is None else [_parse_instant(instant) for instant in instants]


def parse_instants(fields: Sequence[Sequence[Any]]) -> list[HudiInstant]:
    """As relations have them."""
    return [HudiInstant(int(number), completed, bool(own)) for number, completed, own in fields]


def instant_before(number: int, line: Sequence[HudiInstant]) -> int | None:
    """The commit that was completed right before this one; None if it is the first, or if `is_parent_unknown`."""
    commits = _commits(line)
    ref = commits.index(number) if number in commits else 0
    return commits[ref - 1] if ref else None


def is_parent_unknown(number: int, line: Sequence[HudiInstant]) -> bool:
    """Whether the timeline doesn't have this commit: it couldn't be read, or others have been archived since."""
    return number not in _commits(line)


def produced_by(commit: HudiCommit, facts: StatementFacts) -> dict[str, Any]:
    """What an event of a catalog says of an instant. Nothing where its parent isn't known: without one it would be the
    table's first."""
    line = timeline(facts, commit.path) or []
    if is_parent_unknown(commit.number, line):
        return {}
    return {"produced": commit.number, "parent": instant_before(commit.number, line)}


def _commits(line: Sequence[HudiInstant]) -> list[int]:
    return [instant.number for instant in line if instant.action in COMMITS]


def _parse_instant(fields: Mapping[str, Any]) -> HudiInstant:
    return HudiInstant(
        number=int(fields["instant"]),
        completed=fields["completed"],
        action=fields["action"],
        operation=fields.get("operation"),
        undone=tuple(int(number) for number in fields.get("undone", ())),
        at=int(fields["at"]),
    )
