"""From a statement that wrote to what is told of it: the shape, the commit, or the failure."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from headwater.events import (
    Committed,
    Effect,
    ErrorDetails,
    Event,
    Gap,
    GapReason,
    Input,
    JobLineage,
    JobName,
    NamedCatalog,
    Output,
    Place,
    ReadMode,
    ShapedSink,
    ShapedSource,
    Sink,
    Source,
    StatementFailed,
)
from headwater.listeners.capture.batch.omitted import Omitting
from headwater.listeners.capture.batch.remembered import Fingerprints
from headwater.listeners.capture.batch.shapes import Leaf, Reached, ShapeOfWrite
from headwater.listeners.capture.batch.work import Work
from headwater.listeners.capture.formats.protocol import Outcome, Version, streams_of
from headwater.listeners.capture.formats.relations import STREAMS
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, MicroBatch, Statement

_REMEMBERED: Final = 10_000
_UNTOLD: Final = Version()
_MAYBE: Final = "the statement failed, and whether it had committed something before isn't seen"
_PLACE: Final = ("dataset", "table", "life", "format", "branch", "main", "opaque")


@dataclass(frozen=True)
class By:
    """On whose account a statement is told."""

    job: JobName
    run: UUID
    parent_job: JobName


@dataclass(frozen=True)
class _Read:
    """What a leaf gave, as an input of the commit."""

    leaf: int
    input: Input
    gap: str | None


class Commits:
    """For one producer and one thread: which shapes were told, and when."""

    def __init__(self, scene: Scene, omitting: Omitting, next_barrier: Callable[[], int], repeat: float) -> None:
        self._scene = scene
        self._omitting = omitting
        self._next_barrier = next_barrier
        self._repeat = repeat
        self._told: OrderedDict[bytes, float] = OrderedDict()
        self._fingerprints = Fingerprints(scene.redactor)

    def events(self, statement: Statement, shape: ShapeOfWrite, by: By) -> Iterator[Event]:
        """Drafts, in order. None at all where nothing was committed."""
        yield from self.of_work(statement, Work.of(statement, shape), by)

    def of_work(self, statement: Statement, work: Work, by: By) -> Iterator[Event]:
        """The same of what several statements did, which is one commit of `statement`'s: a micro-batch."""
        shape = work.shape
        outcomes = [self._outcome(*each) for each in zip(shape.parts, work.of_parts, strict=True)]
        if shape.parts and not any(each.outputs or each.gap for each in outcomes):
            if statement.failure is not None:
                yield from self._evolved(statement, work, certain=False)
            return
        if statement.stream is not None and _is_silent(statement.stream, outcomes):
            return
        barrier = self._next_barrier() if statement.stream is None else statement.stream.barrier
        if barrier is None:
            yield self._without_barrier(statement, by)
            return
        yield from self._evolved(statement, work, certain=any(each.outputs for each in outcomes))
        reads = list(self._reads(work))
        inputs = tuple(dict.fromkeys(read.input for read in reads))
        if not shape.parts and not inputs:
            return
        sinks = tuple(o.sink or r.part.target.sink for o, r in zip(outcomes, shape.parts, strict=True))
        fingerprint = self._fingerprints.of(shape, sinks)
        if self._is_due(fingerprint):
            yield self._lineage(statement, shape, sinks, fingerprint, by)
        outputs = tuple(self._outputs(outcomes, shape, reads, inputs))
        if outputs or (inputs and not shape.parts):
            yield Committed(
                barrier=barrier,
                fingerprint=fingerprint,
                parent_job=by.parent_job,
                inputs=inputs,
                outputs=outputs,
                **_of_stream(statement),
                **_account(statement, by),
            )
        for gap in self._gaps(shape, reads, zip(outcomes, sinks, strict=True), barrier):
            yield gap.model_copy(update=_account(statement, by))

    def _without_barrier(self, statement: Statement, by: By) -> Gap:
        stream = statement.stream
        why = "" if stream is None else f"{stream.batch}: {stream.why}"
        detail = f"nobody can say when this query began, so nothing is told of micro-batch {why}"
        return Gap(reason=GapReason.CAPTURE_FAILED, detail=detail, **_account(statement, by))

    def _evolved(self, statement: Statement, work: Work, *, certain: bool) -> Iterator[Event]:
        """A statement that failed and committed no rows may have changed the schema before: nobody knows for sure."""
        for reached, each in zip(work.shape.parts, work.of_parts, strict=True):
            if reached.format is None:
                continue
            for event in reached.format.evolved(reached.part.target, each, self._scene):
                is_known = certain or statement.failure is None
                yield event if is_known else event.model_copy(update={"effect": Effect.UNKNOWN})

    def loose(self, outputs: tuple[Output, ...], by: By, inputs: tuple[Input, ...] = ()) -> Committed:
        """What was committed without a statement: mostly nobody sees what it was made from."""
        return Committed(
            barrier=self._next_barrier(),
            job=by.job,
            run=by.run,
            parent_job=by.parent_job,
            inputs=inputs,
            outputs=outputs,
        )

    def failed(self, statement: Statement, shape: ShapeOfWrite, by: By) -> StatementFailed:
        failure = statement.failure
        assert failure is not None  # noqa: S101 - the caller's business
        return StatementFailed(
            inputs=tuple(Source(**_place(source), tag=source.tag) for source in shape.sources),
            outputs=tuple(Sink(**_place(reached.part.target.sink)) for reached in shape.parts),
            parent_job=by.parent_job,
            error=ErrorDetails(
                type=failure.type or "unknown",
                message=failure.message,
                condition=failure.condition,
                sql_state=failure.sql_state,
            ),
            sql=statement.sql,
            **_of_stream(statement),
            **_account(statement, by),
        )

    def _reads(self, work: Work) -> Iterator[_Read]:
        for number, (leaf, statement) in enumerate(zip(work.shape.leaves, work.of_leaves, strict=True)):
            source = work.shape.sources[leaf.source]
            for version in self._versions(source, leaf, statement):
                yield _Read(number, _input(source, version, versioned=leaf.described.versioned), version.why)

    def _versions(self, source: ShapedSource, leaf: Leaf, statement: Statement) -> tuple[Version, ...]:
        """A stream that gave nothing wasn't read, whatever may be told of the versions of others."""
        found = versions(leaf, statement)
        return found if not found or not self._omitting.of(source).data_lineage else (_UNTOLD,)

    def _outputs(
        self, outcomes: list[Outcome], shape: ShapeOfWrite, reads: list[_Read], inputs: tuple[Input, ...]
    ) -> Iterator[Output]:
        for outcome, reached in zip(outcomes, shape.parts, strict=True):
            if outcome.unknown_origin:
                yield from outcome.outputs
                continue
            made_from = tuple(dict.fromkeys(inputs.index(read.input) for read in reads if read.leaf in reached.leaves))
            for output in outcome.outputs:
                yield output if output.made_from is not None else output.model_copy(update={"made_from": made_from})

    def _outcome(self, reached: Reached, statement: Statement) -> Outcome:
        outcome = _outcome(reached, statement)
        if statement.failure is not None:
            outcome = _proven(outcome)
        if not self._omitting.of(reached.part.target.sink).data_lineage:
            return outcome
        return replace(outcome, outputs=tuple(self._omitting.output(each) for each in outcome.outputs), gap=None)

    def _lineage(
        self, statement: Statement, shape: ShapeOfWrite, sinks: tuple[ShapedSink, ...], fingerprint: bytes, by: By
    ) -> JobLineage:
        return JobLineage(
            fingerprint=fingerprint,
            parent_job=by.parent_job,
            inputs=shape.sources,
            outputs=sinks,
            columns=shape.columns,
            catalogs=self._catalogs(shape, sinks),
            sql=statement.sql,
            **_account(statement, by),
        )

    def _catalogs(self, shape: ShapeOfWrite, sinks: tuple[ShapedSink, ...]) -> tuple[NamedCatalog, ...]:
        names = dict.fromkeys(each.table.catalog for each in (*shape.sources, *sinks) if each.table is not None)
        known = (self._scene.catalog_called(name) for name in names)
        return tuple(NamedCatalog(name=c.name, id=c.context.id) for c in known if c is not None and c.context.id)

    def _is_due(self, fingerprint: bytes) -> bool:
        now, told = time.monotonic(), self._told.get(fingerprint)
        if told is not None and now - told < self._repeat:
            return False
        self._told[fingerprint] = now
        self._told.move_to_end(fingerprint)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return True

    def _gaps(
        self, shape: ShapeOfWrite, reads: list[_Read], made: Iterable[tuple[Outcome, ShapedSink]], barrier: int
    ) -> Iterator[Gap]:
        read = [(each.gap, shape.sources[shape.leaves[each.leaf].source]) for each in reads if each.gap]
        written = [(outcome.gap, sink) for outcome, sink in made if outcome.gap]
        at: dict[str, Any] = {"first_barrier": barrier, "last_barrier": barrier}
        for why, place in (*read, *written):
            yield Gap(reason=GapReason.NOT_EXACT, detail=why, source=Source(**_place(place)), **at)
        for name in shape.unknown:
            detail = f"columns can't be followed through {name}"
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=detail, **at)


