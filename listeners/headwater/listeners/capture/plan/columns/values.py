"""What a column holds at one place of a plan: origins of its values, told apart by the expression they came through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from headwater.listeners.capture.plan.columns.origins import NONE, Members, Origins


class Part(NamedTuple):
    """One way in which values come: a UNION gives a column several."""

    members: Members
    text: str | None = None
    """The expression, where there is one."""
    is_compound: bool = False
    """Whether the text needs brackets inside of another."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    parts: tuple[Part, ...] = ()
    members: Members = NONE
    """Of all parts."""
    struct: Struct | None = None
    """Where the column is a struct that the query made: what its fields are is asked there."""


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    reference: int
    """A CreateNamedStruct."""
    scope: Scope


Scope: TypeAlias = dict[int, Value]
"""By the ids of attributes: what an operator sees of those below it."""
NOTHING: Final = Value()
"""Of literals and the like, and of what isn't known."""


def value(part: Part, struct: Struct | None = None) -> Value:
    return Value((part,), part.members, struct)


def either(values: Iterable[Value]) -> Value:
    """A column that is sometimes one of these, sometimes another."""
    several = list({id(each): each for each in values if each.parts}.values())
    if len(several) < 2:
        return several[0] if several else NOTHING
    merged: dict[str | None, Part] = {}
    for part in (part for each in several for part in each.parts):
        known = merged.get(part.text)
        merged[part.text] = part if known is None else part._replace(members=known.members | part.members)
    return Value(tuple(merged.values()), NONE.union(*(each.members for each in several)))


def field_of(whole: Value, fields: tuple[str, ...], origins: Origins) -> Value:
    """A field of a struct, however deep."""
    if not fields or not whole.parts:
        return whole
    parts: list[Part] = []
    for members, text, is_compound in whole.parts:
        deeper = frozenset(origins.deeper(each, fields) for each in members)
        base = f"({text})" if is_compound else text
        parts.append(Part(deeper, None if base is None else ".".join((base, *fields))))
    return Value(tuple(parts), NONE.union(*(each.members for each in parts)))
