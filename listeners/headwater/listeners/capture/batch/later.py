"""What the shape of a statement leaves open until it ran: which topics a pattern meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.listeners.capture.batch.shapes import Leaf, Reached, ShapeOfWrite, Sources
from headwater.listeners.capture.formats.protocol import Described, TellsLater
from headwater.listeners.capture.statements import Statement


def with_later(shape: ShapeOfWrite, statement: Statement) -> ShapeOfWrite:
    """The shape with what was read in the place of what was asked for; the same where nothing is to be added."""
    told = [_told(leaf, statement) for leaf in shape.leaves]
    return _replaced(shape, told) if any(told) else shape


def _told(leaf: Leaf, statement: Statement) -> tuple[Described, ...]:
    by: object = leaf.format if leaf.versions is None else None
    return by.later(leaf.described, statement) if isinstance(by, TellsLater) else ()


def _replaced(shape: ShapeOfWrite, told: Sequence[Sequence[Described]]) -> ShapeOfWrite:
    sources = Sources()
    leaves: list[Leaf] = []
    places: list[tuple[int, ...]] = []
    moved: list[dict[int, None]] = [{} for _ in shape.sources]
    for leaf, found in zip(shape.leaves, told, strict=True):
        begin = len(leaves)
        for each in found or (leaf.described,):
            source = shape.sources[leaf.source] if each is leaf.described else each.source
            leaves.append(replace(leaf, described=each, source=sources.place(source)))
            moved[leaf.source][leaves[-1].source] = None
        places.append(tuple(range(begin, len(leaves))))
    return replace(
        shape,
        sources=sources.all(),
        leaves=tuple(leaves),
        parts=tuple(_reached(part, places) for part in shape.parts),
        columns=tuple(e.model_copy(update={"input": n}) for e in shape.columns for n in moved[e.input]),
    )


def _reached(part: Reached, places: Sequence[tuple[int, ...]]) -> Reached:
    return replace(part, leaves=tuple(new for old in part.leaves for new in places[old]))
