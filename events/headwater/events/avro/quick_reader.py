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
from headwater.events.avro.types import AvroArray, avro_type_of, fields_of, name_field_of
from headwater.events.base import Model, StringMap
from headwater.events.column_lineage import ColumnEdges, ColumnLineage, unpack_edges
from headwater.events.envelope import Event
from headwater.events.names import CatalogId, DatasetId, JobName, TableName
from headwater.events.scalars import EPOCH, EventEnum, Format
from headwater.events.tables import Column

QuickRead: TypeAlias = "Callable[[bytes, int], Any]"
_REPEATED: Final = (CatalogId, Column, DatasetId, JobName, TableName)
"""Models of which the same ones come again and again: they are looked up by their bytes."""
_REPEATED_ENDS: Final = {"JobLineage": "fingerprint"}
"""Kinds of which all from this field on comes again and again, in each run of a job."""
_NOT_SHORT: Final = 0x81
"""The bits of a byte that a length up to 63 doesn't have."""
_LONGEST: Final = 63
"""Bits before the last byte of a varint of 64 bits."""
_SHORTEST_UUID: Final = 32
"""A text of this length may be a UUID, and then it is one."""
_EVERY_LONG: Final = (-(2**63), 2**63 - 1)


class NotPlainError(ValueError):
    """These bytes are for the codec."""


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
        self._names: dict[str, Any] = {"long": _long, "size": _size, "refuse": _refuse, "epoch": EPOCH}
        self._names.update(delta=timedelta, uuids=KnownUuids())

    def compile(self, kind: type[Event]) -> QuickRead:
        found = self._fields(kind, _REPEATED_ENDS.get(kind.__name__))
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

    def _fields(self, model: type[Model], repeated_from: str | None = None) -> str:
        """Write what reads a model. Its fields from `repeated_from` on are probably known by their bytes."""
        names = list(fields_of(model))
        first = names.index(repeated_from) if repeated_from else len(names)
        found = {"kind": repr(model.__name__)} if issubclass(model, Event) else {}  # it isn't written
        for name in names[:first]:
            self._field(model, name, found)
        content = _pairs(found)
        if rest := names[first:]:
            content += f", **{self._span(lambda: self._read_fields(model, rest))}"
        return self._set(f"{self._new(_maker_of(model))}({{{content}}})")

    def _read_fields(self, model: type[Model], names: Sequence[str]) -> str:
        found: dict[str, str] = {}
        for name in names:
            self._field(model, name, found)
        return self._set(f"{{{_pairs(found)}}}")

    def _field(self, model: type[Model], name: str, found: dict[str, str]) -> None:
        field = model.model_fields.get(name)
        if field is not None:
            found[name] = self._value(field.annotation, tuple(field.metadata), field)
            return
        of = next(each for each in found if name_field_of(each) == name)
        word = self._value(Union[str, None])  # noqa: UP007 - a value, not a type
        self._write(f"if {word} is not None: {found[of]} = {self._new(Format)}({word})")

    def _span(self, read: Callable[[], str]) -> str:
        """Read what is probably known by its bytes."""
        known, began = self._new(KnownSpans()), self._set("at")
        found = self._set(f"{known}.find(data, at)")

        def read_and_add() -> None:
            value = read()
            self._write(f"{known}.add(data, {began}, at, {value})", f"{found} = {value}")

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

    def _skip_fields(self, model: type[Model]) -> None:
        for field in model.model_fields.values():
            self._skip(field.annotation)

    def _skip(self, of: Any) -> None:
        arguments = get_args(of)
        if get_origin(of) is Annotated:
            self._skip(arguments[0])
        elif get_origin(of) in (Union, UnionType):
            (option,) = (each for each in arguments if each is not NoneType)
            self._choice(2)
            self._inside("if n:", lambda: self._skip(option))
        elif of is str:
            self._size()
            self._write("at += n")
        elif of in (bool, int):
            self._write("while data[at] > 127: at += 1", "at += 1")
        elif isinstance(of, type) and issubclass(of, Model):
            self._skip_fields(of)
        else:
            raise _UnknownTypeError

    def _value(self, of: Any, checks: tuple[Any, ...] = (), field: FieldInfo | None = None) -> str:
        """Write what reads a value and checks it. Return the variable that has it."""
        if field is not None and field.discriminator:
            raise _UnknownTypeError
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
        self._choice(len(options) + has_null)
        if has_null:
            self._write(f"if not n: {found} = None")
        for number, option in enumerate(options, has_null):
            read = self._text_of_choice if len(options) > 1 and option is str else self._value
            header = f"{'elif' if number else 'if'} n == {number}:"
            self._inside(header, partial(self._assign, found, read, option))
        for check in checks:
            if not has_null or isinstance(check, AfterValidator):
                self._check(found, check)
            else:
                self._inside(f"if {found} is not None:", partial(self._check, found, check))
        return found

    def _assign(self, found: str, read: Callable[[Any], str], option: Any) -> None:
        self._write(f"{found} = {read(option)}")

    def _text_of_choice(self, _: Any) -> str:
        self._size()
        self._write(f"if n >= {_SHORTEST_UUID}: refuse()")
        return self._text()

    def _plain(self, of: Any) -> str:
        origin, arguments = get_origin(of), get_args(of)
        if origin is tuple and arguments[0] is ColumnLineage:
            return self._set(f"{self._new(_edges_of)}({self._fields(ColumnEdges)})")
        if origin is tuple:
            if not isinstance(avro_type_of(FieldInfo.from_annotation(of)), AvroArray):
                raise _UnknownTypeError
            add = lambda items: f"{items}.append({self._value(arguments[0])})"  # noqa: E731
            read = partial(self._items, "[]", add, "tuple")
            return self._span(read) if arguments[0] in _REPEATED else read()
        if of is StringMap:
            return self._items("{}", lambda items: f"{items}[{self._plain(str)}] = {self._plain(str)}", of)
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
        self._write("if n > 127: n, at = long(data, at, n)")
        return self._set("(n >> 1) ^ -(n & 1)" if of is int else "epoch + delta(0, 0, (n >> 1) ^ -(n & 1))")

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
        elif type(check).__module__ == marks.__name__ or getattr(check, "union_mode", None) == "left_to_right":
            self._write("pass")
        else:
            raise _UnknownTypeError


