"""Answers to questions about data versions. One without versions says how the newest differ, and which job is late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.datasets import Dataset


@dataclass(frozen=True)
class TableAt:
    """A table at a version."""

    dataset: Dataset
    snapshot: int | None
    position: str | None = None
    generation: str | None = None
    branch: str | None = None
    made_at: datetime | None = None
    format: str | None = None

    @property
    def label(self) -> str:
        """What a person calls it: `lake.sales.orders@20`."""
        branch = f"[{self.branch}]" if self.branch else ""
        version = (
            self.position
            if self.snapshot is None
            else f"{self.snapshot}" + (f":{self.position}" if self.position is not None else "")
        )
        return f"{self.dataset.label}{branch}" + ("" if version is None else f"@{version}")


@dataclass(frozen=True)
class ContainedVersion:
    """The newest version of a table upstream that one reader of it contains."""

    table: TableAt
    reader: Dataset
    """The table that read it: the one that was asked about, or one upstream of that."""
    is_whole: bool
    """Whether everything up to that version is contained, as far as numbers tell."""
    since: int | None
    """Where changes began, if nothing was read in full before."""
    read_at: datetime
    job: str | None


@dataclass(frozen=True, kw_only=True)
class ContainedAnswer(Answer[ContainedVersion]):
    """What a table contains at a snapshot."""

    of: TableAt


@dataclass(frozen=True)
class LackedVersion:
    """A commit of a shared table that isn't in all of the tables."""

    table: TableAt
    kind: str | None
    """What the commit did: APPEND, OVERWRITE and so on; None if nobody reported it."""
    job: str | None
    lacking: tuple[tuple[TableAt, Dataset], ...]
    """The tables that haven't got so far, each with the reader that hasn't: itself, or a table upstream of it."""


@dataclass(frozen=True)
class SharedAncestor:
    """A table that several tables share, and which versions of it they contain."""

    dataset: Dataset
    contained: tuple[tuple[TableAt, tuple[ContainedVersion, ...]], ...]
    """By table. One that is the shared table itself contains nothing of it: it is at its version."""
    is_same: bool | None
    """Whether all contain the same version; None if that isn't known."""
    lacked: tuple[LackedVersion, ...] | None = None
    """The commits that make the difference, newest first; None if there is none, if they aren't known, or if the
    question wasn't `check`."""


@dataclass(frozen=True, kw_only=True)
class ConsistencyAnswer(Answer[SharedAncestor]):
    """Whether versions of tables belong together."""

    tables: tuple[TableAt, ...]
    is_consistent: bool | None
    """None if it isn't known: the limits say why."""
    cut: tuple[TableAt, ...] = ()
    """The versions of the shared tables, where all contain the same."""


@dataclass(frozen=True)
class AlignedTable:
    """A table at the version that belongs with the others'."""

    table: TableAt
    steps_behind: int
    """How many versions there are after it."""
    newest: TableAt


@dataclass(frozen=True, kw_only=True)
class AlignmentAnswer(Answer[AlignedTable]):
    """Versions of tables that belong together: the newest ones."""

    cut: tuple[TableAt, ...]
    shared: tuple[SharedAncestor, ...]


_SOME: Final = 3
_TIME: Final = "%Y-%m-%d %H:%M:%S UTC"


@dataclass(frozen=True)
class Lateness:
    """Who hasn't read the newest version of a shared table that is in any of the tables."""

    newest: TableAt
    late: Sequence[tuple[Dataset, str | None]]
    """The tables that were made from an older one, with the job that wrote each, as far as it is known."""


def text_of_miss(
    tables: Sequence[str],
    reasons: Sequence[str],
    look_back: tuple[int, timedelta | None],
    *,
    sets_left: bool,
    is_late: bool,
) -> str:
    """Return the whole message. Where nothing differs, and something isn't known, waiting for a job doesn't help."""
    advice = "let the job that is behind catch up" if is_late else "mend what isn't known: no job has to catch up"
    most, time = look_back
    tried = "" if time is None else f", not more than {time} older than its newest"
    tried += " (more sets than could be tried)" if sets_left else ""
    return (
        f"no versions of {', '.join(tables)} belong together within the last {most} of each{tried}. "
        f"Of the newest: {'. '.join(reasons)}. Look farther back, or {advice}"
    )


def text_of_difference(shared: SharedAncestor, lateness: Lateness) -> str:
    """Return what each table contains of one that they share, and who hasn't read its newest version."""
    text = text_of_contents(shared)
    if not lateness.late:
        return text
    since = "" if lateness.newest.made_at is None else f", there since {lateness.newest.made_at:{_TIME}},"
    late = sorted({f"{table.label}{_writer(job)}" for table, job in lateness.late})
    return f"{text}; {lateness.newest.label}{since} isn't yet in {', '.join(late)}"


def text_of_contents(shared: SharedAncestor) -> str:
    """Return what each table contains of one that they share."""
    contents = [
        f"{table.label} contains {_names_of(found)}, read {_last_read(found):{_TIME}}"
        for table, found in shared.contained
        if found
    ]
    return "; ".join(contents) or f"{shared.dataset.label} itself differs"


def _writer(job: str | None) -> str:
    return "" if job is None else f", which the job {job} writes"


def _names_of(found: Sequence[ContainedVersion]) -> str:
    """Name the versions, the last read first; of many only some."""
    names = list(dict.fromkeys(state.table.label for state in sorted(found, key=lambda one: one.read_at, reverse=True)))
    more = f" and {len(names) - _SOME} others" if len(names) > _SOME else ""
    return ", ".join(names[:_SOME]) + more


def _last_read(found: Sequence[ContainedVersion]) -> datetime:
    return max(state.read_at for state in found)
