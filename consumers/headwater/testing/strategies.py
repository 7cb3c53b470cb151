"""Hypothesis strategies for every kind of event, derived from the models: whatever is valid can come.

Needs `hypothesis`, which is not among headwater's own dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin
from uuid import UUID

from annotated_types import Ge, Le, MaxLen, MinLen
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from headwater.events.base import CountMap, Model, StringMap
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS
from headwater.events.marks import IndexesInto
from headwater.events.scalars import EventEnum, Format

Strategy = st.SearchStrategy[Any]

_TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=12)
_SIMPLE: Final[Mapping[Any, Strategy]] = {
    bool: st.booleans(),
    UUID: st.uuids(),
    datetime: st.datetimes(timezones=st.just(timezone.utc)),
    StringMap: st.dictionaries(_TEXT, _TEXT, max_size=3).map(StringMap),
    CountMap: st.dictionaries(_TEXT, st.integers(0, 2**63 - 1), max_size=3).map(CountMap),
}


def events(*kinds: type[Event]) -> st.SearchStrategy[Event]:
    """Stamped events of these kinds, or of all."""
    return st.one_of([models(kind) for kind in kinds or KINDS.values()]).map(_consistent)


def drafts(*kinds: type[Event]) -> st.SearchStrategy[Event]:
    """Events that no producer stamped yet."""
    unstamped = {n: Event.model_fields[n].default for n in ("producer", "sequence", "family_sequence", "time")}
    return events(*kinds).map(lambda event: event.model_copy(update=unstamped))


@cache
def models(model: type[Model]) -> Strategy:
    """Valid values of any of the models that events are made of."""
    fields = {name: _strategy(f.annotation, tuple(f.metadata)) for name, f in model.model_fields.items()}
    if issubclass(model, Event):
        fields["producer"] = st.uuids(version=4)
    return st.builds(model, **fields)


def _consistent(event: Event) -> Event:
    """Indexes point at something."""
    update: dict[str, Any] = {}
    for name, value in event.__dict__.items():
        if isinstance(value, tuple) and value and isinstance(value[0], Model):
            update[name] = tuple(_indexed(item, event) for item in value)
    return event.model_copy(update=update)


def _indexed(item: Model, event: Event) -> Model:
    update = {
        name: tuple(sorted({i % len(target) for i in getattr(item, name) or ()})) if target else None
        for name, field in type(item).model_fields.items()
        for mark in field.metadata
        if isinstance(mark, IndexesInto)
        for target in [getattr(event, mark.field)]
    }
    return item.model_copy(update=update)


def _strategy(annotation: Any, metadata: tuple[Any, ...]) -> Strategy:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        field = FieldInfo.from_annotation(annotation)
        return _strategy(field.annotation, tuple(field.metadata) + metadata)
    if origin in (Union, UnionType):
        return st.one_of([st.none() if a is NoneType else _strategy(a, ()) for a in arguments])
    if origin is tuple:
        least = _bound(metadata, MinLen, lambda m: m.min_length, 0)
        return st.lists(_strategy(arguments[0], ()), min_size=least, max_size=3).map(tuple)
    if origin is Literal:
        return st.sampled_from(arguments)
    return _leaf(annotation, metadata)


def _leaf(annotation: Any, metadata: tuple[Any, ...]) -> Strategy:
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if annotation is int:
        low = _bound(metadata, Ge, lambda m: m.ge, -(2**63))
        return st.integers(low, _bound(metadata, Le, lambda m: m.le, 2**63 - 1))
    if annotation is str:
        return _TEXT.filter(len) if _bound(metadata, MinLen, lambda m: m.min_length, 0) else _TEXT
    if annotation is bytes:
        size = _bound(metadata, MaxLen, lambda m: m.max_length, 0)
        return st.binary(min_size=size, max_size=size)
    if annotation is Format:
        return st.sampled_from([*Format, Format("ACME")])
    return st.sampled_from(annotation) if issubclass(annotation, EventEnum) else st.deferred(lambda: models(annotation))


def _bound(metadata: tuple[Any, ...], mark: type[Any], value: Callable[[Any], int], default: int) -> int:
    return next((value(m) for m in metadata if isinstance(m, mark)), default)