def _pairs(found: dict[str, str]) -> str:
    return ", ".join(f"{name!r}: {value}" for name, value in found.items())


def _maker_of(model: type[Model]) -> Callable[[dict[str, Any]], Any]:
    """Return a function that makes a model of all its fields, which are right already."""
    new, put, written = model.__new__, object.__setattr__, set(fields_of(model)) & set(model.model_fields)

    def make(content: dict[str, Any]) -> Any:
        made = new(model)
        put(made, "__dict__", content)
        put(made, "__pydantic_fields_set__", written)
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    return make


def _edges_of(packed: ColumnEdges) -> tuple[ColumnLineage, ...]:
    content = {**packed.__dict__, "groups": [group.__dict__ for group in packed.groups]}
    return tuple(map(_maker_of(ColumnLineage), unpack_edges(content)))


def _long(data: bytes, at: int, byte: int) -> tuple[int, int]:
    """Return the bits of a number that goes on behind this byte, and where the next value begins."""
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte <= 0x7F:
            break
        shift += 7
    if shift >= _LONGEST and (shift > _LONGEST or byte > 1):
        raise NotPlainError
    return number, at


def _size(data: bytes, at: int, byte: int) -> tuple[int, int]:
    number, at = _long(data, at, byte) if byte > 0x7F else (byte, at)
    if number & 1:
        raise NotPlainError
    return number >> 1, at


def _refuse() -> None:
    raise NotPlainError
