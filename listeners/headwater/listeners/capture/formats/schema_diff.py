"""How one schema became another: the changes that lead from one to the other, in an order in which they can be applied.

Fields are as Spark's schemas have them in JSON. What a field is as a column, and by what it is known again after a
rename, is its format's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from headwater.events.changes import (
    AddColumn,
    ChangeDefault,
    ChangeNullability,
    ColumnPosition,
    DropColumn,
    MoveColumn,
    RecommentColumn,
    RenameColumn,
    RetypeColumn,
    TableChange,
)
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json

Field: TypeAlias = Mapping[str, Any]
Fields: TypeAlias = Sequence[Field]

_INSIDE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "array": (("elementType", "element"),),
    "map": (("keyType", "key"), ("valueType", "value")),
}
"""Where types stand in a type, and what a path calls that."""


def fields_in(schema: str) -> Fields:
    found: list[Field] = json.loads(schema)["fields"]
    return found


def fields_of(columns: Iterable[Column]) -> Fields:
    """Of columns that a format tells one by one."""
    return [
        {
            "name": column.name,
            "type": json.loads(column.type),
            "nullable": column.nullable,
            "metadata": {} if column.comment is None else {"comment": column.comment},
        }
        for column in columns
    ]


def as_column(field: Field) -> Column:
    return columns_from_schema_json(json.dumps({"type": "struct", "fields": [field]}))[0]


def by_name(old: Fields, new: Fields) -> Callable[[Field], str]:
    return lambda field: str(field["name"])


class SchemaDiff:
    """Between schemas of one format."""

    def __init__(
        self,
        column: Callable[[Field], Column] = as_column,
        key: Callable[[Fields, Fields], Callable[[Field], str]] = by_name,
    ) -> None:
        self._column = column
        self._key = key

    def of(self, old: Fields, new: Fields, path: FieldPath = ()) -> Iterator[TableChange]:
        pairs = self._pair_fields(old, new)
        kept = {before["name"]: after["name"] for before, after in pairs}
        for field in old:
            if field["name"] not in kept:
                yield DropColumn(path=(*path, field["name"]))
        for name, new_name in kept.items():
            if name != new_name:
                yield RenameColumn(path=(*path, name), new_name=new_name)
        yield from self._order([kept[f["name"]] for f in old if f["name"] in kept], new, path)
        for before, after in pairs:
            yield from self._field(before, after, (*path, after["name"]))

    def _pair_fields(self, old: Fields, new: Fields) -> list[tuple[Field, Field]]:
        key = self._key(old, new)
        there = {key(field): field for field in new}
        return [(field, there[key(field)]) for field in old if key(field) in there]

    def _order(self, kept: list[str], new: Fields, path: FieldPath) -> Iterator[TableChange]:
        """Moves what stands elsewhere, and adds what is new, from the first place to the last."""
        order, names = list(kept), [field["name"] for field in new]
        for place, field in enumerate(new):
            name = field["name"]
            position = ColumnPosition(after=names[place - 1] if place else None)
            if name not in kept:
                yield self._describe_addition(field, (*path, name), None if place == len(order) else position)
                order.insert(place, name)
            elif order[place] != name:
                yield MoveColumn(path=(*path, name), position=position)
                order.remove(name)
                order.insert(place, name)

    def _describe_addition(self, field: Field, path: FieldPath, position: ColumnPosition | None) -> AddColumn:
        column = self._column(field)
        return AddColumn(
            path=path,
            type=column.type,
            nullable=column.nullable,
            comment=column.comment,
            default=column.default,
            generated=column.generated,
            metadata=column.metadata,
            position=position,
        )

    def _field(self, old: Field, new: Field, path: FieldPath) -> Iterator[TableChange]:
        before, after = self._column(old), self._column({**new, "name": old["name"]})
        if before.type != after.type:
            yield from self._type(old["type"], new["type"], path)
        if before.nullable != after.nullable:
            yield ChangeNullability(path=path, nullable=after.nullable)
        if before.comment != after.comment:
            yield RecommentColumn(path=path, comment=after.comment)
        if before.default != after.default:
            yield ChangeDefault(path=path, default=after.default)

    def _type(self, old: Any, new: Any, path: FieldPath) -> Iterator[TableChange]:
        kinds = {type_.get("type") if isinstance(type_, dict) else None for type_ in (old, new)}
        if kinds == {"struct"}:
            yield from self.of(old["fields"], new["fields"], path)
            return
        inside = _INSIDE.get(next(iter(kinds)) or "", ()) if len(kinds) == 1 else ()
        if inside:
            for key, word in inside:
                if old[key] != new[key]:
                    yield from self._type(old[key], new[key], (*path, word))
            return
        written = self._column({"name": "x", "type": new, "nullable": True, "metadata": {}})
        yield RetypeColumn(path=path, type=written.type)
