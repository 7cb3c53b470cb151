"""Many records in one frame, compressed together: what closed segments are rewritten to.

The frame's head is that of a record with another mark; in the place of the key's size stands how many records there
are, in that of the headers' size how they are packed. Offsets are dense, so the first one is enough.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct

from headwater.journal.errors import FormatError
from headwater.journal.record import (
    BLOCK_MARK,
    LARGEST_BODY,
    NO_KEY,
    Head,
    Record,
    pack_frame,
    pack_headers,
    unpack_headers,
)

BLOCK_BYTES = 128 * 1024
"""Records are packed together until they are so many bytes. Twice as much would take a fifth less room, and whoever
wants one record would have to unpack twice as much."""
MOST_RECORDS = 0xFFFF
_ZLIB = 1
_LEVEL = 6
_INNER = Struct("<IqHH")
INNER_SIZE = _INNER.size


def pack_block(records: Sequence[Record], seed: int) -> bytes | None:
    """The frame for records with successive offsets; None where they are more than a reader would take."""
    data = b"".join([_inner(record) for record in records])
    body = zlib.compress(data, _LEVEL)
    if len(body) > LARGEST_BODY or len(data) > LARGEST_BODY + BLOCK_BYTES:
        return None
    newest = records[-1].time
    return pack_frame(BLOCK_MARK, body, offset=records[0].offset, time=newest, sizes=(len(records), _ZLIB), seed=seed)


def unpack_block(body: bytes | memoryview, head: Head) -> list[Record] | None:
    """The records of a block whose checksum was found right; None where its contents are no such thing all the same."""
    if head.headers_size != _ZLIB:
        raise FormatError(
            f"records {head.offset} to {head.following - 1} are packed in way {head.headers_size}, this version knows "
            f"{_ZLIB}: use the version that wrote them"
        )
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(body, LARGEST_BODY + 2 * BLOCK_BYTES)
    except zlib.error:
        return None
    records = _records(data, head) if unpacker.eof else []
    return records if len(records) == head.held else None


def _inner(record: Record) -> bytes:
    headers = pack_headers(record.headers)
    key_size = NO_KEY if record.key is None else len(record.key)
    length = len(record.key or b"") + len(headers) + len(record.value)
    return _INNER.pack(length, record.time, key_size, len(headers)) + (record.key or b"") + headers + record.value


def _records(data: bytes, head: Head) -> list[Record]:
    found: list[Record] = []
    at, offset, end = 0, head.offset, len(data)
    while at + INNER_SIZE <= end:
        length, time, key_size, headers_size = _INNER.unpack_from(data, at)
        key_start = at + INNER_SIZE
        at = key_start + length
        headers_start = key_start + (0 if key_size == NO_KEY else key_size)
        value_start = headers_start + headers_size
        key = None if key_size == NO_KEY else data[key_start:headers_start]
        headers = unpack_headers(data[headers_start:value_start]) if headers_size else ()
        found.append(Record(offset, time, key, headers, data[value_start:at]))
        offset += 1
    return found if at == end else []
