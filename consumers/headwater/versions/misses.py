"""Says in words why no versions belong together: how the newest ones differ, and which job has to catch up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from headwater.lineage.questions.datasets import Dataset
from headwater.versions.answers import ContainedVersion, SharedAncestor, TableAt

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
    contents = [
        f"{table.label} contains {_names_of(found)}, read {_last_read(found):{_TIME}}"
        for table, found in shared.contained
        if found
    ]
    text = "; ".join(contents) or f"{shared.dataset.label} itself differs"
    if not lateness.late:
        return text
    since = "" if lateness.newest.made_at is None else f", there since {lateness.newest.made_at:{_TIME}},"
    late = sorted({f"{table.label}{_writer(job)}" for table, job in lateness.late})
    return f"{text}; {lateness.newest.label}{since} isn't yet in {', '.join(late)}"


def _writer(job: str | None) -> str:
    return "" if job is None else f", which the job {job} writes"


def _names_of(found: Sequence[ContainedVersion]) -> str:
    """Name the versions, the last read first; of many only some."""
    names = list(dict.fromkeys(state.table.label for state in sorted(found, key=lambda one: one.read_at, reverse=True)))
    more = f" and {len(names) - _SOME} others" if len(names) > _SOME else ""
    return ", ".join(names[:_SOME]) + more


def _last_read(found: Sequence[ContainedVersion]) -> datetime:
    return max(state.read_at for state in found)
