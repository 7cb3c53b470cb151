"""Rows that one statement kept and another one reads: checkpoints. An RDD shows nothing of where it comes from, but a
checkpoint's columns have the ids of the plan that it was made of; so what that plan read can be put in its place.

A checkpoint is kept as a write into a sink of its own, whose columns are called by their numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from headwater.events import ColumnLineage
from headwater.events.column_lineage import Derivation
from headwater.events.jobs import SinkSchema
from headwater.listeners.capture.batch.commit_unit import read_versions, with_deferred_sources
from headwater.listeners.capture.batch.write_lineage import (
    ResolvedSink,
    WriteLineage,
    lineage_of_write,
    merge_equal_sources,
    without_leaf,
)
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.plan_cache import size_of_lineage
from headwater.listeners.capture.records import RddScan
from headwater.listeners.capture.statements import Statement

_MAX_COLUMNS: Final = 100_000
_MAX_BYTES: Final = 16 << 20
"""About how much all checkpoints together may take."""
_MAX_ALIKE: Final = 8
"""Micro-batches of one query whose rows its function's threads may still write, after the batch has ended."""
_STRENGTH: Final = (Derivation.IDENTITY, Derivation.TRANSFORMATION, Derivation.AGGREGATION)


@dataclass(frozen=True, slots=True)
class CheckpointedRows:
    """Rows that a checkpoint keeps, as Spark knows them."""

    ids: tuple[int, ...]
    """Of their columns."""
    rdd: int | None = None
    """Of the RDD that they are, where one by one keeps rows of the same columns: micro-batches do."""


@dataclass(frozen=True)
class _Checkpoint:
    """What a checkpoint was made of."""

    lineage: WriteLineage
    rows: CheckpointedRows

    @cached_property
    def edges(self) -> Mapping[tuple[str, ...] | None, list[ColumnLineage]]:
        """By the column that they lead to; None for what decides about its rows."""
        found: dict[tuple[str, ...] | None, list[ColumnLineage]] = {}
        for edge in self.lineage.columns:
            found.setdefault(edge.target, []).append(edge)
        return found

    @cached_property
    def size(self) -> int:
        return 2 * size_of_lineage(self.lineage)  # edges stand in lists by their columns, too


class CheckpointRegistry:
    """What this driver saw of checkpoints, by Spark's ids of their columns."""

    def __init__(self) -> None:
        self._kept: OrderedDict[CheckpointedRows, _Checkpoint] = OrderedDict()
        self._by_id: dict[int, dict[CheckpointedRows, int]] = {}
        """By a column's id: the checkpoints that have it, and its place in each."""
        self._columns = self._bytes = 0

    def keep(
        self,
        rows: CheckpointedRows,
        statement: Statement,
        context: CaptureContext,
        query: int | None = None,
        rdds: Iterable[RddScan] = (),
    ) -> None:
        """A checkpoint was made, or rows were handed to a function. `query` is the node that gave them, the plan's top
        if none; `rdds` are what it read of others."""
        plan = statement.plan
        root = plan.root if query is None else query
        columns = tuple((str(place),) for place in range(len(plan.nodes[root].output)))
        sink = SinkWrite(WriteTarget(SinkSchema(dataset=None, opaque="checkpoint")), root, columns)
        lineage = lineage_of_write(StatementWrites((sink,)), plan, context)
        lineage = with_deferred_sources(self.seen_through(lineage, rdds, plan), statement)
        leaves = tuple(replace(leaf, versions=read_versions(leaf, statement)) for leaf in lineage.leaves)
        self._add(_Checkpoint(replace(lineage, leaves=leaves), rows))

    def _add(self, made: _Checkpoint) -> None:
        rows = made.rows
        self._drop(rows)
        self._kept[rows] = made
        self._columns, self._bytes = self._columns + len(rows.ids), self._bytes + made.size
        for place, column in enumerate(rows.ids):
            self._by_id.setdefault(column, {})[rows] = place
        alike = [known for known in self._by_id.get(rows.ids[0], ()) if known.ids == rows.ids] if rows.ids else [rows]
        for oldest in alike[:-_MAX_ALIKE]:
            self._drop(oldest)
        while len(self._kept) > 1 and (self._columns > _MAX_COLUMNS or self._bytes > _MAX_BYTES):
            self._drop(next(iter(self._kept)))

    def _drop(self, rows: CheckpointedRows) -> None:
        dropped = self._kept.pop(rows, None)
        if dropped is None:
            return
        self._columns, self._bytes = self._columns - len(rows.ids), self._bytes - dropped.size
        for column in dict.fromkeys(rows.ids):
            del self._by_id[column][rows]
            if not self._by_id[column]:
                del self._by_id[column]

    def _find(self, rdd: RddScan) -> tuple[_Checkpoint, list[int]] | None:
        """The newest checkpoint that has all columns of this RDD, and their places in it."""
        found = [self._by_id.get(rdd_id, {}) for rdd_id in rdd.ids]
        for rows in reversed(found[0] if found else {}):
            if rows.rdd in {None, rdd.rdd} and all(rows in by_rows for by_rows in found):
                return self._kept[rows], [by_rows[rows] for by_rows in found]
        return None

    def seen_through(
        self, lineage: WriteLineage, rdds: Iterable[RddScan], plan: Plan, *, is_streamed: bool = False
    ) -> WriteLineage:
        """The lineage with what was kept in place of the RDDs that are known; the others stay as they are. Of the rows
        of a micro-batch that aren't known, `is_streamed`, the files are no state that was read."""
        for rdd in rdds:
            found = self._find(rdd)
            if found is not None or is_streamed:
                lineage = _without_files(lineage, rdd.node)
            if found is None:
                continue
            kept, places = found
            columns: dict[str, list[int]] = {}
            for number, place in zip(plan.nodes[rdd.node].output, places, strict=False):
                columns.setdefault(plan.attribute(number).name, []).append(place)
            lineage = _replace_rdd(lineage, rdd.node, kept, columns)
        return merge_equal_sources(lineage)


