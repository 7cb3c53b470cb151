"""What a commit tells: what it read, what it made, and which of it from which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headwater.events.jobs import CommitKind, Committed, Input, JobLineage, Output, Place
from headwater.lineage.law.telling import (
    Telling,
    clean,
    dataset_hash,
    id_of,
    job_of,
    json_of,
    life_of,
    name_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import Row
from headwater.lineage.rows.values import Value, hash_of

ALL: Final = "ALL"
"""A write was made from everything that its commit read."""
SOME: Final = "SOME"
"""From those that edges tell."""
UNKNOWN: Final = "UNKNOWN"
EXACT: Final = "EXACT"
"""An edge between tables that is known."""
POSSIBLE: Final = "POSSIBLE"
"""One that may be: the commit read the one and wrote the other, and what was made from what isn't known."""
COMPACTED: Final = CommitKind.COMPACT.value
SOURCE: Final = "SOURCE"
SINK: Final = "SINK"


def of_commit(event: Committed, tell: Telling) -> Iterator[Row]:
    job, parent = job_of(event.job), job_of(event.parent_job)
    key = (*job, event.life_of_job.bytes, event.barrier)
    commit = hash_of(t.COMMIT.name, key)
    facts = (
        *parent,
        id_of(event.run),
        event.fingerprint,
        event.batch_id,
        event.statement,
        tell.time,
        clean(event.application),
        clean(event.user),
        clean(event.operation),
    )
    yield tell.seen(t.COMMIT, *key, facts=facts)
    if event.job is not None:
        yield tell.seen(t.JOB, *job)
    reads = [read_key((event.barrier, commit), each) for each in event.inputs]
    for read, source in zip(reads, event.inputs, strict=True):
        yield from tell.place(source)
        yield tell.seen(t.READ, *read, facts=read_facts(source))
    for output in event.outputs:
        yield from tell.place(output)
        yield from _written(event, output, (event.barrier, commit), reads, tell)
        yield from between_tables(event, output, tell)
    for side, places in ((SOURCE, event.inputs), (SINK, event.outputs)):
        for place in places:
            yield from table_lineage(side, place, event, tell)


def table_lineage(side: str, place: Place, event: Committed | JobLineage, tell: Telling) -> Iterator[Row]:
    """That a job reads or writes a table, in a run."""
    if place.dataset is not None or place.table is not None:
        whose = (*job_of(event.job), *job_of(event.parent_job), id_of(event.run))
        yield tell.seen(t.TABLE_LINEAGE, side, *whose, dataset_hash(place.dataset), *name_of(place.table))


def _written(
    event: Committed, output: Output, commit: tuple[int, bytes], reads: Sequence[tuple[Value, ...]], tell: Telling
) -> Iterator[Row]:
    """Edges are told only where the commit's own reads don't say the same: nearly all writes are made from all of them.
    Of an event that was cut each part knows a part of the inputs, so there they are always told."""
    key = write_key(commit, output)
    told = _within(output.made_from, len(reads))
    is_all = told is not None and event.part is None and len(set(told)) == len(reads)
    made_from = UNKNOWN if told is None else ALL if is_all else SOME
    yield tell.seen(t.WRITE, *key, facts=write_facts(output, made_from))
    if told is not None and not is_all:
        write = hash_of(t.WRITE.name, key)
        for index in told:
            yield tell.seen(t.EDGE, event.barrier, write, hash_of(t.READ.name, reads[index]))


def between_tables(event: Committed, output: Output, tell: Telling) -> Iterator[Row]:
    """What the table was made from, for questions that are about tables only."""
    if output.dataset is None and output.table is None:
        return
    told = _within(output.made_from, len(event.inputs))
    job = (event.fingerprint, *job_of(event.job), *job_of(event.parent_job))
    target = (dataset_hash(output.dataset), _name_alone(output))
    for source in event.inputs if told is None else (event.inputs[index] for index in told):
        key = (target[0], dataset_hash(source.dataset), *job, target[1], _name_alone(source), clean(source.opaque))
        yield tell.seen(t.TABLE_EDGE, *key, POSSIBLE if told is None else EXACT)


def _name_alone(place: Place) -> Value:
    return clean(str(place.table)) if place.dataset is None and place.table is not None else None


def _within(indexes: tuple[int, ...] | None, count: int) -> tuple[int, ...] | None:
    """Indexes that lead nowhere say nothing of where the others would."""
    is_sound = indexes is not None and all(0 <= index < count for index in indexes)
    return indexes if is_sound else None


def read_key(commit: tuple[int, bytes], source: Input) -> tuple[Value, ...]:
    since = source.since
    return (
        *commit,
        dataset_hash(source.dataset),
        *name_of(source.table),
        life_of(source.life),
        clean(source.branch),
        source.mode.value,
        source.snapshot,
        clean(source.version),
        since.snapshot if since else None,
        clean(since.version) if since else None,
        clean(source.opaque),
    )


def read_facts(source: Input) -> tuple[Value, ...]:
    candidates = json_of(source.candidates)
    return (source.format.value, clean(source.tag), candidates, int(source.main), source.rows, source.bytes)


def write_key(commit: tuple[int, bytes], output: Output) -> tuple[Value, ...]:
    return (
        *commit,
        dataset_hash(output.dataset),
        *name_of(output.table),
        life_of(output.life),
        clean(output.branch),
        output.snapshot,
        clean(output.version),
        clean(output.opaque),
    )


def write_facts(output: Output, made_from: str) -> tuple[Value, ...]:
    return (
        output.parent,
        output.schema_id,
        output.commit_kind.value,
        output.replaced.value,
        made_from,
        output.format.value,
        json_of(output.candidates),
        int(output.main),
        output.rows,
        output.bytes,
    )
