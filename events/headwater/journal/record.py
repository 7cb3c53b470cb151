"""A record and its bytes.

A frame is `mark crc length ~length offset time key-length headers-length | key headers value`, little-endian. The CRC
covers everything after itself and is seeded with the segment and the frame's own position in it, so that bytes which
look like a frame elsewhere (a journal copied into a value, a recycled block) never pass for one. The length stands
twice, once complemented: a frame that runs past the end of its file was torn if both agree, and is corrupt if not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from headwater.journal.errors import RecordTooLargeError

MARK = b"\xf5\xc1HW"  # bytes 0xF5 and 0xC1 occur in no UTF-8 text
MARK_START = MARK[:3]
WORD = 0xFFFFFFFF
LARGEST_BODY = 64 * 1024 * 1024
NO_KEY = 0xFFFF
LARGEST_FIELD = 0xFFFE

_PREFIX = Struct("<4sI")
_BODY = Struct("<IIQqHH")
_HEAD = Struct("<4sIIIQqHH")
_HEADER = Struct("<HI")
_HEADER_SIZE = _HEADER.size
_ENCODED: dict[str, bytes] = {}
_DECODED: dict[bytes, str] = {}
"""The same few names stand in every record."""
_MOST_NAMES = 1000
_RECENT: dict[bytes, tuple[bytes, tuple[tuple[str, bytes], ...]]] = {}
"""By how they begin, which tells kinds of records apart: packed headers without the last, and what they are."""
_NOTHING: tuple[bytes, tuple[tuple[str, bytes], ...]] = (b"", ())
_BEGIN = 32
_MOST_RECENT = 256
_LONGEST_NAME = 100
_LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""
HEAD_SIZE = _HEAD.size
_CRC_END = _PREFIX.size

RecordHeaders = Sequence[tuple[str, bytes]]


class JournalRecord(NamedTuple):
    """One record as it is read. A named tuple: it is made for every record, and costs a third of a frozen dataclass."""

    offset: int
    time: int
    """When it was appended, in microseconds of its writer's clock; never going back until another writer comes."""
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    value: bytes


class JournalEntry(NamedTuple):
    """What `append_many` takes where a value alone doesn't do."""

    value: bytes
    key: bytes | None = None
    headers: RecordHeaders = ()


class Head(NamedTuple):
    """The fixed part of a frame whose two lengths agree."""

    crc: int
    size: int
    offset: int
    time: int
    key_size: int
    headers_size: int


def ordering_times(records: Sequence[JournalRecord], now: int) -> list[int]:
    """When each of these neighbours was appended at the latest: no later than those behind it, nor than now.

    So a record whose writer's clock was years ahead doesn't hold up what others appended behind it.
    """
    times: list[int] = []
    for record in reversed(records):
        now = min(now, record.time)
        times.append(now)
    return times[::-1]


def encode_plain(value: bytes, offset: int, time: int, seed: int) -> bytes:
    """The frame of a value without key and headers: the way of nearly every record."""
    length = len(value)
    body = _BODY.pack(length, length ^ WORD, offset, time, NO_KEY, 0) + value
    return _PREFIX.pack(MARK, crc32(body, seed & WORD)) + body


def encode(value: bytes, key: bytes | None, headers: RecordHeaders, *, offset: int, time: int, seed: int) -> bytes:
    """The frame of a record; `seed` is the segment's seed plus the frame's position."""
    packed = pack_headers(headers)
    key_size = NO_KEY if key is None else len(key)
    rest = (key or b"") + packed + value
    length = len(rest)
    body = _BODY.pack(length, length ^ WORD, offset, time, key_size, len(packed)) + rest
    return _PREFIX.pack(MARK, crc32(body, seed & WORD)) + body


def encode_batch(entries: Iterable[bytes | JournalEntry], offset: int, time: int, seed: int, room: int) -> list[bytes]:
    """Frames for the first entries that fit into `room` (at least one), as chunks to be joined: two for each record.

    The loop of `encode_plain` written out, because a call per record costs a tenth of what a batch reaches.
    """
    chunks: list[bytes] = []
    add, pack_body, pack_prefix, mark, checksum = chunks.append, _BODY.pack, _PREFIX.pack, MARK, crc32
    stop = seed + room
    for entry in entries:
        if type(entry) is bytes:
            length = len(entry)
            body = pack_body(length, length ^ WORD, offset, time, NO_KEY, 0) + entry
        else:
            value, key, headers = entry if isinstance(entry, JournalEntry) else JournalEntry(bytes(entry))
            body = encode(value, key, headers, offset=offset, time=time, seed=seed)[_CRC_END:]
        end = seed + _CRC_END + len(body)
        if end > stop and chunks:
            break
        add(pack_prefix(mark, checksum(body, seed & WORD)))
        add(body)
        seed = end
        offset += 1
    return chunks


