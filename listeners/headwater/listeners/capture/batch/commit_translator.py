"""From a statement that wrote to what is recorded of it: the shape, the commit, or the failure; not whose it is."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.events import Committed, Event, Gap, Input, JobLineage, Output, StatementFailed
from headwater.events.base import StringMap
from headwater.events.catalog import ModificationEffect
from headwater.events.clock import moment_of
from headwater.events.health import GapReason
from headwater.events.identity import Unknown
from headwater.events.jobs import (
    ErrorDetails,
    NamedCatalog,
    ReadMode,
    Sink,
    SinkSchema,
    Source,
    SourceSchema,
)
from headwater.listeners.capture.batch.commit_unit import CommitUnit, read_versions
from headwater.listeners.capture.batch.lineage_filter import LineageFilter
from headwater.listeners.capture.batch.write_lineage import FingerprintCache, ResolvedSink, SourceLeaf, WriteLineage
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import ReadVersion, WriteResult, ref_fields
from headwater.listeners.capture.statements import MicroBatch, Statement

_MAX_REMEMBERED: Final = 10_000
_UNREPORTED: Final = ReadVersion()
_POSSIBLE_COMMIT: Final = "the statement failed, and whether it had committed something before isn't seen"


@dataclass(frozen=True)
class _Read:
    """What a leaf gave, as an input of the commit."""

    leaf: int
    input: Input
    gap: str | None


class CommitTranslator:
    """For one producer and one thread: which shapes were reported, and when."""

    def __init__(
        self, context: CaptureContext, lineage_filter: LineageFilter, next_barrier: Callable[[], int], repeat: float
    ) -> None:
        self._context = context
        self._lineage_filter = lineage_filter
        self._next_barrier = next_barrier
        self._repeat = repeat
        self._emitted_at: OrderedDict[bytes, float] = OrderedDict()
        self._fingerprints = FingerprintCache(context.redactor)

    def events(self, statement: Statement, lineage: WriteLineage) -> Iterator[Event]:
        """Drafts, in order. None at all where nothing was committed."""
        yield from self.events_of_unit(statement, CommitUnit.of_statement(statement, lineage))

    def events_of_unit(self, statement: Statement, work: CommitUnit) -> Iterator[Event]:
        """The same of what several statements did, which is one commit of `statement`'s: a micro-batch."""
        lineage = work.shape
        outcomes = [self._write_result_of(*sink) for sink in zip(lineage.parts, work.statement_of_sink, strict=True)]
        if lineage.parts and not any(outcome.outputs or outcome.gap for outcome in outcomes):
            if statement.failure is not None:
                yield from self._schema_changes(statement, work, certain=False)
            elif statement.stream is None and any(outcome.has_no_rows for outcome in outcomes):
                sinks = _sinks(lineage, outcomes)
                yield from self._due_lineage(statement, lineage, sinks, self._fingerprints.of(lineage, sinks))
            return
        if statement.stream is not None and _is_empty_batch(statement.stream, outcomes):
            return
        barrier = self._next_barrier() if statement.stream is None else statement.stream.barrier
        if barrier is None:
            yield _no_barrier_gap(statement)
            return
        yield from self._schema_changes(statement, work, certain=any(outcome.outputs for outcome in outcomes))
        reads = list(self._reads(work))
        own = (input_ for outcome in outcomes for input_ in outcome.inputs)
        inputs = tuple(dict.fromkeys((*(read.input for read in reads), *own)))
        if not lineage.parts and not inputs:
            return
        sinks = _sinks(lineage, outcomes)
        fingerprint = self._fingerprints.of(lineage, sinks)
        yield from self._due_lineage(statement, lineage, sinks, fingerprint)
        outputs = tuple(self._outputs(outcomes, lineage, reads, inputs))
        if outputs or (inputs and not lineage.parts):
            yield Committed(
                barrier=barrier,
                fingerprint=fingerprint,
                inputs=inputs,
                outputs=outputs,
                **_stream_fields(statement),
                **_times_of(work.statement_of_sink or (statement,)),
            )
        yield from self._gaps_of(lineage, reads, zip(outcomes, sinks, strict=True), barrier)

    def _due_lineage(
        self, statement: Statement, lineage: WriteLineage, sinks: tuple[SinkSchema, ...], fingerprint: bytes
    ) -> Iterator[JobLineage]:
        """The shape, unless it was recorded a short time ago."""
        if self._is_due(fingerprint):
            yield self._lineage(statement, lineage, sinks, fingerprint)

    def _schema_changes(self, statement: Statement, work: CommitUnit, *, certain: bool) -> Iterator[Event]:
        """A statement that failed and committed no rows may have changed the schema before: nobody knows for sure."""
        for resolved, statement_of_sink in zip(work.shape.parts, work.statement_of_sink, strict=True):
            if resolved.format is None:
                continue
            for event in resolved.format.schema_changes(resolved.part.target, statement_of_sink, self._context):
                is_known = certain or statement.failure is None
                yield event if is_known else event.model_copy(update={"effect": ModificationEffect.UNKNOWN})

    def outside_statement(self, outputs: tuple[Output, ...], inputs: tuple[Input, ...] | None = None) -> Committed:
        """What was committed without a statement: each output was made from all inputs. Mostly nobody sees them."""
        if inputs is not None:
            made_from = tuple(range(len(inputs)))
            outputs = tuple(output.model_copy(update={"made_from": made_from}) for output in outputs)
        return Committed(barrier=self._next_barrier(), inputs=inputs or (), outputs=outputs)

    def failure(self, statement: Statement, lineage: WriteLineage) -> StatementFailed:
        failure = statement.failure
        assert failure is not None  # noqa: S101 - the caller's business
        return StatementFailed(
            inputs=tuple(Source(**ref_fields(source), tag=source.tag) for source in lineage.sources),
            outputs=tuple(Sink(**ref_fields(resolved.part.target.sink)) for resolved in lineage.parts),
            error=ErrorDetails(
                type=failure.type or "unknown",
                message=failure.message,
                condition=failure.condition,
                sql_state=failure.sql_state,
                parameters=StringMap(failure.parameters),
            ),
            sql=statement.sql,
            **_stream_fields(statement),
        )

    def _reads(self, work: CommitUnit) -> Iterator[_Read]:
        for number, (leaf, statement) in enumerate(zip(work.shape.leaves, work.statement_of_leaf, strict=True)):
            source = work.shape.sources[leaf.source]
            for version in self._versions(source, leaf, statement):
                yield _Read(number, make_input(source, version, versioned=leaf.relation.versioned), version.why)

    def _versions(self, source: SourceSchema, leaf: SourceLeaf, statement: Statement) -> tuple[ReadVersion, ...]:
        """A stream that gave nothing wasn't read, whatever may be recorded of the versions of others."""
        found = read_versions(leaf, statement)
        return found if not found or not self._lineage_filter.of(source).data_lineage else (_UNREPORTED,)

    def _outputs(
        self, outcomes: list[WriteResult], lineage: WriteLineage, reads: list[_Read], inputs: tuple[Input, ...]
    ) -> Iterator[Output]:
        for outcome, resolved in zip(outcomes, lineage.parts, strict=True):
            if outcome.unknown_origin:
                yield from outcome.outputs
                continue
            given = [read.input for read in reads if read.leaf in resolved.leaves]
            made_from = tuple(dict.fromkeys(inputs.index(input_) for input_ in (*given, *outcome.inputs)))
            for output in outcome.outputs:
                yield output if output.made_from is not None else output.model_copy(update={"made_from": made_from})

    def _write_result_of(self, resolved: ResolvedSink, statement: Statement) -> WriteResult:
        outcome = _write_result(resolved, statement)
        if statement.failure is not None:
            outcome = _only_certain(outcome)
        if not self._lineage_filter.of(resolved.part.target.sink).data_lineage:
            return outcome
        outputs = tuple(self._lineage_filter.output(output) for output in outcome.outputs)
        return replace(outcome, outputs=outputs, inputs=(), gap=None)

    def _lineage(
        self, statement: Statement, lineage: WriteLineage, sinks: tuple[SinkSchema, ...], fingerprint: bytes
    ) -> JobLineage:
        return JobLineage(
            fingerprint=fingerprint,
            inputs=lineage.sources,
            outputs=sinks,
            columns=lineage.columns,
            catalogs=self._named_catalogs(lineage, sinks),
            sql=statement.sql,
        )

    def _named_catalogs(self, lineage: WriteLineage, sinks: tuple[SinkSchema, ...]) -> tuple[NamedCatalog, ...]:
        names = dict.fromkeys(ref.table.catalog for ref in (*lineage.sources, *sinks) if ref.table is not None)
        known = (self._context.catalog_called(name) for name in names)
        return tuple(
            NamedCatalog(name=catalog.name, id=catalog.catalog.id, warehouse=catalog.catalog.warehouse)
            for catalog in known
            if catalog is not None and not isinstance(catalog.catalog, Unknown)
        )

    def _is_due(self, fingerprint: bytes) -> bool:
        now, emitted_at = time.monotonic(), self._emitted_at.get(fingerprint)
        if emitted_at is not None and now - emitted_at < self._repeat:
            return False
        self._emitted_at[fingerprint] = now
        self._emitted_at.move_to_end(fingerprint)
        if len(self._emitted_at) > _MAX_REMEMBERED:
            self._emitted_at.popitem(last=False)
        return True

    def _gaps_of(
        self, lineage: WriteLineage, reads: list[_Read], made: Iterable[tuple[WriteResult, SinkSchema]], barrier: int
    ) -> Iterator[Gap]:
        read = [(read.gap, lineage.sources[lineage.leaves[read.leaf].source]) for read in reads if read.gap]
        written = [(outcome.gap, sink) for outcome, sink in made if outcome.gap]
        at: dict[str, Any] = {"first_barrier": barrier, "last_barrier": barrier}
        for why, place in (*read, *written):
            yield Gap(reason=GapReason.NOT_EXACT, detail=why, source=Source(**ref_fields(place)), **at)
        for name in lineage.unknown:
            detail = f"columns can't be followed through {name}"
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=detail, **at)


