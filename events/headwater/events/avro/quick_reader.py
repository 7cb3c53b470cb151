"""Reads events of today's schemas straight into their models, by one function for each kind, which is compiled from the
models' fields.

fastavro makes a dict of everything and pydantic looks at each value again: that takes three times as long. The compiled
function has the checks of the fields in it. What isn't plain in any way (a number out of its range, a text that is no
UTF-8, a list of several blocks) it leaves to the codec, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from uuid import UUID

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from headwater.events import marks
from headwater.events.avro.known_values import KnownModels, KnownSpans, KnownUuids
from headwater.events.avro.plain_values import (
    edges_of,
    maker_of,
    read_long,
    read_size,
    refuse,
    tagged_maker,
)
from headwater.events.avro.types import (
    AvroArray,
    AvroType,
    TaggedUnion,
    avro_type_of,
    fields_of,
    name_field_of,
    union_fields_of,
)
from headwater.events.base import CountMap, Model, StringMap
from headwater.events.column_lineage import ColumnEdges, ColumnLineage
from headwater.events.envelope import Event
from headwater.events.jobs import Input, JobLineage, Output
from headwater.events.names import CatalogId, DatasetId, JobName, TableName
from headwater.events.scalars import EPOCH, Count, EventEnum, Format
from headwater.events.tables import Column

QuickRead: TypeAlias = "Callable[[bytes, int], Any]"
_REPEATED: Final = (CatalogId, Column, DatasetId, JobName, TableName)
"""Models of which the same ones come again and again: they are looked up by their bytes."""
_SPANS: Final[dict[type[Model], tuple[str, str | None]]] = {
    JobLineage: ("fingerprint", None),
    Input: ("dataset", "mode"),
    Output: ("dataset", "opaque"),
}
"""The first and the last of those fields of a model that come again and again in each run of a job."""
_NOT_SHORT: Final = 0x81
"""The bits of a byte that a length up to 63 doesn't have."""
_SHORTEST_UUID: Final = 32
"""A text of this length may be a UUID, and then it is one."""
_EVERY_LONG: Final = (-(2**63), 2**63 - 1)


class _UnknownTypeError(TypeError):
    """Fields of this type can't be read quickly."""


@cache
def quick_reader(kind: type[Event]) -> QuickRead | None:
    """Return a function that makes an event of the bytes from an offset on; None if the kind has a type that it can't
    read. The function raises some error for bytes that aren't plain."""
    try:
        return _Compiler().compile(kind)
    except _UnknownTypeError:
        return None


