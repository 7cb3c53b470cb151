"""The interface of a table format. Each format implements it in a module or package of its own.

A format reads what its extractor wrote (`<Format>Extractor.java` in its folder `java`): from the plan in `source` and
`sink`, which are called once for each plan, and from the facts of each statement in `versions_read`, `write_result` and
`schema_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from headwater.events import AlterTable, Format, Input, Output
from headwater.events.jobs import (
    CommitKind,
    DatasetRef,
    OverwriteScope,
    RangeStart,
    SinkSchema,
    SourceSchema,
    StartReason,
)
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact, OffsetRange, Statement, StatementFacts

ProcedureArguments: TypeAlias = Mapping[str, str | None]
"""The arguments of a call of a procedure, by the names of its parameters."""


@dataclass(frozen=True)
class SourceRelation:
    """A relation that a plan reads, as its plan tells it."""

    node: int
    """The leaf of the plan."""
    source: SourceSchema
    versioned: bool = False
    """Whether the format has versions: if so, one that isn't known is reported as a Gap."""
    asked: int | None = None
    """The version that was asked for by number, where the plan tells it."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """Whatever the format wants to find again: never values."""
    hidden: frozenset[str] = frozenset()
    """Columns that the format keeps beside the table's own: nothing is recorded to come from them."""
    also: tuple[SourceRelation, ...] = ()
    """What else the same leaf reads: the other topics of a subscription."""


@dataclass(frozen=True)
class ReadVersion:
    """A version that was read. At most one of `snapshot` and `candidates` is set."""

    snapshot: int | None = None
    version: str | None = None
    since: RangeStart | None = None
    changes: bool = False
    """What came between `since` and this version was read, not a state."""
    candidates: tuple[int, ...] = ()
    why: str | None = None
    """Why it isn't known."""


@dataclass(frozen=True)
class WriteTarget:
    """What a statement is about to write, as its plan tells it."""

    sink: SinkSchema
    catalog: SessionNamedCatalog | None = None
    """Where the table is in one."""
    kind: CommitKind = CommitKind.UNKNOWN
    """As the command says it; the format's own word holds where it has one."""
    replaced: OverwriteScope = OverwriteScope.UNKNOWN
    versioned: bool = False
    node: int | None = None
    """The relation that is written, where the plan has one."""
    generated: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=dict)
    """Columns that the format computes as it writes, and the columns of the table that each is made from."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    result: Callable[[WriteTarget, Statement], WriteResult] | None = None
    """Says what became of it, where its format's `write_result` doesn't: of a procedure, say."""

    def output(self, sink: SinkSchema | None = None, **fields: object) -> Output:
        """What was committed to it, or to the sink as it is known by now: of the command's kind and extent, where the
        fields of the output don't say otherwise."""
        values: dict[str, Any] = {"commit_kind": self.kind, "replaced": self.replaced, **fields}
        return Output(**ref_fields(sink or self.sink), **values)


@dataclass(frozen=True)
class SinkWrite:
    """A target, and the query whose rows go into it."""

    target: WriteTarget
    query: int | None = None
    """The node whose output is written; None where the command isn't a query's (a DELETE without a plan, TRUNCATE)."""
    columns: tuple[FieldPath | None, ...] = ()
    """Which column of the target each column of the query's output goes to, in its order; None: to none of them."""
    row_level: bool = False
    """A MERGE, UPDATE or DELETE: lineage is that of the command's clauses, not of a query's output."""
    only: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Of these nodes, only these of their inputs give rows that go there: branches of a UNION."""


@dataclass(frozen=True)
class StatementWrites:
    """What a statement with this plan writes."""

    parts: tuple[SinkWrite, ...]
    reads: tuple[int, ...] = ()
    """Nodes that are read beside the parts' queries."""


@dataclass(frozen=True)
class WriteResult:
    """What became of a target. No outputs and no gap: nothing was committed."""

    outputs: tuple[Output, ...] = ()
    """The place stands in each; what they were made from is the caller's business."""
    gap: str | None = None
    """Why a snapshot isn't exact."""
    sink: SinkSchema | None = None
    """The sink, where the facts tell more of it than the shape did: a table that the statement made."""
    inputs: tuple[Input, ...] = ()
    """What the outputs were made from, too, and the plan doesn't read: the snapshot that was picked."""
    unknown_origin: bool = False
    """What the outputs were made from isn't among what the plan reads."""
    has_no_rows: bool = False
    """Nothing was committed because there were no rows to write: the job lineage holds all the same."""


