"""What is in a table at a snapshot, folded: of each source the versions that it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, described
from headwater.lineage.questions.lacks import lacks
from headwater.lineage.questions.snapshots import AT_MOST, Asked, job_text
from headwater.lineage.questions.starts import Which
from headwater.lineage.questions.versions import Lineage, Span, StateEdge
from headwater.lineage.questions.walking.facts import CHANGES, ICEBERG, Made, Taken
from headwater.lineage.questions.walking.walk import Basis, Step

_Key = tuple[bytes | None, str, str | None, str | None, str | None]


def upstream_state(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    life: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
    at_most: int = 100 * AT_MOST,
) -> Lineage[StateEdge]:
    """All commits of the branch since the last full overwrite, folded to a range of versions of each source."""
    asked = Asked.of(connection, of, Which(snapshot, life, branch), Basis.STATE, as_of)
    steps = asked.gathered(asked.upward(depth), at_most)
    names = described(connection, {*asked.datasets_of(steps), *asked.walk.limits.datasets, asked.start.dataset.key})
    lacks(connection, names, {each.made.run for each in steps}, asked.walk.limits)
    return Lineage(
        tuple(sorted(folded(asked, steps, names), key=lambda each: (each.depth, each.target.label, each.source.label))),
        complete_until(connection),
        asked.walk.limits.told(names),
        of=asked.start.label(names),
        basis=Basis.STATE,
        note=asked.start.note,
    )


@dataclass
class _Fold:
    """What is gathered of one table made from another."""

    depth: int
    steps: list[Step] = field(default_factory=list)


def folded(asked: Asked, steps: Sequence[Step], names: Mapping[bytes, Dataset]) -> Iterator[StateEdge]:
    folds: dict[tuple[_Key, _Key], _Fold] = {}
    for step in steps:
        fold = folds.setdefault((_key(asked, step.made), _key(asked, step.taken)), _Fold(step.depth))
        fold.steps.append(step)
    for (target, source), fold in folds.items():
        yield _edge(fold, _name(target, names), _name(source, names))


def _key(asked: Asked, row: Made | Taken) -> _Key:
    name = "" if row.dataset is not None else ".".join(filter(None, row.name))
    return (asked.identity(row), name, row.life, row.branch, row.opaque)


def _name(key: _Key, names: Mapping[bytes, Dataset]) -> Dataset | None:
    return None if key[0] is None else names[key[0]]


def _edge(fold: _Fold, target: Dataset | None, source: Dataset | None) -> StateEdge:
    steps = sorted(fold.steps, key=lambda step: (step.made.at, step.taken.snapshot or 0))
    jobs = {name for step in steps if (name := job_text(step.made.job)) is not None}
    return StateEdge(
        fold.depth,
        _span([step.made for step in steps], target),
        _source(steps, source),
        tuple(sorted({step.taken.mode for step in steps})),
        len({step.made.id for step in steps}),
        tuple(sorted(jobs)),
        moment_of(steps[0].made.at),
        moment_of(steps[-1].made.at),
    )


def _source(steps: Sequence[Step], dataset: Dataset | None) -> Span:
    """Only where all that was read are changes does the range have an open beginning."""
    span = _span([step.taken for step in steps], dataset)
    if all(step.taken.mode == CHANGES and step.taken.since is not None for step in steps):
        if steps[0].taken.format == ICEBERG:
            return replace(span, since=steps[0].taken.since)
        return replace(span, since=min(step.taken.since or 0 for step in steps))
    return span


def _span(rows: Sequence[Made | Taken], dataset: Dataset | None) -> Span:
    """From the oldest to the newest: by number, or where numbers have no order by when they were read."""
    newest, numbers = rows[-1], [each.snapshot for each in rows if each.snapshot is not None]
    if newest.format != ICEBERG:
        numbers.sort()
    return Span(
        dataset,
        ".".join(filter(None, newest.name)) or (dataset.place if dataset else newest.opaque or "?"),
        first=numbers[0] if numbers else None,
        last=numbers[-1] if numbers else None,
        count=len({(each.snapshot, each.version) for each in rows}),
        life=newest.life,
        branch=newest.branch,
        version=newest.version,
        opaque=newest.opaque,
    )