class _Compiler:
    """Writes one function. In it `data` are the bytes, `at` is where the next value begins, and `n` is a number."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1
        self._count = 0
        self._names: dict[str, Any] = {"long": read_long, "size": read_size, "refuse": refuse, "epoch": EPOCH}
        self._names.update(delta=timedelta, uuids=KnownUuids())

    def compile(self, kind: type[Event]) -> QuickRead:
        found = self._fields(kind)
        self._write("if at != len(data): refuse()", f"return {found}")
        exec("\n".join(["def read(data, at):", *self._lines]), self._names)  # noqa: S102 - only our models are in it
        read: QuickRead = self._names["read"]
        return read

    def _write(self, *lines: str) -> None:
        self._lines += ["    " * self._depth + line for line in lines]

    def _new(self, value: Any = None) -> str:
        """Return a new name, of this value or of a variable."""
        self._count += 1
        name = f"v{self._count}"
        if value is not None:
            self._names[name] = value
        return name

    def _set(self, expression: str) -> str:
        found = self._new()
        self._write(f"{found} = {expression}")
        return found

    def _inside(self, header: str, write: Callable[[], Any]) -> Any:
        """Write what stands in a block."""
        self._write(header)
        self._depth += 1
        found = write()
        self._depth -= 1
        return found

    def _fields(self, model: type[Model]) -> str:
        names = list(fields_of(model))
        found = {"kind": repr(model.__name__)} if issubclass(model, Event) else {}  # it isn't written
        first, last = _SPANS.get(model, (None, None))
        begin = names.index(first) if first else len(names)
        end = names.index(last) + 1 if last else len(names)
        for name in names[:begin]:
            self._field(model, name, found)
        span = self._span_of_fields(model, names[begin:end]) if first else None
        rest: dict[str, str] = {} if span else found
        for name in names[end:]:
            self._field(model, name, rest, span)
        content = f"{_pairs(found)}**{span}, {_pairs(rest)}" if span else _pairs(found)
        return self._set(f"{self._new(maker_of(model))}({{{content}}})")

    def _span_of_fields(self, model: type[Model], names: Sequence[str]) -> str:
        """Read fields into a dict that is probably known by their bytes, and is looked up by those of the first one."""

        def read() -> str:
            found: dict[str, str] = {}
            for name in names:
                self._field(model, name, found)
            return self._set(f"{{{_pairs(found)}}}")

        share = 1 if issubclass(model, Event) else 4
        return self._span(read, lambda: self._skip(model.model_fields[names[0]].annotation), share)

    def _field(self, model: type[Model], name: str, found: dict[str, str], span: str | None = None) -> None:
        field = model.model_fields.get(name)
        if field is not None:
            found[name] = self._value(field.annotation, tuple(field.metadata), field)
            return
        of = next(each for each in model.model_fields if name_field_of(each) == name)
        word = self._value(Union[str, None])  # noqa: UP007 - a value, not a type
        value = f"{self._new(Format)}({word})"
        changed = f"{found[of]} = {value}" if of in found else f"{span} = {{**{span}, {of!r}: {value}}}"
        self._write(f"if {word} is not None: {changed}")

    def _span(self, read: Callable[[], str], skip_start: Callable[[], None], share: int = 4) -> str:
        """Read what is probably known by its bytes."""
        known, began = self._new(KnownSpans(share)), self._set("at")
        skip_start()
        start, behind = self._set(f"data[{began}:at]"), self._set("at")
        found = self._set(f"{known}.find({start}, data, at)")

        def read_and_add() -> None:
            self._write(f"at = {began}")
            value = read()
            self._write(f"if at >= {behind}: {known}.add({start}, data[{behind}:at], {value})", f"{found} = {value}")

        self._inside(f"if {found} is None:", read_and_add)
        self._write(f"else: at += len({found}[0]); {found} = {found}[1]")
        return found

    def _repeated(self, model: type[Model]) -> str:
        """Read a model that is probably known by its bytes."""
        known, began = self._new(KnownModels()), self._set("at")
        self._skip_fields(model)
        key = self._set(f"data[{began}:at]")
        found = self._set(f"{known}.get({key})")

        def read() -> None:
            self._write(f"at = {began}")
            self._write(f"{found} = {self._fields(model)}", f"{known}.add({key}, {found})")

        self._inside(f"if {found} is None:", read)
        return found

    def _skip_some(self) -> None:
        """Skip as much of a list as tells it from most others."""
        self._write("at = min(at + 48, len(data))")

    def _skip_fields(self, model: type[Model]) -> None:
        for field in model.model_fields.values():
            self._skip(field.annotation)

    def _skip(self, of: Any) -> None:
        arguments = get_args(of)
        if get_origin(of) is Annotated:
            self._skip(arguments[0])
        elif get_origin(of) in (Union, UnionType):
            (option,) = (each for each in arguments if each is not NoneType)
            self._write("n = data[at]; at += 1")
            self._inside("if n == 2:", lambda: self._skip(option))
            self._write("elif n: refuse()")
        elif of is str:
            self._size()
            self._write("at += n")
        elif of is bytes:
            self._write("at += 16")
        elif of in (bool, int):
            self._write("while data[at] > 127: at += 1", "at += 1")
        elif isinstance(of, type) and issubclass(of, Model):
            self._skip_fields(of)
        else:
            raise _UnknownTypeError

    def _value(self, of: Any, checks: tuple[Any, ...] = (), field: FieldInfo | None = None) -> str:
        """Write what reads a value and checks it. Return the variable that has it."""
        if field is not None and field.discriminator:
            return self._tagged(avro_type_of(field))
        if get_origin(of) is Annotated:
            inner = FieldInfo.from_annotation(of)
            return self._value(inner.annotation, (*inner.metadata, *checks), inner)
        if get_origin(of) in (Union, UnionType):
            return self._union(get_args(of), checks)
        found = self._plain(of)
        for check in checks:
            self._check(found, check)
        return found

    def _union(self, arguments: tuple[Any, ...], checks: tuple[Any, ...]) -> str:
        """Read null or a value, or one of several."""
        options = [each for each in arguments if each is not NoneType]
        if len(options) == 1 and get_origin(options[0]) is Annotated:
            inner = FieldInfo.from_annotation(options[0])
            if get_origin(inner.annotation) in (Union, UnionType):
                return self._union((NoneType, *get_args(inner.annotation)), (*inner.metadata, *checks))
        found, has_null = self._new(), NoneType in arguments
        self._write("n = data[at]; at += 1")
        if has_null:
            self._write(f"if not n: {found} = None")
        for number, option in enumerate(options, has_null):
            read = self._text_of_choice if len(options) > 1 and option is str else self._value
            header = f"{'elif' if number else 'if'} n == {2 * number}:"
            self._inside(header, partial(self._assign, found, read, option))
        self._write("else: refuse()")
        for check in checks:
            if not has_null or isinstance(check, AfterValidator):
                self._check(found, check)
            else:
                self._inside(f"if {found} is not None:", partial(self._check, found, check))
        return found

    def _tagged(self, union: AvroType) -> str:
        """Read one of several models, of which the fields of all are written."""
        if not isinstance(union, TaggedUnion):
            raise _UnknownTypeError
        word, tag = self._plain(str), union.discriminator
        values = {name: self._field_of_some(union, name) for name in union_fields_of(union) if name != tag}
        return self._set(f"{self._new(tagged_maker(union))}({word}, {{{_pairs(values)}}})")

    def _field_of_some(self, union: TaggedUnion, name: str) -> str:
        """Read a field that some models of a union have, or null."""
        found = [_option_of(model.model_fields[name]) for model in union.members if name in model.model_fields]
        if not found or any(each != found[0] for each in found):
            raise _UnknownTypeError
        option, checks = found[0]
        if any(isinstance(check, AfterValidator) for check in checks):  # it would be called for null, too
            raise _UnknownTypeError
        return self._union((NoneType, option), checks)

    def _assign(self, found: str, read: Callable[[Any], str], option: Any) -> None:
        self._write(f"{found} = {read(option)}")

    def _text_of_choice(self, _: Any) -> str:
        self._size()
        self._write(f"if n >= {_SHORTEST_UUID}: refuse()")
        return self._text()

    def _plain(self, of: Any) -> str:
        if of in (StringMap, CountMap):
            value = str if of is StringMap else Count
            return self._items("{}", lambda items: f"{items}[{self._plain(str)}] = {self._value(value)}", of)
        origin, arguments = get_origin(of), get_args(of)
        if origin is tuple and arguments[0] is ColumnLineage:
            return self._set(f"{self._new(edges_of)}({self._fields(ColumnEdges)})")
        if origin is tuple:
            if not isinstance(avro_type_of(FieldInfo.from_annotation(of)), AvroArray):
                raise _UnknownTypeError
            add = lambda items: f"{items}.append({self._value(arguments[0])})"  # noqa: E731
            read = partial(self._items, "[]", add, "tuple")
            return self._span(read, self._skip_some) if arguments[0] in _REPEATED else read()
        if origin is Literal:
            found = self._plain(type(arguments[0]))
            self._write(f"if {found} != {arguments[0]!r}: refuse()")
            return found
        if isinstance(of, type) and issubclass(of, Model):
            return self._repeated(of) if of in _REPEATED else self._fields(of)
        return self._leaf(of)

    def _items(self, empty: str, add: Callable[[str], str], made_by: Any) -> str:
        items = self._set(empty)
        self._size()
        left = self._set("n")

        def block() -> None:
            self._inside(f"for _ in range({left}):", lambda: self._write(add(items)))
            self._size()
            self._write(f"{left} = n")

        self._inside(f"while {left}:", block)
        return self._set(f"{made_by if isinstance(made_by, str) else self._new(made_by)}({items})")

    def _leaf(self, of: Any) -> str:
        if of is str:
            self._size()
            return self._text()
        if isinstance(of, type) and issubclass(of, EventEnum):
            self._choice(len(of))
            return self._set(f"{self._new(tuple(of))}[n]")
        return self._fixed(of) if of in (UUID, bytes) else self._number(of)

    def _fixed(self, of: Any) -> str:
        found = self._set("data[at:at + 16]" if of is bytes else "uuids[data[at:at + 16]]")
        self._write("at += 16")
        return found

    def _number(self, of: Any) -> str:
        if of not in (bool, int, datetime):
            raise _UnknownTypeError
        self._write("n = data[at]; at += 1")
        if of is bool:
            self._write("if n > 1: refuse()")
            return self._set("n == 1")
        self._inside("if n > 127:", self._more_bytes)
        number = "~(n >> 1) if n & 1 else n >> 1"
        return self._set(number if of is int else f"epoch + delta(0, 0, {number})")

    def _more_bytes(self) -> None:
        self._write(
            "byte = data[at]; at += 1",
            "if byte < 128: n += (byte << 7) - 128",
            "else: n, at = long(data, at, n + (byte << 7) - 0x4080)",
        )

    def _choice(self, count: int) -> None:
        self._write("n = data[at]; at += 1", f"if n & 1 or n >= {2 * min(count, 64)}: refuse()", "n >>= 1")

    def _size(self) -> None:
        self._write("n = data[at]; at += 1", f"if n & {_NOT_SHORT}: n, at = size(data, at, n)", "else: n >>= 1")

    def _text(self) -> str:
        found = self._set("data[at:at + n].decode()")
        self._write("at += n")
        return found

    def _check(self, found: str, check: Any) -> None:
        if isinstance(check, (Ge, Le)):
            name, limit = ("<", check.ge) if isinstance(check, Ge) else (">", check.le)
            self._write("pass" if limit in _EVERY_LONG else f"if {found} {name} {limit}: refuse()")
        elif isinstance(check, (MinLen, MaxLen)):
            name, limit = ("<", check.min_length) if isinstance(check, MinLen) else (">", check.max_length)
            self._write(f"if len({found}) {name} {limit}: refuse()")
        elif isinstance(check, AfterValidator):
            self._write(f"{found} = {self._new(check.func)}({found})")
        elif not _is_check(check) or getattr(check, "union_mode", None) == "left_to_right":
            self._write("pass")
        else:
            raise _UnknownTypeError


def _pairs(found: dict[str, str]) -> str:
    return "".join(f"{name!r}: {value}, " for name, value in found.items())


def _option_of(field: FieldInfo) -> tuple[Any, tuple[Any, ...]]:
    """Return the type of a field that isn't null, and its checks."""
    options = [each for each in get_args(field.annotation) if each is not NoneType]
    if get_origin(field.annotation) not in (Union, UnionType) or len(options) > 1:
        return field.annotation, tuple(filter(_is_check, field.metadata))
    inner = FieldInfo.from_annotation(options[0])
    return inner.annotation, tuple(filter(_is_check, (*inner.metadata, *field.metadata)))


def _is_check(mark: Any) -> bool:
    return type(mark).__module__ != marks.__name__
