"""What a table contains at a snapshot, folded: for each source the range of versions that it was made from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.folded_states import StateFold
from headwater.lineage.questions.lineage_answers import LineageAnswer, StateEdge, VersionRange, add_known_limits
from headwater.lineage.questions.snapshots import AT_MOST, SnapshotQuestion, format_job_key
from headwater.lineage.questions.start_points import StartSelector
from headwater.lineage.questions.traversal.ancestry import LongHistory
from headwater.lineage.questions.traversal.context import Basis, LineageStep
from headwater.lineage.questions.traversal.history_lines import IrregularHistory
from headwater.lineage.questions.traversal.snapshot_rows import CHANGES, SnapshotRead, SnapshotWrite, is_unordered

_SHORT: Final = 500
"""Up to how many commits a state is walked; longer ones the database adds up, if their history is regular."""
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
    which = StartSelector(snapshot, generation, branch)
    for fold in (fold_short_state, fold_in_database, fold_by_walking):
        question = SnapshotQuestion.of(connection, of, which, Basis.STATE, as_of)
        with suppress(LongHistory, IrregularHistory):
            return fold(question, depth, at_most)
    raise AssertionError("walking folds every state")


def fold_short_state(question: SnapshotQuestion, depth: int | None, at_most: int) -> LineageAnswer[StateEdge]:
    """Fold a state of few commits by walking. `LongHistory` tells that there are more."""
    return fold_by_walking(question, depth, at_most, most_commits=_SHORT)


def fold_in_database(question: SnapshotQuestion, depth: int | None, at_most: int) -> LineageAnswer[StateEdge]:
    """Fold a state without loading its commits. `IrregularHistory` tells that they have to be walked."""
    folded = StateFold(question)
    folded.walk(depth, at_most)
    names = _names(question, folded.datasets)
    edges = list(folded.edges(lambda depth, steps: _edge_of(question, depth, steps, names)))
    question.add_unversioned(folded.unversioned)
    return _answer(question, edges, folded.runs)


def fold_by_walking(
    question: SnapshotQuestion, depth: int | None, at_most: int, *, most_commits: int | None = None
) -> LineageAnswer[StateEdge]:
    """Fold a state commit by commit."""
    steps = question.collect(question.upward(depth, most_commits), at_most)
    names = _names(question, question.datasets_of(steps))
    return _answer(question, fold_steps(question, steps, names), {step.write.run for step in steps})


def _names(question: SnapshotQuestion, datasets: Collection[bytes]) -> dict[bytes, Dataset]:
    return load_datasets(question.walk.connection, {*datasets, question.start.dataset.key})


def _answer(
    question: SnapshotQuestion, edges: Iterable[StateEdge], runs: Collection[bytes | None]
) -> LineageAnswer[StateEdge]:
    connection, limits = question.walk.connection, question.walk.limits
    rows = sorted(edges, key=_order)
    ends = {end.dataset.key for row in rows for end in (row.target, row.source) if end.dataset is not None}
    names = _names(question, {*ends, *limits.datasets})
    add_known_limits(connection, names, runs, limits)
    return LineageAnswer(
        tuple(rows),
        complete_until(connection),
        limits.as_limits(names),
        of=question.start.label(names),
        basis=Basis.STATE,
        note=question.start.note,
    )


def _order(edge: StateEdge) -> tuple[int, str, str, str, str]:
    """Sort edges, so that an answer is the same each time."""
    target, source = edge.target, edge.source
    return (edge.depth, target.label, source.label, target.generation or "", source.generation or "")


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


def _edge_of(
    question: SnapshotQuestion, depth: int, steps: list[LineageStep], names: Mapping[bytes, Dataset]
) -> StateEdge:
    target, source = (_name(_key(question, row), names) for row in steps[0][1:])
    return _edge(_Fold(depth, steps), target, source)


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
    newest, numbers = rows[-1], [row.snapshot for row in rows if row.snapshot is not None]
    if not is_unordered(newest.format):
        numbers.sort()
    return VersionRange(
        dataset,
        ".".join(filter(None, newest.name)) or (dataset.place if dataset else newest.opaque or "?"),
        first=numbers[0] if numbers else None,
        last=numbers[-1] if numbers else None,
        count=len({(row.snapshot, row.version) for row in rows}),
        generation=newest.generation,
        branch=newest.branch,
        version=newest.version,
        opaque=newest.opaque,
    )
