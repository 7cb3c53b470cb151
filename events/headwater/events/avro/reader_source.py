"""Writes the source of a function that reads Avro bytes: lines, names, plain types, their checks, and what is skipped.

In the function `data` are the bytes, `at` is where the next value begins, and `n` is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator

from headwater.events import marks
from headwater.events.avro.known_values import KnownUuids
from headwater.events.avro.plain_values import read_long, read_size, refuse
from headwater.events.base import Model
from headwater.events.scalars import EPOCH

_NOT_SHORT: Final = 0x81
"""The bits of a byte that a length up to 63 doesn't have."""
_EVERY_LONG: Final = (-(2**63), 2**63 - 1)


class UnknownTypeError(TypeError):
    """Fields of this type can't be read quickly."""


class ReaderSource:
    """The source of one function, as far as it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._count = 0
        self.names: dict[str, Any] = {"long": read_long, "size": read_size, "refuse": refuse, "epoch": EPOCH}
        self.names.update(delta=timedelta, uuids=KnownUuids())

    def write(self, *lines: str) -> None:
        self.lines += ["    " * self._depth + line for line in lines]

    def new(self, value: Any = None) -> str:
        """Return a new name, of this value or of a variable."""
        self._count += 1
        name = f"v{self._count}"
        if value is not None:
            self.names[name] = value
        return name

    def let(self, expression: str) -> str:
        found = self.new()
        self.write(f"{found} = {expression}")
        return found

    def inside(self, header: str, write: Callable[[], Any]) -> Any:
        """Write what stands in a block."""
        self.write(header)
        self._depth += 1
        found = write()
        self._depth -= 1
        return found

    def skip_some(self) -> None:
        """Skip as much of a list as tells it from most others."""
        self.write("at = min(at + 48, len(data))")

    def skip_fields(self, model: type[Model]) -> None:
        for field in model.model_fields.values():
            self.skip(field.annotation)

    def skip(self, of: Any) -> None:
        arguments = get_args(of)
        if get_origin(of) is Annotated:
            self.skip(arguments[0])
        elif get_origin(of) in (Union, UnionType):
            (option,) = (each for each in arguments if each is not NoneType)
            self.write("n = data[at]; at += 1")
            self.inside("if n == 2:", lambda: self.skip(option))
            self.write("elif n: refuse()")
        elif of is str:
            self.size()
            self.write("at += n")
        elif of is bytes:
            self.write("at += 16")
        elif of in (bool, int):
            self.write("while data[at] > 127: at += 1", "at += 1")
        elif isinstance(of, type) and issubclass(of, Model):
            self.skip_fields(of)
        else:
            raise UnknownTypeError

    def fixed(self, of: Any) -> str:
        found = self.let("data[at:at + 16]" if of is bytes else "uuids[data[at:at + 16]]")
        self.write("at += 16")
        return found

    def number(self, of: Any) -> str:
        if of not in (bool, int, datetime):
            raise UnknownTypeError
        self.write("n = data[at]; at += 1")
        if of is bool:
            self.write("if n > 1: refuse()")
            return self.let("n == 1")
        self.inside("if n > 127:", self.more_bytes)
        number = "~(n >> 1) if n & 1 else n >> 1"
        return self.let(number if of is int else f"epoch + delta(0, 0, {number})")

    def more_bytes(self) -> None:
        self.write(
            "byte = data[at]; at += 1",
            "if byte < 128: n += (byte << 7) - 128",
            "else: n, at = long(data, at, n + (byte << 7) - 0x4080)",
        )

    def choice(self, count: int) -> None:
        self.write("n = data[at]; at += 1", f"if n & 1 or n >= {2 * min(count, 64)}: refuse()", "n >>= 1")

    def size(self) -> None:
        self.write("n = data[at]; at += 1", f"if n & {_NOT_SHORT}: n, at = size(data, at, n)", "else: n >>= 1")

    def text(self) -> str:
        found = self.let("data[at:at + n].decode()")
        self.write("at += n")
        return found

    def check(self, found: str, check: Any) -> None:
        if isinstance(check, (Ge, Le)):
            name, limit = ("<", check.ge) if isinstance(check, Ge) else (">", check.le)
            self.write("pass" if limit in _EVERY_LONG else f"if {found} {name} {limit}: refuse()")
        elif isinstance(check, (MinLen, MaxLen)):
            name, limit = ("<", check.min_length) if isinstance(check, MinLen) else (">", check.max_length)
            self.write(f"if len({found}) {name} {limit}: refuse()")
        elif isinstance(check, AfterValidator):
            self.write(f"{found} = {self.new(check.func)}({found})")
        elif not is_check(check) or getattr(check, "union_mode", None) == "left_to_right":
            self.write("pass")
        else:
            raise UnknownTypeError


def is_check(mark: Any) -> bool:
    """Return whether an annotation of a field checks its value."""
    return type(mark).__module__ != marks.__name__