def versions(leaf: Leaf, statement: Statement) -> tuple[Version, ...]:
    """What a leaf of this statement read."""
    if leaf.versions is not None:
        return leaf.versions
    stream = statement.stream
    node = statement.plan.nodes[leaf.described.node]
    if stream is not None and node.name in STREAMS:
        return _of_a_stream(leaf, node, stream, statement.facts)
    if leaf.format is None:
        return (Version(),)
    return leaf.format.reads(leaf.described, statement.plan, statement.facts)


def _of_a_stream(leaf: Leaf, node: Node, stream: MicroBatch, facts: Facts) -> tuple[Version, ...]:
    if stream.took is None or node.index not in stream.took:
        return (Version(changes=True, why=f"what this micro-batch took of it isn't known: {stream.why}"),)
    given = [took for took in stream.took[node.index] if not took.is_empty]
    known = streams_of(leaf.format)
    if known is None:
        return (Version(changes=True),) if given else ()
    return tuple(version for took in given for version in known.took(leaf.described, node, took, facts))


def _input(source: Source, version: Version, *, versioned: bool) -> Input:
    mode = ReadMode.CHANGES if version.changes else ReadMode.STATE
    return Input(
        **_place(source),
        tag=source.tag,
        mode=mode if versioned or source.dataset is not None else ReadMode.UNKNOWN,
        snapshot=version.snapshot,
        version=version.version,
        since=version.since,
        candidates=version.candidates,
    )


