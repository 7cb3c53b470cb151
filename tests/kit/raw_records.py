"""Sends records to a broker by hand-made requests, with bytes that no client lets its callers send.

Clients take only text as the names of headers, and write times of their own.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_POLYNOMIAL: Final = 0x82F63B78
_SECONDS: Final = 60.0
_NO_PRODUCER: Final = struct.pack(">qhi", -1, -1, -1)


class RawRecord(NamedTuple):
    """A record as bytes; `time` is the producer's, in milliseconds since 1970."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    time: int = 0


def send_raw(address: str, topic: str, records: Sequence[RawRecord], partition: int = 0) -> None:
    """Append records to a partition, in one batch. Raises an AssertionError if the broker refuses them."""
    host, _, port = address.partition(":")
    batch = _batch(records)
    parts = struct.pack(">ii", 1, partition) + struct.pack(">i", len(batch)) + batch
    body = struct.pack(">hhi", -1, -1, 20_000) + struct.pack(">i", 1) + _text(topic) + parts
    request = struct.pack(">hhi", 0, 3, 1) + _text("raw") + body
    with socket.create_connection((host, int(port)), timeout=_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = _receive(connection, struct.unpack(">i", _receive(connection, 4))[0])
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic.encode()) + 4 + 4)
    assert error == 0, f"the broker's error {error}"


def _batch(records: Sequence[RawRecord]) -> bytes:
    first = records[0].time
    body = b"".join(_with_length(_record(at, each, first)) for at, each in enumerate(records))
    last = max(each.time for each in records)
    counted = struct.pack(">hiqq", 0, len(records) - 1, first, last) + _NO_PRODUCER + struct.pack(">i", len(records))
    checked = counted + body
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def _record(at: int, record: RawRecord, first: int) -> bytes:
    headers = b"".join(_with_length(name) + _nullable(value) for name, value in record.headers)
    fixed = b"\0" + _varint(record.time - first) + _varint(at)
    return fixed + _nullable(record.key) + _nullable(record.value) + _varint(len(record.headers)) + headers


def _nullable(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _with_length(data)


def _with_length(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    rest, found = (number << 1) ^ (number >> 63), bytearray()
    rest &= (1 << 64) - 1
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _receive(connection: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        some = connection.recv(length - len(found))
        assert some, "the broker hung up"
        found += some
    return found


def _table() -> Iterator[int]:
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        yield value


_TABLE: Final = tuple(_table())


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF
