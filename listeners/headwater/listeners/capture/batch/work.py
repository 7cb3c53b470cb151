"""What several statements did that are told as one: each relation is read, and each target written, by one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.events import ShapedSource
from headwater.listeners.capture.batch.later import with_later
from headwater.listeners.capture.batch.shapes import ShapeOfWrite
from headwater.listeners.capture.statements import Statement


@dataclass(frozen=True)
class Work:
    shape: ShapeOfWrite
    """Of all together."""
    of_leaves: tuple[Statement, ...]
    """By the shape's leaves: whose facts tell what was read."""
    of_parts: tuple[Statement, ...]
    """By the shape's parts: whose facts tell what was written."""

    @classmethod
    def of(cls, statement: Statement, shape: ShapeOfWrite) -> Work:
        shape = with_later(shape, statement)
        return cls(shape, (statement,) * len(shape.leaves), (statement,) * len(shape.parts))

    @classmethod
    def together(cls, done: Sequence[tuple[Statement, ShapeOfWrite]]) -> Work:
        """One shape: what several read is read once."""
        sources: dict[ShapedSource, int] = {}
        work = cls(ShapeOfWrite((), (), (), (), ()), (), ())
        for statement, asked in done:
            shape = with_later(asked, statement)
            places = [sources.setdefault(source, len(sources)) for source in shape.sources]
            work = work._with(statement, shape, places)
        return replace(work, shape=replace(work.shape, sources=tuple(sources)))

    def _with(self, statement: Statement, shape: ShapeOfWrite, places: Sequence[int]) -> Work:
        before = self.shape
        leaves = tuple(replace(leaf, source=places[leaf.source]) for leaf in shape.leaves)
        first_leaf, first_part = len(before.leaves), len(before.parts)
        parts = tuple(replace(part, leaves=tuple(n + first_leaf for n in part.leaves)) for part in shape.parts)
        columns = tuple(
            edge.model_copy(update={"input": places[edge.input], "output": edge.output + first_part})
            for edge in shape.columns
        )
        together = ShapeOfWrite(
            before.sources,
            (*before.leaves, *leaves),
            (*before.parts, *parts),
            (*before.columns, *columns),
            tuple(dict.fromkeys((*before.unknown, *shape.unknown))),
        )
        return Work(
            together,
            (*self.of_leaves, *((statement,) * len(leaves))),
            (*self.of_parts, *((statement,) * len(parts))),
        )
