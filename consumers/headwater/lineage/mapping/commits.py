"""Rows of a commit: what it read, what it wrote, and which output was made from which inputs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from headwater.events.clock import micros_of
from headwater.events.jobs import CommitEvidence, CommitKind, Committed, Input, Output, RangeStart
from headwater.lineage.mapping.keys import clean_text, job_name_key, to_json_text, uuid_bytes
from headwater.lineage.mapping.places import Place, sink_place, source_place
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import Value

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
_NO_START: Final = RangeStart()


def map_commit(event: Committed, build: RowBuilder) -> None:
    job, parent, run = job_name_key(event.job), job_name_key(event.parent_job), uuid_bytes(event.run)
    key = (event.barrier, event.barrier_incarnation.bytes, *job)
    facts = (
        *parent,
        run,
        event.fingerprint,
        event.batch_id,
        event.statement,
        build.time,
        _micros(event.started),
        _micros(event.ended),
        clean_text(event.application),
        clean_text(event.user),
        clean_text(event.operation),
        None if event.evidence is CommitEvidence.OBSERVED else event.evidence.value,
    )
    commit = (event.barrier, build.fact(t.COMMIT, key, (build.time, build.time, build.stamp, *facts)))
    sources = tuple(map(source_place, event.inputs))
    made_from = tuple([_made_from(each, event) for each in event.outputs])
    sinks = tuple([sink_place(each, how) for each, (how, _) in zip(event.outputs, made_from, strict=True)])
    reads = [_add_read(each, place, commit, build) for each, place in zip(event.inputs, sources, strict=True)]
    for output, place, (how, indexes) in zip(event.outputs, sinks, made_from, strict=True):
        _add_write(output, place, commit, [reads[each] for each in indexes or ()] if how == SOME else (), build)
    is_reconciled = event.evidence is CommitEvidence.RECONCILED
    tables = _CommitTables((*job, *parent), run, event.fingerprint, is_reconciled, sources, sinks, made_from)
    build.repeat(_add_tables, tables)


_MadeFrom: TypeAlias = "tuple[str, tuple[int, ...] | None]"


def _made_from(output: Output, event: Committed) -> _MadeFrom:
    """Return what an output was made from, and the indexes of those inputs if it is known."""
    indexes, count = output.made_from, len(event.inputs)
    if indexes is None or (indexes and not (min(indexes) >= 0 and max(indexes) < count)):
        return UNKNOWN, None
    return ALL if len(set(indexes)) == count else SOME, indexes


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else micros_of(moment)


def _add_read(source: Input, place: Place, commit: tuple[int, bytes], build: RowBuilder) -> bytes:
    """Add a read, and return its id."""
    since, candidates = source.since or _NO_START, to_json_text(source.candidates) if source.candidates else None
    texts = (clean_text(source.version), clean_text(since.version), candidates)
    key = (*commit, place.id, source.snapshot, since.snapshot, *texts)
    return build.fact(t.READ, key, (source.rows, source.bytes, build.time, build.time))


def _add_write(
    output: Output, place: Place, commit: tuple[int, bytes], edges: Sequence[bytes], build: RowBuilder
) -> None:
    """Add a write, with edges to some reads by their ids: only if they say something new, as nearly all writes use all
    reads of their commit."""
    candidates = to_json_text(output.candidates) if output.candidates else None
    key = (*commit, place.id, output.snapshot, clean_text(output.version), candidates)
    numbers = (output.parent, output.rows, output.bytes, output.files, _micros(output.snapshot_time))
    write = build.fact(t.WRITE, key, (*numbers, build.time, build.time))
    for read in edges:
        build.fact(t.COMMIT_EDGE, (commit[0], write, read), ())


class _CommitTables(NamedTuple):
    """What a commit says of tables, whichever versions it read and wrote."""

    job: tuple[Value, ...]
    """The job, and its parent."""
    run: Value
    fingerprint: Value
    is_reconciled: bool
    sources: tuple[Place, ...]
    sinks: tuple[Place, ...]
    made_from: tuple[_MadeFrom, ...]


def _add_tables(build: RowBuilder, tables: _CommitTables) -> None:
    job, run, fingerprint, is_reconciled, sources, sinks, made_from = tables
    if job[0] is not None:
        build.observed(t.JOB, job[:2])
    for place in (*sources, *sinks):
        build.used(place)
        build.constant(t.PLACE, place.key)
    for sink, (_, indexes) in zip(sinks, made_from, strict=True):
        if sink.is_table:
            certainty = POSSIBLE if indexes is None else EXACT
            for source in sources if indexes is None else [sources[index] for index in indexes]:
                names = (sink.name_alone, source.name_alone, source.opaque, certainty)
                build.observed(t.TABLE_EDGE, (sink.hash, source.hash, fingerprint, *job, *names))
    if is_reconciled:  # which job it was isn't known
        return
    for side, places in ((SOURCE, sources), (SINK, sinks)):
        for place in places:
            map_table_access(side, place, (*job, run), build)


def map_table_access(side: str, place: Place, job: tuple[Value, ...], build: RowBuilder) -> None:
    """Add the row that says that a job, of a parent, reads or writes a table in a run."""
    if place.is_table:
        build.observed(t.TABLE_LINEAGE, (side, *job, place.hash, *place.name))
