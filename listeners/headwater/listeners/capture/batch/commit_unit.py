"""What several statements did that are reported as one: each relation is read, and each target written, by one of
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.batch.deferred_sources import with_deferred_sources
from headwater.listeners.capture.batch.write_lineage import WriteLineage
from headwater.listeners.capture.statements import Statement


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
