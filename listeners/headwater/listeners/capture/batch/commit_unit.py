"""What one commit is made of: what its statements leave open until they ran, and several statements reported as one.

Open are which topics a pattern meant and which versions were read. Where several statements are one commit, each
relation is read, and each target written, by one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.batch.write_lineage import ResolvedSink, SourceLeaf, SourceList, WriteLineage
from headwater.listeners.capture.formats.protocol import (
    ReadVersion,
    SourceRelation,
    as_deferred_source_format,
    as_stream_format,
)
from headwater.listeners.capture.formats.relations import STREAMS
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import MicroBatch, Statement, StatementFacts


def with_deferred_sources(lineage: WriteLineage, statement: Statement) -> WriteLineage:
    """The shape with what was read in the place of what was asked for; the same where nothing is to be added."""
    relations = [_read_relations(leaf, statement) for leaf in lineage.leaves]
    return _replace_leaves(lineage, relations) if any(relations) else lineage


def _read_relations(leaf: SourceLeaf, statement: Statement) -> tuple[SourceRelation, ...]:
    deferred = as_deferred_source_format(leaf.format) if leaf.versions is None else None
    return () if deferred is None else deferred.read_relations(leaf.relation, statement)


def _replace_leaves(lineage: WriteLineage, fields: Sequence[Sequence[SourceRelation]]) -> WriteLineage:
    sources = SourceList()
    leaves: list[SourceLeaf] = []
    places: list[tuple[int, ...]] = []
    moved: list[dict[int, None]] = [{} for _ in lineage.sources]
    for leaf, found in zip(lineage.leaves, fields, strict=True):
        begin = len(leaves)
        for relation in found or (leaf.relation,):
            asked = lineage.sources[leaf.source]
            source = (
                asked
                if relation is leaf.relation
                else relation.source.model_copy(update={"watermarks": asked.watermarks})
            )
            leaves.append(replace(leaf, relation=relation, source=sources.place(source)))
            moved[leaf.source][leaves[-1].source] = None
        places.append(tuple(range(begin, len(leaves))))
    return replace(
        lineage,
        sources=sources.all(),
        leaves=tuple(leaves),
        parts=tuple(_renumber(part, places) for part in lineage.parts),
        columns=tuple(e.model_copy(update={"input": n}) for e in lineage.columns for n in moved[e.input]),
    )


def _renumber(part: ResolvedSink, places: Sequence[tuple[int, ...]]) -> ResolvedSink:
    return replace(part, leaves=tuple(new for old in part.leaves for new in places[old]))


def read_versions(leaf: SourceLeaf, statement: Statement) -> tuple[ReadVersion, ...]:
    """What a leaf of this statement read."""
    if leaf.versions is not None:
        return leaf.versions
    stream = statement.stream
    node = statement.plan.nodes[leaf.relation.node]
    if stream is not None and node.name in STREAMS:
        return _stream_versions(leaf, node, stream, statement.facts)
    if leaf.format is None:
        return (ReadVersion(),)
    return leaf.format.versions_read(leaf.relation, statement.plan, statement.facts)


def _stream_versions(
    leaf: SourceLeaf, node: PlanNode, stream: MicroBatch, facts: StatementFacts
) -> tuple[ReadVersion, ...]:
    if stream.offsets is None or node.index not in stream.offsets:
        return (ReadVersion(changes=True, why=f"what this micro-batch took of it isn't known: {stream.why}"),)
    given = [offsets for offsets in stream.offsets[node.index] if not offsets.is_empty]
    known = as_stream_format(leaf.format)
    if known is None:
        return (ReadVersion(changes=True),) if given else ()
    return tuple(
        version for offsets in given for version in known.versions_of_batch(leaf.relation, node, offsets, facts)
    )


@dataclass(frozen=True)
class CommitUnit:
    shape: WriteLineage
    """Of all together."""
    statement_of_leaf: tuple[Statement, ...]
    """By the shape's leaves: whose facts tell what was read."""
    statement_of_sink: tuple[Statement, ...]
    """By the shape's parts: whose facts tell what was written."""

    @classmethod
    def of_statement(cls, statement: Statement, lineage: WriteLineage) -> CommitUnit:
        lineage = with_deferred_sources(lineage, statement)
        return cls(lineage, (statement,) * len(lineage.leaves), (statement,) * len(lineage.parts))

    @classmethod
    def merge(cls, done: Sequence[tuple[Statement, WriteLineage]]) -> CommitUnit:
        """One shape: what several read is read once."""
        sources: dict[SourceSchema, int] = {}
        work = cls(WriteLineage((), (), (), (), ()), (), ())
        for statement, asked in done:
            lineage = with_deferred_sources(asked, statement)
            places = [sources.setdefault(source, len(sources)) for source in lineage.sources]
            work = work._with(statement, lineage, places)
        return replace(work, shape=replace(work.shape, sources=tuple(sources)))

    def _with(self, statement: Statement, lineage: WriteLineage, places: Sequence[int]) -> CommitUnit:
        before = self.shape
        leaves = tuple(replace(leaf, source=places[leaf.source]) for leaf in lineage.leaves)
        first_leaf, first_part = len(before.leaves), len(before.parts)
        parts = tuple(replace(part, leaves=tuple(n + first_leaf for n in part.leaves)) for part in lineage.parts)
        columns = tuple(
            edge.model_copy(update={"input": places[edge.input], "output": edge.output + first_part})
            for edge in lineage.columns
        )
        together = WriteLineage(
            before.sources,
            (*before.leaves, *leaves),
            (*before.parts, *parts),
            (*before.columns, *columns),
            tuple(dict.fromkeys((*before.unknown, *lineage.unknown))),
        )
        return CommitUnit(
            together,
            (*self.statement_of_leaf, *((statement,) * len(leaves))),
            (*self.statement_of_sink, *((statement,) * len(parts))),
        )