def _without_files(lineage: WriteLineage, node: int) -> WriteLineage:
    """Without the files that are known beside an RDD's unknown part."""
    own = [n for n, leaf in enumerate(lineage.leaves) if leaf.versions is None and leaf.relation.node == node]
    if all(lineage.leaves[n].relation.source.opaque is None for n in own):
        return lineage
    for place in reversed(own):
        if lineage.leaves[place].relation.source.opaque is None:
            lineage = without_leaf(lineage, place)
    return lineage


def _replace_rdd(
    lineage: WriteLineage, node: int, kept: _Checkpoint, columns: Mapping[str, Sequence[int]]
) -> WriteLineage:
    own = (n for n, leaf in enumerate(lineage.leaves) if leaf.versions is None and leaf.relation.node == node)
    place = next(own, None)
    if place is None:
        return lineage
    gone = lineage.leaves[place].source
    sources = list(lineage.sources)
    moved = [_index_of(source, sources) for source in kept.lineage.sources]
    new = tuple(replace(leaf, source=moved[leaf.source]) for leaf in kept.lineage.leaves)
    leaves = (*lineage.leaves, *new)
    added = tuple(range(len(lineage.leaves), len(leaves)))
    parts = tuple(_add_leaves(part, place, added) for part in lineage.parts)
    edges = [after for edge in lineage.columns for after in _compose_edges(edge, gone, kept, columns, moved)]
    for number, part in enumerate(lineage.parts):
        deciding = kept.edges.get(None, ()) if place in part.leaves else ()
        edges += [edge.model_copy(update={"output": number, "input": moved[edge.input]}) for edge in deciding]
    unknown = tuple(dict.fromkeys((*lineage.unknown, *kept.lineage.unknown)))
    dropped = WriteLineage(tuple(sources), leaves, parts, tuple(dict.fromkeys(edges)), unknown)
    return without_leaf(dropped, place)


def _index_of(source: Any, sources: list[Any]) -> int:
    """Of a source that is recorded; an RDD is never another one's."""
    if source.opaque is not None or source not in sources:
        sources.append(source)
        return len(sources) - 1
    return sources.index(source)


def _add_leaves(resolved: ResolvedSink, place: int, added: tuple[int, ...]) -> ResolvedSink:
    return replace(resolved, leaves=(*resolved.leaves, *added)) if place in resolved.leaves else resolved


def _compose_edges(
    edge: ColumnLineage,
    gone: int,
    kept: _Checkpoint,
    columns: Mapping[str, Sequence[int]],
    moved: Sequence[int],
) -> Iterator[ColumnLineage]:
    """An edge from the RDD becomes one from each of the columns that its own column was made of."""
    if edge.input != gone:
        yield edge
        return
    for place in columns.get(edge.source[0], ()):
        for origin in kept.edges.get((str(place),), ()):
            further = edge.source[1:] if origin.derivation is Derivation.IDENTITY else ()
            update = {
                "input": moved[origin.input],
                "source": (*origin.source, *further),
                "derivation": _compose(origin.derivation, edge.derivation),
                "expression": edge.expression or origin.expression,
            }
            yield edge.model_copy(update=update)


def _compose(first: Derivation, then: Derivation) -> Derivation:
    """What decides about rows or choices stays so, whatever it is made of; of two direct ones the stronger holds."""
    if not then.is_direct:
        return then
    return first if not first.is_direct else max(first, then, key=_STRENGTH.index)