def _outcome(reached: Reached, statement: Statement) -> Outcome:
    target = reached.part.target
    if reached.format is not None:
        return reached.format.written(target, statement)
    return Outcome((Output(**_place(target.sink), commit_kind=target.kind, replaced=target.replaced),))


def _is_silent(stream: MicroBatch, outcomes: Iterable[Outcome]) -> bool:
    """A micro-batch without data is nothing, unless something says that it made something all the same."""
    return stream.gave_nothing and not stream.files and not any(map(_is_seen, outcomes))


def _is_seen(outcome: Outcome) -> bool:
    """Whether something says that it wrote, beyond that it ran."""
    return any(o.snapshot is not None or o.version is not None or o.rows or o.candidates for o in outcome.outputs)


def _of_stream(statement: Statement) -> dict[str, Any]:
    stream = statement.stream
    return {} if stream is None else {"incarnation": stream.query, "batch_id": stream.batch}


def _proven(outcome: Outcome) -> Outcome:
    """Of a statement that failed only what it certainly made: a file, or a snapshot that may be its own, needn't be."""
    certain = tuple(output for output in outcome.outputs if output.snapshot is not None)
    if certain:
        return replace(outcome, outputs=certain)
    possible = any(output.candidates for output in outcome.outputs)
    return replace(outcome, outputs=(), gap=_MAYBE if possible else None)


def _account(statement: Statement, by: By) -> dict[str, Any]:
    return {"job": by.job, "run": by.run, "statement": statement.id}


def _place(place: Place) -> dict[str, Any]:
    return {name: getattr(place, name) for name in _PLACE}
