"""Reads events of today's schemas straight into their models, by one function for each kind, which is compiled from the
models' fields.

fastavro makes a dict of everything and pydantic looks at each value again: that takes three times as long. The compiled
function has the checks of the fields in it. What isn't plain in any way (a number out of its range, a text that is no
UTF-8, a list of several blocks) it leaves to the codec, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from uuid import UUID

from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from headwater.events.avro.known_values import KnownModels, KnownSpans
from headwater.events.avro.plain_values import (
    edges_of,
    maker_of,
    tagged_maker,
)
from headwater.events.avro.reader_source import ReaderSource, UnknownTypeError, is_check
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
from headwater.events.scalars import Count, EventEnum, Format
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
_SHORTEST_UUID: Final = 32
"""A text of this length may be a UUID, and then it is one."""


@cache
def quick_reader(kind: type[Event]) -> QuickRead | None:
    """Return a function that makes an event of the bytes from an offset on; None if the kind has a type that it can't
    read. The function raises some error for bytes that aren't plain."""
    try:
        return _Compiler().compile(kind)
    except UnknownTypeError:
        return None


class _Compiler(ReaderSource):
    """Writes one function from the fields of a kind."""

    def compile(self, kind: type[Event]) -> QuickRead:
        found = self._fields(kind)
        self.write("if at != len(data): refuse()", f"return {found}")
        exec("\n".join(["def read(data, at):", *self.lines]), self.names)  # noqa: S102 - only our models are in it
        read: QuickRead = self.names["read"]
        return read

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
        return self.let(f"{self.new(maker_of(model))}({{{content}}})")

    def _span_of_fields(self, model: type[Model], names: Sequence[str]) -> str:
        """Read fields into a dict that is probably known by their bytes, and is looked up by those of the first one."""

        def read() -> str:
            found: dict[str, str] = {}
            for name in names:
                self._field(model, name, found)
            return self.let(f"{{{_pairs(found)}}}")

        share = 1 if issubclass(model, Event) else 4
        return self._span(read, lambda: self.skip(model.model_fields[names[0]].annotation), share)

    def _field(self, model: type[Model], name: str, found: dict[str, str], span: str | None = None) -> None:
        field = model.model_fields.get(name)
        if field is not None:
            found[name] = self._value(field.annotation, tuple(field.metadata), field)
            return
        of = next(each for each in model.model_fields if name_field_of(each) == name)
        word = self._value(Union[str, None])  # noqa: UP007 - a value, not a type
        value = f"{self.new(Format)}({word})"
        changed = f"{found[of]} = {value}" if of in found else f"{span} = {{**{span}, {of!r}: {value}}}"
        self.write(f"if {word} is not None: {changed}")

    def _span(self, read: Callable[[], str], skip_start: Callable[[], None], share: int = 4) -> str:
        """Read what is probably known by its bytes."""
        known, began = self.new(KnownSpans(share)), self.let("at")
        skip_start()
        start, behind = self.let(f"data[{began}:at]"), self.let("at")
        found = self.let(f"{known}.find({start}, data, at)")

        def read_and_add() -> None:
            self.write(f"at = {began}")
            value = read()
            self.write(f"if at >= {behind}: {known}.add({start}, data[{behind}:at], {value})", f"{found} = {value}")

        self.inside(f"if {found} is None:", read_and_add)
        self.write(f"else: at += len({found}[0]); {found} = {found}[1]")
        return found

    def _repeated(self, model: type[Model]) -> str:
        """Read a model that is probably known by its bytes."""
        known, began = self.new(KnownModels()), self.let("at")
        self.skip_fields(model)
        key = self.let(f"data[{began}:at]")
        found = self.let(f"{known}.get({key})")

        def read() -> None:
            self.write(f"at = {began}")
            self.write(f"{found} = {self._fields(model)}", f"{known}.add({key}, {found})")

        self.inside(f"if {found} is None:", read)
        return found

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
            self.check(found, check)
        return found

    def _union(self, arguments: tuple[Any, ...], checks: tuple[Any, ...]) -> str:
        """Read null or a value, or one of several."""
        options = [each for each in arguments if each is not NoneType]
        if len(options) == 1 and get_origin(options[0]) is Annotated:
            inner = FieldInfo.from_annotation(options[0])
            if get_origin(inner.annotation) in (Union, UnionType):
                return self._union((NoneType, *get_args(inner.annotation)), (*inner.metadata, *checks))
        found, has_null = self.new(), NoneType in arguments
        self.write("n = data[at]; at += 1")
        if has_null:
            self.write(f"if not n: {found} = None")
        for number, option in enumerate(options, has_null):
            read = self._text_of_choice if len(options) > 1 and option is str else self._value
            header = f"{'elif' if number else 'if'} n == {2 * number}:"
            self.inside(header, partial(self._assign, found, read, option))
        self.write("else: refuse()")
        for check in checks:
            if not has_null or isinstance(check, AfterValidator):
                self.check(found, check)
            else:
                self.inside(f"if {found} is not None:", partial(self.check, found, check))
        return found

    def _tagged(self, union: AvroType) -> str:
        """Read one of several models, of which the fields of all are written."""
        if not isinstance(union, TaggedUnion):
            raise UnknownTypeError
        word, tag = self._plain(str), union.discriminator
        values = {name: self._field_of_some(union, name) for name in union_fields_of(union) if name != tag}
        return self.let(f"{self.new(tagged_maker(union))}({word}, {{{_pairs(values)}}})")

    def _field_of_some(self, union: TaggedUnion, name: str) -> str:
        """Read a field that some models of a union have, or null."""
        found = [_option_of(model.model_fields[name]) for model in union.members if name in model.model_fields]
        if not found or any(each != found[0] for each in found):
            raise UnknownTypeError
        option, checks = found[0]
        if any(isinstance(check, AfterValidator) for check in checks):  # it would be called for null, too
            raise UnknownTypeError
        return self._union((NoneType, option), checks)

    def _assign(self, found: str, read: Callable[[Any], str], option: Any) -> None:
        self.write(f"{found} = {read(option)}")

    def _text_of_choice(self, _: Any) -> str:
        self.size()
        self.write(f"if n >= {_SHORTEST_UUID}: refuse()")
        return self.text()

    def _plain(self, of: Any) -> str:
        if of in (StringMap, CountMap):
            value = str if of is StringMap else Count
            return self._items("{}", lambda items: f"{items}[{self._plain(str)}] = {self._value(value)}", of)
        origin, arguments = get_origin(of), get_args(of)
        if origin is tuple and arguments[0] is ColumnLineage:
            return self.let(f"{self.new(edges_of)}({self._fields(ColumnEdges)})")
        if origin is tuple:
            if not isinstance(avro_type_of(FieldInfo.from_annotation(of)), AvroArray):
                raise UnknownTypeError
            add = lambda items: f"{items}.append({self._value(arguments[0])})"  # noqa: E731
            read = partial(self._items, "[]", add, "tuple")
            return self._span(read, self.skip_some) if arguments[0] in _REPEATED else read()
        if origin is Literal:
            found = self._plain(type(arguments[0]))
            self.write(f"if {found} != {arguments[0]!r}: refuse()")
            return found
        if isinstance(of, type) and issubclass(of, Model):
            return self._repeated(of) if of in _REPEATED else self._fields(of)
        return self._leaf(of)

    def _items(self, empty: str, add: Callable[[str], str], made_by: Any) -> str:
        items = self.let(empty)
        self.size()
        left = self.let("n")

        def block() -> None:
            self.inside(f"for _ in range({left}):", lambda: self.write(add(items)))
            self.size()
            self.write(f"{left} = n")

        self.inside(f"while {left}:", block)
        return self.let(f"{made_by if isinstance(made_by, str) else self.new(made_by)}({items})")

    def _leaf(self, of: Any) -> str:
        if of is str:
            self.size()
            return self.text()
        if isinstance(of, type) and issubclass(of, EventEnum):
            self.choice(len(of))
            return self.let(f"{self.new(tuple(of))}[n]")
        return self.fixed(of) if of in (UUID, bytes) else self.number(of)


def _pairs(found: dict[str, str]) -> str:
    return "".join(f"{name!r}: {value}, " for name, value in found.items())


def _option_of(field: FieldInfo) -> tuple[Any, tuple[Any, ...]]:
    """Return the type of a field that isn't null, and its checks."""
    options = [each for each in get_args(field.annotation) if each is not NoneType]
    if get_origin(field.annotation) not in (Union, UnionType) or len(options) > 1:
        return field.annotation, tuple(filter(is_check, field.metadata))
    inner = FieldInfo.from_annotation(options[0])
    return inner.annotation, tuple(filter(is_check, (*inner.metadata, *field.metadata)))