def make_input(source: Source, version: ReadVersion, *, versioned: bool) -> Input:
    """Return the input that a source is, in the version that was read of it."""
    mode = ReadMode.CHANGES if version.changes else ReadMode.STATE
    return Input(
        **ref_fields(source),
        tag=source.tag,
        mode=mode if versioned or source.dataset is not None else ReadMode.UNKNOWN,
        snapshot=version.snapshot,
        version=version.version,
        since=version.since,
        candidates=version.candidates,
    )


def _sinks(lineage: WriteLineage, outcomes: Sequence[WriteResult]) -> tuple[SinkSchema, ...]:
    return tuple(o.sink or r.part.target.sink for o, r in zip(outcomes, lineage.parts, strict=True))


def _write_result(resolved: ResolvedSink, statement: Statement) -> WriteResult:
    target = resolved.part.target
    if target.result is not None:
        return target.result(target, statement)
    return resolved.format.write_result(target, statement) if resolved.format else WriteResult((target.output(),))


def _is_empty_batch(stream: MicroBatch, outcomes: Iterable[WriteResult]) -> bool:
    """A micro-batch without data is nothing, unless something says that it made something all the same."""
    return stream.gave_nothing and not stream.files and not any(map(_has_evidence, outcomes))


def _has_evidence(outcome: WriteResult) -> bool:
    """Whether something says that it wrote, beyond that it ran."""
    return any(o.snapshot is not None or o.version is not None or o.rows or o.candidates for o in outcome.outputs)


