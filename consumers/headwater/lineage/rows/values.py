"""What stands in a row, and the hash that is a row's key in every database."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = "str | int | bytes | None"
"""Truth is 0 or 1, a moment microseconds since the epoch, a UUID its sixteen bytes."""

HASH_BYTES: Final = 16


class Type(Enum):
    """What a database makes a column of."""

    TEXT = "TEXT"
    """Of any length; compared byte by byte."""
    LONG = "LONG"
    TRUTH = "TRUTH"
    BINARY = "BINARY"
    """Sixteen bytes: a hash, a UUID, a fingerprint."""


class Field(NamedTuple):
    """A column."""

    name: str
    type: Type


def texts(names: str) -> tuple[Field, ...]:
    return _fields(names, Type.TEXT)


def longs(names: str) -> tuple[Field, ...]:
    return _fields(names, Type.LONG)


def truths(names: str) -> tuple[Field, ...]:
    return _fields(names, Type.TRUTH)


def binaries(names: str) -> tuple[Field, ...]:
    return _fields(names, Type.BINARY)


def _fields(names: str, kind: Type) -> tuple[Field, ...]:
    return tuple(Field(name, kind) for name in names.split())


def hash_of(kind: str, key: Iterable[Value]) -> bytes:
    """128 bits of what names a row: of its kind and its key, in which nothing can be shifted from one to the next."""
    return blake2b(encoded((kind, *key)), digest_size=HASH_BYTES).digest()


def encoded(values: Iterable[Value]) -> bytes:
    """Bytes that are the same only for the same values."""
    return b"".join([_encoded(value) for value in values])


def _encoded(value: Value) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i%d;" % value
    if isinstance(value, bytes):
        return b"b%d:%b" % (len(value), value)
    data = value.encode("utf-8", "surrogatepass")
    return b"t%d:%b" % (len(data), data)
