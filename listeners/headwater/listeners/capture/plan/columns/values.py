"""What a column holds at one place of a plan: origins of its values, distinguished by the expression they came
through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, Members, OriginSets


class ValuePart(NamedTuple):
    """One way in which values come: a UNION gives a column several."""

    members: Members
    text: str | None = None
    """The expression, where there is one."""
    is_compound: bool = False
    """Whether the text needs brackets inside of another."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnValue:
    parts: tuple[ValuePart, ...] = ()
    members: Members = NO_MEMBERS
    """Of all parts."""
    struct: StructValue | StructChoice | None = None
    """Where the column is a struct that the query made: what its fields are is asked there."""


@dataclass(frozen=True, slots=True, eq=False)
class StructValue:
    reference: int
    """A CreateNamedStruct, or an aggregate that chooses one."""
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class StructChoice:
    """Sometimes one of these, sometimes another."""

    choices: tuple[ColumnValue, ...]
    depth: int
    """How many choices there are within each other."""


Scope: TypeAlias = dict[int, ColumnValue]
"""By the ids of attributes: what an operator sees of those below it."""
NO_VALUE: Final = ColumnValue()
"""Of literals and the like, and of what isn't known."""


def make_value(part: ValuePart, struct: StructValue | StructChoice | None = None) -> ColumnValue:
    return ColumnValue((part,), part.members, struct)


_DEEPEST_CHOICE: Final = 30
"""Beyond this a field is made from all fields of the struct, so that following it never goes deep."""


def choose_struct(values: Iterable[ColumnValue]) -> StructChoice | None:
    """The struct that is one of these; None where the query made none of them."""
    choices = tuple(values)
    if not any(choice.struct is not None for choice in choices):
        return None
    depth = 1 + max(choice.struct.depth if isinstance(choice.struct, StructChoice) else 0 for choice in choices)
    return StructChoice(choices, depth) if depth <= _DEEPEST_CHOICE else None


def merge_values(values: Iterable[ColumnValue]) -> ColumnValue:
    """A column that is sometimes one of these, sometimes another."""
    several = list({id(value): value for value in values if value.parts}.values())
    if len(several) < 2:
        return several[0] if several else NO_VALUE
    merged: dict[str | None, ValuePart] = {}
    for part in (part for value in several for part in value.parts):
        known = merged.get(part.text)
        merged[part.text] = part if known is None else part._replace(members=known.members | part.members)
    members = NO_MEMBERS.union(*(value.members for value in several))
    return ColumnValue(tuple(merged.values()), members, choose_struct(several))


def field_of(whole: ColumnValue, fields: tuple[str, ...], origins: OriginSets) -> ColumnValue:
    """A field of a struct, however deep."""
    if not fields or not whole.parts:
        return whole
    parts: list[ValuePart] = []
    for members, text, is_compound in whole.parts:
        deeper = frozenset(origins.deeper(member, fields) for member in members)
        base = f"({text})" if is_compound else text
        parts.append(ValuePart(deeper, None if base is None else ".".join((base, *fields))))
    return ColumnValue(tuple(parts), NO_MEMBERS.union(*(part.members for part in parts)))