def _stream_fields(statement: Statement) -> dict[str, Any]:
    stream = statement.stream
    return {} if stream is None else {"incarnation": stream.query, "batch_id": stream.batch}


def _times_of(statements: Sequence[Statement]) -> dict[str, Any]:
    """When the statements of a commit began and ended, by Spark."""
    started = [statement.started for statement in statements]
    known = None if None in started else min(filter(None, started), default=None)
    return {
        "started": None if known is None else moment_of(known * 1000),
        "ended": moment_of(max(statement.ended for statement in statements) * 1000),
    }


def _only_certain(outcome: WriteResult) -> WriteResult:
    """Of a statement that failed only what it certainly made: a file, or a snapshot that may be its own, needn't be."""
    certain = tuple(output for output in outcome.outputs if output.snapshot is not None)
    if certain:
        return replace(outcome, outputs=certain)
    possible = any(output.candidates for output in outcome.outputs)
    return replace(outcome, outputs=(), gap=_POSSIBLE_COMMIT if possible else None)


def _no_barrier_gap(statement: Statement) -> Gap:
    stream = statement.stream
    why = "" if stream is None else f"{stream.batch}: {stream.why}"
    detail = f"nobody can say when this query began, so nothing is recorded of micro-batch {why}"
    return Gap(reason=GapReason.CAPTURE_FAILED, detail=detail)
