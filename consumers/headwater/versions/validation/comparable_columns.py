"""Which columns of two DataFrames are compared, and as which values.

Columns are matched by name; where no name is the same, upper and lower case count as one. Maps are compared as entries
in an order, so that they are equal if they have equal entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_WITHOUT_ORDER: Final = frozenset(
    {"VariantType", "CalendarIntervalType", "ObjectType", "GeometryType", "GeographyType"}
)


class ColumnPair(NamedTuple):
    """A column of both sides, by its place in each."""

    name: str
    recorded: int
    result: int
    is_key: bool


@dataclass(frozen=True)
class ColumnMatch:
    """Which columns are compared, the key first."""

    pairs: tuple[ColumnPair, ...]
    ignored: tuple[str, ...]
    missing_in_result: tuple[str, ...]
    missing_in_recorded: tuple[str, ...]
    is_reordered: bool


def match_columns(
    recorded: Sequence[str], result: Sequence[str], key: Sequence[str], ignored: Collection[str]
) -> ColumnMatch:
    """Return the columns of both sides; a ConfigurationError if there are none to compare, or a name is wrong."""
    places = _places(recorded, result)
    leave, keys = {name.casefold() for name in ignored}, [name.casefold() for name in key]
    known = {name.casefold() for name in (*recorded, *result)}
    for name in (*ignored, *key):
        if name.casefold() not in known:
            raise ConfigurationError(f"there is no column {name!r} on either side: there are {', '.join(recorded)}")
    for problem in _problems_of_both(key, leave):
        raise ConfigurationError(problem)
    pairs = [
        ColumnPair(name, place, places[place], name.casefold() in keys)
        for place, name in enumerate(recorded)
        if place in places and name.casefold() not in leave
    ]
    in_both = {pair.name.casefold() for pair in pairs if pair.is_key}
    if missing := [name for name in key if name.casefold() not in in_both]:
        raise ConfigurationError(f"{missing[0]} is in the key, and only one side has it: choose another key")
    if not pairs:
        raise ConfigurationError("no column is compared: none is on both sides, or all are ignored")
    pairs.sort(key=lambda pair: (not pair.is_key, keys.index(pair.name.casefold()) if pair.is_key else pair.recorded))
    order = [places[place] for place in sorted(places)]
    others = set(range(len(result))) - set(places.values())
    return ColumnMatch(
        tuple(pairs),
        tuple(dict.fromkeys(name for name in (*recorded, *result) if name.casefold() in leave)),
        tuple(n for i, n in enumerate(recorded) if i not in places and n.casefold() not in leave),
        tuple(n for i, n in enumerate(result) if i in others and n.casefold() not in leave),
        is_reordered=order != sorted(order),
    )


def problems_of_columns(
    recorded: Sequence[str], key: Sequence[str], ignored: Collection[str], *, ignores_new: bool
) -> Iterator[str]:
    """Yield what is wrong with the columns that are named, as far as that is known before there is a result. A column
    that is ignored may be one that only the result will have, if the caller says so."""
    known = {name.casefold() for name in recorded}
    there = f"there are {', '.join(recorded)}"
    for name in key:
        if name.casefold() not in known:
            yield f"the key has the column {name!r}, which the snapshot hasn't: {there}"
    for name in ignored:
        if name.casefold() not in known and not ignores_new:
            yield f"{name!r} is ignored, and the snapshot has no such column: {there}. If the job adds it, say --anyway"
    yield from _problems_of_both(key, {name.casefold() for name in ignored})


def _problems_of_both(key: Sequence[str], ignored: Collection[str]) -> Iterator[str]:
    for name in key:
        if name.casefold() in ignored:
            yield f"{name} is in the key and ignored: it can be one of both"


def _places(recorded: Sequence[str], result: Sequence[str]) -> dict[int, int]:
    """Return the place in the result of each recorded column: of the same name, else of one that differs in case."""
    exact = {name: place for place, name in enumerate(result)}
    places = {place: exact[name] for place, name in enumerate(recorded) if name in exact}
    free: dict[str, list[int]] = {}
    for place, name in enumerate(result):
        if place not in places.values():
            free.setdefault(name.casefold(), []).append(place)
    for place, name in enumerate(recorded):
        similar = free.get(name.casefold(), [])
        if place not in places and len(similar) == 1:
            places[place] = similar.pop()
    return places


def can_unite(one: DataFrame, other: DataFrame) -> bool:
    """Return whether Spark finds a type that both columns have room in."""
    if one.schema[0].dataType == other.schema[0].dataType:
        return True
    try:
        return len(one.union(other).schema) == 1
    except Exception:  # noqa: BLE001 - Spark's errors of analysis are of other classes in each release
        return False


def make_comparable(column: Column, kind: DataType, *, as_text: bool = False) -> Column:
    """Return a column that can be grouped and ordered by: maps become entries in an order, what has no order text."""
    import pyspark.sql.functions as f  # noqa: PLC0415

    name = type(kind).__name__
    inside: Any = kind
    if as_text or name in _WITHOUT_ORDER:
        return column.cast("string")
    if not _has_strange_part(kind):
        return column
    if name == "ArrayType":
        return f.transform(column, lambda element: make_comparable(element, inside.elementType))
    if name == "MapType":
        entries = f.transform(
            f.map_entries(column),
            lambda entry: f.struct(
                make_comparable(entry.getField("key"), inside.keyType).alias("key"),
                make_comparable(entry.getField("value"), inside.valueType).alias("value"),
            ),
        )
        return f.array_sort(entries)
    fields = [make_comparable(column.getField(field.name), field.dataType).alias(field.name) for field in inside.fields]
    return f.when(column.isNotNull(), f.struct(*fields))


def _has_strange_part(kind: DataType) -> bool:
    """Return whether a type is, or contains, one that Spark can't order."""
    name, inside = type(kind).__name__, kind
    parts: list[Any] = [getattr(inside, part) for part in ("elementType",) if hasattr(inside, part)]
    parts += [field.dataType for field in getattr(inside, "fields", ())]
    return name in _WITHOUT_ORDER or name == "MapType" or any(map(_has_strange_part, parts))