@dataclass(frozen=True)
class StreamStart:
    """Where a query begins to read a stream, and why there."""

    snapshot: int | None = None
    version: str | None = None
    reason: StartReason = StartReason.UNKNOWN


class TableFormat(Protocol):
    @property
    def format(self) -> Format: ...

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        """What this leaf of an analyzed plan reads; None where it isn't this format's."""
        ...

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        """What is written, found by a relation (DataSourceV2Relation, LogicalRelation …) or, where the statement makes
        the table or the v1 source does (CreateTableAsSelect, ReplaceTableAsSelect, SaveIntoDataSource-
        Command), by the command itself; None where it isn't this format's."""
        ...

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        """The versions that were really read of it: more than one where the statement read it more than once. None at
        all: the optimizer saw that it needn't be read."""
        ...

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        """What this statement committed to the target. `made_from` is the caller's business. One that failed may have
        committed before: of it, a snapshot is recorded only where it is certain that the statement itself made it."""
        ...

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        """How the write changed the table's schema, reported before its commit."""
        ...


@dataclass(frozen=True)
class OutsideCommit:
    """What a commit did that no plan tells of."""

    outputs: tuple[Output, ...] = ()
    inputs: tuple[Input, ...] | None = None
    """What the outputs were made from; None where that isn't known."""
    altered: tuple[AlterTable, ...] = ()
    whole: bool = True
    """Whether that is all of it."""


@runtime_checkable
class StreamFormat(Protocol):
    """A format that can be read as a stream, and counts what was read in a way that this module knows."""

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        """What a micro-batch read of it, in versions. Never asked for a stream that gave nothing."""
        ...

    def start_of_stream(self, source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
        """Where a query begins to read it that has no checkpoint yet, by what its first micro-batch takes; `end` may
        be absent."""
        ...


@runtime_checkable
class MultiSinkFormat(Protocol):
    """A format into several of whose datasets one command may write."""

    def sinks(self, node: PlanNode, plan: Plan, context: CaptureContext) -> tuple[SinkWrite, ...]:
        """What this command writes; none where it isn't this format's."""
        ...


@runtime_checkable
class DeferredSourceFormat(Protocol):
    """A format some of whose relations don't say what they read: that shows only in what was read."""

    def read_relations(self, source: SourceRelation, statement: Statement) -> tuple[SourceRelation, ...]:
        """What this statement read of it; none where the shape tells it, or where that isn't to be seen."""
        ...


@runtime_checkable
class OutsideCommitFormat(Protocol):
    """A format some of whose commits are made without a plan that tells of them, by calling its library."""

    def outside_commit(self, fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
        """What a fact that a hook noted says was committed; None where it isn't a commit, or not this format's."""
        ...


_implements: Final[Callable[[type, type], bool]] = cache(issubclass)
"""Asked for each leaf of each statement, where `isinstance` of a protocol would take a tenth of all the time."""


def as_stream_format(found: object) -> StreamFormat | None:
    """The format, where it can be read as a stream."""
    return cast("StreamFormat", found) if _implements(type(found), StreamFormat) else None


def as_deferred_source_format(found: object) -> DeferredSourceFormat | None:
    """The format, where it has relations that don't say what they read."""
    return cast("DeferredSourceFormat", found) if _implements(type(found), DeferredSourceFormat) else None


def ref_fields(ref: DatasetRef) -> dict[str, Any]:
    """Return which dataset a source or sink is, as the fields of another reference to the same dataset."""
    return {name: getattr(ref, name) for name in DatasetRef.model_fields}


@dataclass(frozen=True)
class RddSource:
    """A dataset that an RDD reads."""

    source: SourceSchema
    version: ReadVersion


@runtime_checkable
class RddFormat(Protocol):
    """A format whose own RDDs show what they read."""

    def rdd_sources(self, fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
        """What an RDD reads, by what the format's extractor wrote of it; nothing where that isn't certain."""
        ...


def sources_of_rdds(facts: Iterable[FormatFact], context: CaptureContext) -> Iterator[RddSource]:
    """Yield what is read of formats, by the facts of their RDDs."""
    readers = context.formats.readers()
    for fact in facts:
        reader = readers.get(str(fact.get("format")))
        if isinstance(reader, RddFormat):
            yield from reader.rdd_sources(fact, context)
