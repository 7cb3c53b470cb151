"""The ground all event models stand on: frozen, keyword-only, nothing unknown accepted, built when first used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Model(BaseModel):
    """A value: immutable, hashable, equal by content.

    `defer_build` keeps the import cheap: a driver imports every kind and uses a handful.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, ser_json_bytes="hex", val_json_bytes="hex")


V = TypeVar("V", bound=Hashable)


class FrozenMap(Mapping[str, V]):
    """An immutable, hashable map, in the order of its keys."""

    __slots__ = ("_items",)

    _value_schema: ClassVar[CoreSchema]

    def __init__(self, items: Mapping[str, V] | Iterable[tuple[str, V]] = ()) -> None:
        self._items = dict(sorted(dict(items).items()))

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        plain = core_schema.dict_schema(core_schema.str_schema(), cls._value_schema)
        return core_schema.no_info_after_validator_function(
            cls, plain, serialization=core_schema.plain_serializer_function_ser_schema(dict, return_schema=plain)
        )


class StringMap(FrozenMap[str]):
    """Configurations, options, properties, tags."""

    __slots__ = ()
    _value_schema = core_schema.str_schema()


class CountMap(FrozenMap[int]):
    """How many of each."""

    __slots__ = ()
    _value_schema = core_schema.int_schema(ge=0, le=2**63 - 1)
