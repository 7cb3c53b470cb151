"""What a table contains at a snapshot, folded: for each source the range of versions that it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.known_limits import add_known_limits
from headwater.lineage.questions.lineage_answers import LineageAnswer, StateEdge, VersionRange
from headwater.lineage.questions.snapshots import AT_MOST, SnapshotQuestion, format_job_key
from headwater.lineage.questions.start_points import StartSelector
from headwater.lineage.questions.traversal.context import Basis, LineageStep
from headwater.lineage.questions.traversal.snapshot_rows import CHANGES, SnapshotRead, SnapshotWrite, is_unordered

_Key = tuple[bytes | None, str, str | None, str | None, str | None]


def upstream_state(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    generation: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
    at_most: int = 100 * AT_MOST,
) -> LineageAnswer[StateEdge]:
    """Fold all commits of the branch since the last full overwrite into a range of versions of each source."""
    question = SnapshotQuestion.of(connection, of, StartSelector(snapshot, generation, branch), Basis.STATE, as_of)
    steps = question.collect(question.upward(depth), at_most)
    names = load_datasets(
        connection, {*question.datasets_of(steps), *question.walk.limits.datasets, question.start.dataset.key}
    )
    add_known_limits(connection, names, {each.write.run for each in steps}, question.walk.limits)
    return LineageAnswer(
        tuple(
            sorted(
                fold_steps(question, steps, names), key=lambda each: (each.depth, each.target.label, each.source.label)
            )
        ),
        complete_until(connection),
        question.walk.limits.as_limits(names),
        of=question.start.label(names),
        basis=Basis.STATE,
        note=question.start.note,
    )


@dataclass
class _Fold:
    """The steps from one table to another."""

    depth: int
    steps: list[LineageStep] = field(default_factory=list)


def fold_steps(
    question: SnapshotQuestion, steps: Sequence[LineageStep], names: Mapping[bytes, Dataset]
) -> Iterator[StateEdge]:
    folds: dict[tuple[_Key, _Key], _Fold] = {}
    for step in steps:
        fold = folds.setdefault((_key(question, step.write), _key(question, step.read)), _Fold(step.depth))
        fold.steps.append(step)
    for (target, source), fold in folds.items():
        yield _edge(fold, _name(target, names), _name(source, names))


def _key(question: SnapshotQuestion, row: SnapshotWrite | SnapshotRead) -> _Key:
    name = "" if row.dataset is not None else ".".join(filter(None, row.name))
    return (question.identity(row), name, row.generation, row.branch, row.opaque)


def _name(key: _Key, names: Mapping[bytes, Dataset]) -> Dataset | None:
    return None if key[0] is None else names[key[0]]


def _edge(fold: _Fold, target: Dataset | None, source: Dataset | None) -> StateEdge:
    steps = sorted(fold.steps, key=lambda step: (step.write.at, step.read.snapshot or 0))
    jobs = {name for step in steps if (name := format_job_key(step.write.job)) is not None}
    return StateEdge(
        fold.depth,
        _span([step.write for step in steps], target),
        _source(steps, source),
        tuple(sorted({step.read.mode for step in steps})),
        len({step.write.id for step in steps}),
        tuple(sorted(jobs)),
        moment_of(steps[0].write.at),
        moment_of(steps[-1].write.at),
    )


def _source(steps: Sequence[LineageStep], dataset: Dataset | None) -> VersionRange:
    """Return the source's range. It has an open beginning only if all reads were incremental."""
    span = _span([step.read for step in steps], dataset)
    if all(step.read.mode == CHANGES and step.read.since is not None for step in steps):
        if is_unordered(steps[0].read.format):
            return replace(span, since=steps[0].read.since)
        return replace(span, since=min(step.read.since or 0 for step in steps))
    return span


def _span(rows: Sequence[SnapshotWrite | SnapshotRead], dataset: Dataset | None) -> VersionRange:
    """Return a range from the oldest to the newest version: by number, or by time of reading where numbers have no
    order."""
    newest, numbers = rows[-1], [each.snapshot for each in rows if each.snapshot is not None]
    if not is_unordered(newest.format):
        numbers.sort()
    return VersionRange(
        dataset,
        ".".join(filter(None, newest.name)) or (dataset.place if dataset else newest.opaque or "?"),
        first=numbers[0] if numbers else None,
        last=numbers[-1] if numbers else None,
        count=len({(each.snapshot, each.version) for each in rows}),
        generation=newest.generation,
        branch=newest.branch,
        version=newest.version,
        opaque=newest.opaque,
    )
