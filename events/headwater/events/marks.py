"""Marks on fields, for what works on all models alike: what a too large event can lose, what holds text of plans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel


@dataclass(frozen=True)
class IndexesInto:
    """These numbers are indexes into the named tuple of the event."""

    field: str


@dataclass(frozen=True)
class Truncatable:
    """A text for people: where an event is too large it loses its end, and says so. Facts are never shortened."""


@dataclass(frozen=True)
class Identity:
    """A text that tells one thing from another: a name, a path, an id, a version, a partition. Redaction takes only
    credentials out of it (passwords in URLs, tokens known by their shape); of a text without this mark it also takes
    what follows a secret's name, as in `token=x`."""


@dataclass(frozen=True)
class OptionName:
    """The name of an option or property, whose value stands in the same model. Redaction judges the value by it."""


@dataclass(frozen=True)
class TypeText:
    """The JSON of a Spark type: names of nested fields, with their comments and metadata."""


@dataclass(frozen=True)
class SqlText:
    """A text made from a plan or statement: its literals are data, and stay out unless capture.sql is true."""


@dataclass(frozen=True)
class ErrorText:
    """What an error says: it quotes statements and values, which stay out unless capture.sql is true. `kind` is the
    model's field with the class of the error."""

    kind: str


M = TypeVar("M")


@cache
def marked(model: type[BaseModel], mark: type[M]) -> dict[str, M]:
    """The fields of a model that have such a mark, themselves or as a member of a union, with the mark."""
    found: dict[str, M] = {}
    for name, field in model.model_fields.items():
        marks = [m for m in (*field.metadata, *_inside(field.annotation)) if isinstance(m, mark)]
        if marks:
            found[name] = marks[0]
    return found


def _inside(annotation: Any) -> list[Any]:
    members = [argument for argument in get_args(annotation) if get_origin(argument) is Annotated]
    return [mark for member in members for mark in get_args(member)[1:]]
