"""Makes an event small enough for one message of a bus.

An event that is too large loses what it can do without: first the ends of texts for people, then the lineage of its
columns, then the columns and options of the tables that it names. A Gap says what. Tables, versions and names are never
left out: an event that is too large with those alone is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from headwater.events.avro.types import AvroEdges, fields_of, fields_with
from headwater.events.base import FrozenMap, Model, StringMap
from headwater.events.column_lineage import ColumnLineage, edges_fit
from headwater.events.envelope import Event
from headwater.events.health import Gap, GapReason
from headwater.events.jobs import DatasetSchema, JobLineage
from headwater.events.marks import Truncatable, marked

TEXT_CHARACTERS: Final = 4_096
E_ = TypeVar("E_", bound=Event)


class _Reduction(NamedTuple):
    """What is left out of all models of a kind, wherever they stand in an event."""

    words: str
    """Says what an event lacks. Empty where that says so itself."""
    has: Callable[[type[Model]], bool]
    """Whether models of a class can have what is left out."""
    change: Callable[[Any], dict[str, Any]]
    """The fields of such a model as they are without it."""


def reductions(event: E_) -> Iterator[tuple[E_, tuple[str, ...]]]:
    """Yield the event with less and less in it, and what it lacks then."""
    lost: tuple[str, ...] = ()
    for each in _REDUCTIONS:
        if each.has(type(event)) or fields_with(type(event), each.has):
            event = _reduce(event, each)
            lost = (*lost, each.words) if each.words else lost
            yield event, lost


def _find_base(kind: type) -> type | None:
    return next((each for each in (str, Model, FrozenMap, tuple) if issubclass(kind, each)), None)


_base_of: Final[Callable[[type], type | None]] = cache(_find_base)
"""Which of these a class is, once for each class: to ask whether a value is a model takes several calls."""


def may_fit(event: Event, limit: int) -> bool:
    """Return False for an event that surely takes more bytes than the limit: it isn't worth encoding."""
    stack: list[Any] = [event]
    while stack and limit >= 0:
        value = stack.pop()
        limit -= 1
        base = _base_of(type(value))
        if base is str:
            limit -= len(value)
        elif base is Model:
            stack.extend(value.__dict__.values())
        elif base is FrozenMap:
            limit -= sum(map(len, value))
        elif base is tuple and value:
            if type(value[0]) is not ColumnLineage:
                stack.extend(value)
            elif not edges_fit(value):
                return False
    return limit >= 0


def omission(event: Event, lost: tuple[str, ...], limit: int) -> Gap:
    """Return the Gap for what an event lacks."""
    detail = f"a {event.kind} has no {', no '.join(lost)}: with that it takes more than {limit} bytes"
    envelope = {name: getattr(event, name) for name in ("job", "run", "statement", "user", "operation")}
    return Gap(reason=GapReason.NOT_SUPPORTED, detail=detail).model_copy(update=envelope)


def _reduce(model: Any, reduction: _Reduction) -> Any:
    kind: type[Model] = type(model)
    update = reduction.change(model) if reduction.has(kind) else {}
    for name in fields_with(kind, reduction.has):
        value = getattr(model, name)
        if isinstance(value, Model):
            update[name] = _reduce(value, reduction)
        elif value and name not in update:
            update[name] = tuple([_reduce(item, reduction) for item in value])
    return model.model_copy(update=update)


def _has_free_texts(model: type[Model]) -> bool:
    return bool(marked(model, Truncatable))


def _shorten_texts(model: Model) -> dict[str, Any]:
    return {
        name: f"{text[:TEXT_CHARACTERS]}… [{len(text) - TEXT_CHARACTERS} more characters]"
        for name in marked(type(model), Truncatable)
        if (text := getattr(model, name)) is not None and len(text) > TEXT_CHARACTERS
    }


def _has_edges(model: type[Model]) -> bool:
    return any(isinstance(shape, AvroEdges) for shape in fields_of(model).values())


def _without_edges(model: Model) -> dict[str, Any]:
    is_told = {"columns_omitted": True} if isinstance(model, JobLineage) else {}
    return is_told | {name: () for name, shape in fields_of(type(model)).items() if isinstance(shape, AvroEdges)}


def _has_schema(model: type[Model]) -> bool:
    return issubclass(model, DatasetSchema)


def _without_schema(_: Model) -> dict[str, Any]:
    return {"columns": (), "options": StringMap()}


_REDUCTIONS: Final = (
    _Reduction("", _has_free_texts, _shorten_texts),
    _Reduction("column lineage", _has_edges, _without_edges),
    _Reduction("columns and options of its tables", _has_schema, _without_schema),
)
