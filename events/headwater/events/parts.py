"""Splits an event that is too large into parts, and merges parts for people and forwarders.

A part is an event of its own that can be stored without the others. The elements of fields marked `Splittable` are
distributed in order; everything else is in every part, so that a part says itself what it belongs to. Indexes into a
splittable field count within the part. Of a field marked `Divisible` each part has some elements, with all that points
at them in another field; merged again, what points is in the order of what it points at.

What can't be distributed: free texts are truncated and say so; a column type of hundreds of kilobytes is split into
fragments, each in a copy of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard, TypeVar

from headwater.errors import TerminalError
from headwater.events.avro.types import fields_with
from headwater.events.base import FrozenMap, Model
from headwater.events.envelope import Event, EventPart
from headwater.events.marks import Divisible, IndexesInto, Splittable, marked
from headwater.events.sizes import estimated_size, is_larger, truncated
from headwater.events.tables import Column, TypeFragment

PART_BYTES: Final = 256 * 1024
E_ = TypeVar("E_", bound=Event)
_Envelope = frozenset({"part", "sequence", "family_sequence", "time"})


class PartsError(TerminalError):
    """These parts don't make an event."""


def split_event(event: E_, limit: int = PART_BYTES) -> tuple[E_, ...]:
    """Split an event that takes more bytes than the limit; one that fits comes back alone.

    A part is above the limit only where a single element is.
    """
    if not is_larger(event, limit):
        return (event,)
    whole = _with_fragments(truncated(event), limit // 4)
    parts = [part for each, size in _split_event(whole, limit) for part in _sliced(each, size, limit)]
    if len(parts) == 1:
        return (whole,)
    return tuple(
        part.model_copy(update={"part": EventPart(number=number, of=len(parts))})
        for number, part in enumerate(parts, 1)
    )


def _split_event(event: E_, limit: int) -> list[tuple[E_, int]]:
    """Without the elements of its divisible field that others of these events have; with the estimated size of each."""
    for name, mark in marked(type(event), Divisible).items():
        items = getattr(event, name)
        of_item: list[list[Model]] = [[] for _ in items]
        for each in getattr(event, mark.pointers) if items else ():
            of_item[min(getattr(each, mark.index), len(items) - 1)].append(each)
        weights = [
            estimated_size(item) + sum(map(estimated_size, own)) for item, own in zip(items, of_item, strict=True)
        ]
        rest = _Slice(0, 0).of(event.model_copy(update={name: (), mark.first: len(items)}), event)
        size = estimated_size(rest)
        ranges = _split_ranges(weights, max(limit - size, limit // 4))
        if len(ranges) < 2:
            continue
        pieces: list[tuple[E_, int]] = []
        for begin, end in ranges:
            own = (
                each.model_copy(update={mark.index: getattr(each, mark.index) - begin}) if begin else each
                for pointers in of_item[begin:end]
                for each in pointers
            )
            update = {name: items[begin:end], mark.pointers: tuple(own), mark.first: begin}
            piece = (rest if pieces else event).model_copy(update=update)
            pieces.append((piece, size + sum(weights[begin:end]) if pieces else estimated_size(piece)))
        return pieces
    return [(event, estimated_size(event))]


def _sliced(event: E_, size: int, limit: int) -> list[E_]:
    if size <= limit:
        return [event]
    weights = _Weights()
    base = weights.of(event)
    ranges = _split_ranges(weights.elements, max(limit - base, limit // 4))
    return [_Slice(*each).of(event, event) for each in ranges]


def merge_parts(parts: Iterable[E_]) -> E_:
    """Merge all parts of one event, given in any order; the result has the first part's id.

    Raises PartsError if they aren't the parts of one event, or one is missing.
    """
    ordered = sorted(parts, key=lambda event: event.part.number if event.part else 0)
    _check(ordered)
    if ordered[0].part is None:
        return ordered[0]
    for name, mark in marked(type(ordered[0]), Divisible).items():
        ordered = _merge_parts([*ordered], name, mark)
    joined: E_ = _Join(ordered).of(ordered)
    return joined.model_copy(update={"part": None})


def _merge_parts(parts: list[E_], name: str, mark: Divisible) -> list[E_]:
    """One event with all elements of the divisible field, of parts that have some each."""
    pieces: dict[int, list[E_]] = {}
    for part in parts:
        pieces.setdefault(getattr(part, mark.first), []).append(part)
    if len(pieces) < 2:
        return parts
    merged = [_Join(each).of(each) for each in pieces.values()]
    pointers = (
        each.model_copy(update={mark.index: getattr(each, mark.index) + first})
        for first, piece in zip(pieces, merged, strict=True)
        for each in getattr(piece, mark.pointers)
    )
    items = tuple(item for piece in merged for item in getattr(piece, name))
    return [merged[0].model_copy(update={name: items, mark.pointers: tuple(pointers)})]


def _check(parts: Sequence[Event]) -> None:
    if not parts:
        raise PartsError("there is nothing to join")
    first = parts[0]
    if first.part is None and len(parts) == 1:
        return
    for number, event in enumerate(parts, 1):
        if type(event) is not type(first) or event.producer != first.producer:
            raise PartsError(
                f"{event.kind} {event.event_id} and {first.kind} {first.event_id} aren't parts of one event"
            )
        if event.part is None or first.part is None or event.part.of != first.part.of:
            raise PartsError(f"{event.kind} {event.event_id} isn't a part of the event that begins at {first.event_id}")
        if event.part.number != number or event.sequence != first.sequence + number - 1:
            raise PartsError(f"part {number} of {first.kind} {first.event_id} is missing or there twice")
    if first.part is None or first.part.of != len(parts):
        raise PartsError(f"{len(parts)} parts of {first.kind} {first.event_id} are here: the last ones are missing")


def _marks(model: Any) -> tuple[Mapping[str, Splittable], Mapping[str, IndexesInto]]:
    """The spread fields of a model, and its index fields with what they index."""
    kind: type[Model] = type(model)
    return marked(kind, Splittable), marked(kind, IndexesInto)


def _is_models(value: Any) -> TypeGuard[tuple[Model, ...]]:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Model)


@dataclass
class _Weights:
    """Visits an event in the order that parts are dealt out in."""

    elements: list[int] = field(default_factory=list)

    def of(self, model: Model) -> int:
        """The weight of what is in every part; the elements are appended to the list."""
        spread, _ = _marks(model)
        total = 2
        for name, value in model.__dict__.items():
            if name in spread:
                items = value.items() if isinstance(value, FrozenMap) else value
                self.elements.extend(estimated_size(item) for item in items)
                total += 4
            elif isinstance(value, Model):
                total += self.of(value)
            elif _is_models(value):
                total += 4 + sum(self.of(item) for item in value)
            else:
                total += estimated_size(value)
        return total


def _split_ranges(weights: Sequence[int], capacity: int) -> list[tuple[int, int]]:
    """Neighbours together as long as they fit."""
    ranges: list[tuple[int, int]] = []
    begin = filled = 0
    for at, each in enumerate(weights):
        if at > begin and filled + each > capacity:
            ranges.append((begin, at))
            begin, filled = at, 0
        filled += each
    return [*ranges, (begin, len(weights))]


@dataclass
class _Slice:
    """The part that has the elements from `begin` to before `end`, counted over the whole event."""

    begin: int
    end: int
    _at: int = 0
    _ranges_of_fields: dict[str, range] = field(default_factory=dict)

    def of(self, model: Any, event: Model) -> Any:
        spread, indexes = _marks(model)
        update: dict[str, Any] = {}
        content: dict[str, Any] = model.__dict__
        for name, value in content.items():
            if name in spread:
                update[name] = self._elements(name, value)
            elif name in indexes and value is not None:
                update[name] = _indexes_in(value, self._ranges_of_fields[indexes[name].field])
            elif isinstance(value, Model):
                update[name] = self.of(value, event)
            elif _is_models(value):
                update[name] = tuple(self.of(item, event) for item in value)
        return model.model_copy(update=update)

    def _elements(self, name: str, value: Any) -> Any:
        low = min(max(self.begin - self._at, 0), len(value))
        high = min(max(self.end - self._at, low), len(value))
        self._at += len(value)
        self._ranges_of_fields[name] = range(low, high)
        return type(value)(list(value.items())[low:high]) if isinstance(value, FrozenMap) else value[low:high]


def _indexes_in(indexes: Sequence[int], kept: range) -> tuple[int, ...]:
    return tuple(index - kept.start for index in indexes if index in kept)


class _Join:
    """The reverse of all slices at once."""

    def __init__(self, parts: Sequence[Event]) -> None:
        self._parts = parts

    def of(self, models: Sequence[Any]) -> Any:
        first = models[0]
        spread, indexes = _marks(first)
        update: dict[str, Any] = {}
        for name, value in first.__dict__.items():
            values = [getattr(model, name) for model in models]
            if name in spread:
                update[name] = _concatenated(values)
            elif name in indexes and value is not None:
                update[name] = self._rebased(values, indexes[name].field)
            elif isinstance(value, Model) and name not in _Envelope:
                update[name] = self.of(values)
            elif _is_models(value):
                update[name] = tuple(self.of(items) for items in zip(*values, strict=True))
        return first.model_copy(update=update)

    def _rebased(self, values: Sequence[tuple[int, ...]], target: str) -> tuple[int, ...]:
        rebased: list[int] = []
        before = 0
        for part, indexes in zip(self._parts, values, strict=True):
            rebased.extend(index + before for index in indexes)
            before += len(getattr(part, target))
        return tuple(rebased)


def _concatenated(values: Sequence[Any]) -> Any:
    if isinstance(values[0], FrozenMap):
        return type(values[0])([item for value in values for item in value.items()])
    elements = [element for value in values for element in value]
    return tuple(_without_fragments(elements))


def _with_fragments(model: Any, limit: int) -> Any:
    """The same with each column whose type is larger than the limit in fragments."""
    kind: type[Model] = type(model)
    update: dict[str, Any] = {}
    for name in fields_with(kind, _is_column):
        value = getattr(model, name)
        if _is_models(value) and isinstance(value[0], Column):
            fragments = tuple([fragment for column in value for fragment in _fragments(column, limit)])
            if len(fragments) > len(value):
                update[name] = fragments
        elif isinstance(value, Model):
            update[name] = _with_fragments(value, limit)
        elif _is_models(value):
            update[name] = tuple([_with_fragments(item, limit) for item in value])
    return model.model_copy(update=update) if update else model


def _is_column(model: type[Model]) -> bool:
    return model is Column


def _fragments(column: Model, limit: int) -> Iterable[Model]:
    size = limit // 4  # a character takes 4 bytes at most
    if not isinstance(column, Column) or len(column.type) <= size:
        return (column,)
    texts = [column.type[at : at + size] for at in range(0, len(column.type), size)]
    return (
        column.model_copy(update={"type": text, "type_fragment": TypeFragment(number=number, of=len(texts))})
        for number, text in enumerate(texts, 1)
    )


def _without_fragments(elements: Sequence[Any]) -> Iterable[Any]:
    """The same with each column whose fragments are all there, one after another, as one column again."""
    run: list[Column] = []
    for element in elements:
        fragment = element.type_fragment if isinstance(element, Column) else None
        if fragment is None or fragment.number != len(run) + 1 or (run and element.name != run[0].name):
            yield from run
            run = []
        if fragment is None or fragment.number != len(run) + 1:
            yield element
            continue
        run.append(element)
        if fragment.number == fragment.of:
            yield element.model_copy(update={"type": "".join(each.type for each in run), "type_fragment": None})
            run = []
    yield from run