def pack_headers(headers: RecordHeaders) -> bytes:
    parts: list[bytes] = []
    for name, value in headers:
        encoded = _ENCODED.get(name) or _encode_name(name)
        if len(value) > LARGEST_FIELD or len(encoded) > LARGEST_FIELD:
            raise RecordTooLargeError(f"header {name[:40]!r} is over {LARGEST_FIELD} bytes; put it into the value")
        parts += (_HEADER.pack(len(encoded), len(value)), encoded, value)
    packed = b"".join(parts)
    if len(packed) > LARGEST_FIELD:
        raise RecordTooLargeError(f"the headers are {len(packed)} bytes, over {LARGEST_FIELD}; put them into the value")
    return packed


def unpack_headers(packed: bytes) -> tuple[tuple[str, bytes], ...]:
    """In records behind each other all headers but the last are mostly the same, byte for byte, as once before."""
    begin = packed[:_BEGIN]
    common, known = _RECENT.get(begin, _NOTHING)
    at, end = (len(common), len(packed)) if packed.startswith(common) else (0, len(packed))
    found = [*known] if at else []
    last = at
    while at < end:
        last = at
        name_size, value_size = _HEADER.unpack_from(packed, at)
        start = at + _HEADER_SIZE
        middle = start + name_size
        at = middle + value_size
        encoded = packed[start:middle]
        found.append((_DECODED.get(encoded) or _decode_name(encoded), packed[middle:at]))
    headers = tuple(found)
    if last > len(common):
        _remember(begin, packed[:last], headers[:-1])
    return headers


def _remember(begin: bytes, common: bytes, known: tuple[tuple[str, bytes], ...]) -> None:
    if len(_RECENT) >= _MOST_RECENT:
        _RECENT.clear()
    _RECENT[begin] = (common, known)


def _encode_name(name: str) -> bytes:
    encoded = name.encode()
    if len(_ENCODED) < _MOST_NAMES and len(name) < _LONGEST_NAME:
        _ENCODED[name] = encoded
        _DECODED[encoded] = name
    return encoded


def _decode_name(encoded: bytes) -> str:
    name = encoded.decode()
    _encode_name(name)
    return name


def check_sizes(value: bytes, key: bytes | None, headers: RecordHeaders, limit: int) -> None:
    """Refuse what the format or the journal's limit can't take, before anything is written."""
    if key is not None and len(key) > LARGEST_FIELD:
        raise RecordTooLargeError(f"the key is {len(key)} bytes, over {LARGEST_FIELD}")
    beside = sum(_HEADER_SIZE + len(name) + len(each) for name, each in headers)
    if beside > LARGEST_FIELD // _LONGEST_CHARACTER:  # small ones aren't packed twice
        beside = len(pack_headers(headers))
    size = len(value) + len(key or b"") + beside
    if size > limit:
        raise RecordTooLargeError(f"the record is {size} bytes, over max_record_bytes ({limit}): cut it into parts")


def check_batch(entries: Sequence[bytes | JournalEntry], limit: int) -> None:
    """The same for a batch, all of it before anything is written."""
    if {*map(type, entries)} <= {bytes} and max(map(len, entries), default=0) <= limit:
        return
    for entry in entries:
        value, key, headers = entry if isinstance(entry, JournalEntry) else JournalEntry(entry)
        check_sizes(value, key, headers, limit)


def read_head(data: bytes, at: int) -> Head | None:
    """The head at `at`, or None where there is none that makes sense; its CRC isn't looked at."""
    mark, crc, length, complement, offset, time, key_size, headers_size = _HEAD.unpack_from(data, at)
    if mark != MARK or length ^ complement != WORD or length > LARGEST_BODY:
        return None
    return Head(crc, HEAD_SIZE + length, offset, time, key_size, headers_size)


def body_matches(frame: bytes | memoryview, head: Head, seed: int) -> bool:
    return crc32(frame[_CRC_END:], seed & WORD) == head.crc


def decode_body(data: bytes, at: int, head: Head) -> JournalRecord:
    """The record of the frame at `at`, whose CRC was found right."""
    key_start = at + HEAD_SIZE
    if head.key_size == NO_KEY and not head.headers_size:
        return JournalRecord(head.offset, head.time, None, (), data[key_start : at + head.size])
    headers_start = key_start + (0 if head.key_size == NO_KEY else head.key_size)
    value_start = headers_start + head.headers_size
    key = None if head.key_size == NO_KEY else data[key_start:headers_start]
    headers = unpack_headers(data[headers_start:value_start])
    return JournalRecord(head.offset, head.time, key, headers, data[value_start : at + head.size])
