"""Rows of a commit: what it read, what it wrote, and which output was made from which inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headwater.events.jobs import (
    CommitEvidence,
    CommitKind,
    Committed,
    DatasetRef,
    Input,
    JobLineage,
    Output,
    RangeStart,
)
from headwater.lineage.mapping.row_builder import (
    RowBuilder,
    clean_text,
    dataset_hash,
    generation_text,
    job_name_key,
    table_name_key,
    to_json_text,
    uuid_bytes,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import Row
from headwater.lineage.rows.values import Value, hash_key

ALL: Final = "ALL"
"""A write was made from everything that its commit read."""
SOME: Final = "SOME"
"""A write was made from the reads that `commit_edges` lists."""
UNKNOWN: Final = "UNKNOWN"
EXACT: Final = "EXACT"
"""It is known that the commit wrote this table from the other."""
POSSIBLE: Final = "POSSIBLE"
"""The commit read the one table and wrote the other; whether it used it for that is unknown."""
COMPACTED: Final = CommitKind.COMPACT.value
SOURCE: Final = "SOURCE"
SINK: Final = "SINK"


def map_commit(event: Committed, build: RowBuilder) -> Iterator[Row]:
    job, parent = job_name_key(event.job), job_name_key(event.parent_job)
    key = (event.barrier, event.barrier_incarnation.bytes, *job)
    commit = hash_key(t.COMMIT.name, key)
    facts = (
        *parent,
        uuid_bytes(event.run),
        event.fingerprint,
        event.batch_id,
        event.statement,
        build.time,
        clean_text(event.application),
        clean_text(event.user),
        clean_text(event.operation),
        None if event.evidence is CommitEvidence.OBSERVED else event.evidence.value,
    )
    yield build.observed(t.COMMIT, *key, facts=facts)
    if event.job is not None:
        yield build.observed(t.JOB, *job)
    reads = []
    for source in event.inputs:
        yield from build.place(source)
        how = build.constant(t.PLACE, read_place(source))
        read = build.observed(t.READ, *read_key((event.barrier, commit), how.id, source))
        yield how
        yield read._replace(maxima=(source.rows, source.bytes))
        reads.append(read.id)
    for output in event.outputs:
        yield from build.place(output)
        yield from _write_rows(event, output, (event.barrier, commit), reads, build)
        yield from map_table_edges(event, output, build)
    if event.evidence is CommitEvidence.RECONCILED:  # which job it was isn't known
        return
    for side, places in ((SOURCE, event.inputs), (SINK, event.outputs)):
        for place in places:
            yield from map_table_access(side, place, event, build)


def map_table_access(side: str, place: DatasetRef, event: Committed | JobLineage, build: RowBuilder) -> Iterator[Row]:
    """Yield the row that says that a job reads or writes a table in a run."""
    if place.dataset is not None or place.table is not None:
        key_parts = (*job_name_key(event.job), *job_name_key(event.parent_job), uuid_bytes(event.run))
        yield build.observed(
            t.TABLE_LINEAGE, side, *key_parts, dataset_hash(place.dataset), *table_name_key(place.table)
        )


def _write_rows(
    event: Committed, output: Output, commit: tuple[int, bytes], reads: Sequence[bytes], build: RowBuilder
) -> Iterator[Row]:
    """Yield a write and its edges. Edges are written only if they say something new: nearly all writes use all reads of
    their commit. Each part of a split event knows only some inputs, so it always writes edges."""
    valid_indexes = _valid_indexes(output.made_from, len(reads))
    is_all = valid_indexes is not None and event.part is None and len(set(valid_indexes)) == len(reads)
    made_from = UNKNOWN if valid_indexes is None else ALL if is_all else SOME
    how = build.constant(t.PLACE, write_place(output, made_from))
    write = build.observed(t.WRITE, *write_key(commit, how.id, output))
    yield how
    yield write._replace(maxima=(output.parent, output.rows, output.bytes))
    if valid_indexes is not None and not is_all:
        for index in valid_indexes:
            yield build.observed(t.COMMIT_EDGE, event.barrier, write.id, reads[index])


def map_table_edges(event: Committed, output: Output, build: RowBuilder) -> Iterator[Row]:
    """Yield the edges between tables, for questions that are about tables only."""
    if output.dataset is None and output.table is None:
        return
    valid_indexes = _valid_indexes(output.made_from, len(event.inputs))
    job = (event.fingerprint, *job_name_key(event.job), *job_name_key(event.parent_job))
    target = (dataset_hash(output.dataset), _name_alone(output))
    for source in event.inputs if valid_indexes is None else (event.inputs[index] for index in valid_indexes):
        key = (target[0], dataset_hash(source.dataset), *job, target[1], _name_alone(source), clean_text(source.opaque))
        yield build.observed(t.TABLE_EDGE, *key, POSSIBLE if valid_indexes is None else EXACT)


def _name_alone(place: DatasetRef) -> Value:
    return clean_text(str(place.table)) if place.dataset is None and place.table is not None else None


def _valid_indexes(indexes: tuple[int, ...] | None, count: int) -> tuple[int, ...] | None:
    """Return the indexes unless one of them is invalid: then all are unknown."""
    is_sound = indexes is not None and all(0 <= index < count for index in indexes)
    return indexes if is_sound else None


def read_key(commit: tuple[int, bytes], place: bytes, source: Input) -> tuple[Value, ...]:
    since = source.since or RangeStart()
    numbers, texts = (source.snapshot, since.snapshot), (clean_text(source.version), clean_text(since.version))
    return (*commit, place, *numbers, *texts, to_json_text(source.candidates))


def write_key(commit: tuple[int, bytes], place: bytes, output: Output) -> tuple[Value, ...]:
    return (*commit, place, output.snapshot, clean_text(output.version), to_json_text(output.candidates))


def read_place(source: Input) -> tuple[Value, ...]:
    return (*_place(source), source.mode.value, clean_text(source.tag), None, None, None, None)


def write_place(output: Output, made_from: str) -> tuple[Value, ...]:
    kind = (output.commit_kind.value, output.replaced.value, made_from, output.schema_id)
    return (*_place(output), None, None, *kind)


def _place(place: DatasetRef) -> tuple[Value, ...]:
    return (
        dataset_hash(place.dataset),
        *table_name_key(place.table),
        generation_text(place.generation),
        clean_text(place.branch),
        clean_text(place.opaque),
        place.format.value,
        int(place.main),
    )
