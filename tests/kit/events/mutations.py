"""Messages of all sorts for a writer: good events, and mutated ones among them, each from an event that is reported
nowhere else. Whether a mutated one is an event all the same is for the codec and the law to say, not for whoever made
it.

Each base has a producer, a time, a barrier and a fingerprint of its own, and none is made another's: two events that
claim to be one, and tell different things, are another matter.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from hashlib import blake2b
from random import Random
from typing import Any, Final
from uuid import UUID

from fastavro import schemaless_writer

from headwater.events import JobLineage
from headwater.events.avro import MAX_EVENT_BYTES, Codec, current_schema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS
from headwater.testing.examples import EXAMPLES
from tests.kit.events.fuzz import mutated
from tests.kit.events.mixture import events
from tests.kit.events.raw_records import kind_of, plain_schema, record_of

Message = bytes | None
"""None is what Kafka calls a tombstone."""
Leaf = tuple[Any, Any]
"""The dictionary or list that a value stands in, and where in it."""
_BASES: Final = 1_000_003
_GOOD: Final = 7
_LARGE: Final = 900_000
_NAMES: Final = ("producer", "fingerprint")
_MARK: Final = "\x01mark\x02"
_CODEC: Final = Codec()
TEXTS: Final = ("", " ", "\0", "a\0b", "'; --", "\u202e😀" * 40, "a" * 3_000, "ä\u0308" * 4_000, ".", "/", '"', "\\N")
SURROGATES: Final = (b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xff\xfe", b"\xc0\x80")
NUMBERS: Final = (0, -1, 1, -(2**63), 2**63 - 1, 2**31, 253_402_300_799_999_999, -62_135_596_800_000_000, 10**17)
"""The last three are the ends of the calendar's years 9999 and 1, in microseconds, and a year that it doesn't have."""


def messages(good: int, mutants: int, seed: int) -> Iterator[Message]:
    """So many of each, mixed."""
    rng = Random(seed)
    bases = events(2 * mutants, seed=_BASES + seed, shapes=0)
    good_events = events(good, seed=_GOOD + seed)
    left_good, left_mutants = good, mutants
    yield from map(_CODEC.encode, EXAMPLES)
    while left_good or left_mutants:
        if rng.randrange(left_good + left_mutants) < left_good:
            left_good -= 1
            yield _CODEC.encode(next(good_events))
        else:
            left_mutants -= 1
            yield _mutant(_base(bases), _base(bases), rng)


def large_events(count: int, seed: int) -> Iterator[Message]:
    """Events with a name of a megabyte; some are larger than events may be."""
    rng, bases = Random(seed), events(count, seed=_BASES + seed)
    return (_huge(_base(bases), b"", rng) for _ in range(count))


def _base(bases: Iterator[Event]) -> bytes:
    event = next(bases)
    event = event.model_copy(update={"producer": UUID(int=event.producer.int << 64 | event.sequence)})
    if isinstance(event, JobLineage):
        own = blake2b(b"base %d" % event.sequence, digest_size=16).digest()
        event = event.model_copy(update={"fingerprint": own})
    return _CODEC.encode(event)


def _mutant(data: bytes, other: bytes, rng: Random) -> Message:
    (way,) = rng.choices(_WAYS, _WEIGHTS)
    return way(data, other, rng)


def _mutated(data: bytes, _: bytes, rng: Random) -> bytes:
    """Bytes flipped, put in, cut out and repeated."""
    return mutated(data, rng)


def _spliced(data: bytes, other: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def _misnamed(data: bytes, _: bytes, rng: Random) -> bytes:
    """Of a schema that nobody has sent, or of another kind."""
    if rng.random() < 0.5:
        return MAGIC + rng.randbytes(8) + data[HEADER_BYTES:]
    return MAGIC + current_schema(rng.choice(list(KINDS.values()))).fingerprint + data[HEADER_BYTES:]


def _absurd(data: bytes, _other: bytes, rng: Random) -> bytes:
    """Avro as it should be, with values that nobody expects."""
    record = _record(data)
    leaves = list(_leaves(record))
    for _ in range(rng.choice((1, 1, 2, 5))):
        where, at = rng.choice(leaves)
        where[at] = rng.randbytes(16) if at in _NAMES else _absurd_value(where[at], rng)
    try:
        written = _written(data, record)
    except ValueError:  # a word that isn't one of an enumeration's
        return mutated(data, rng)
    broken = (rng.choice(SURROGATES) + b"text")[: len(_MARK)]
    return written.replace(_MARK.encode(), broken)


def _absurd_value(value: Any, rng: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(NUMBERS)
    if isinstance(value, str):
        return rng.choice((*TEXTS, _MARK))
    return bytes(len(value)) if rng.random() < 0.5 else b"\xff" * len(value)


def _beyond(data: bytes, _: bytes, rng: Random) -> bytes:
    """A number that no 64 bits hold, somewhere."""
    at = rng.randrange(HEADER_BYTES, len(data))
    return data[:at] + b"\xff" * rng.randrange(9, 14) + b"\x7f" + data[at + 1 :]


def _huge(data: bytes, _: bytes, rng: Random) -> bytes:
    """A name of a megabyte; or more than an event may have."""
    record = _record(data)
    texts = [each for each in _leaves(record) if each[1] == "name"]
    where, at = rng.choice(texts)
    where[at] = rng.choice("aä\0") * (_LARGE // 2)
    written = _written(data, record)
    return written if rng.random() < 0.7 else written + bytes(MAX_EVENT_BYTES + 1 - len(written))


def _empty(_: bytes, __: bytes, rng: Random) -> Message:
    return rng.choice((b"", None))


def _noise(_: bytes, __: bytes, rng: Random) -> bytes:
    return rng.randbytes(rng.randrange(1, 400))


_CHANCES: Final[dict[Callable[[bytes, bytes, Random], Message], float]] = {
    _mutated: 40,
    _spliced: 12,
    _misnamed: 10,
    _absurd: 25,
    _beyond: 5,
    _empty: 4,
    _noise: 4,
    _huge: 0.02,
}
_WAYS: Final = list(_CHANCES)
_WEIGHTS: Final = list(_CHANCES.values())


def _record(data: bytes) -> Any:
    kind = kind_of(data)
    assert kind is not None
    return record_of(data, kind)


def _written(data: bytes, record: Any) -> bytes:
    body = io.BytesIO()
    schemaless_writer(body, plain_schema(str(kind_of(data))), record)
    return data[:HEADER_BYTES] + body.getvalue()


def _leaves(value: Any) -> Iterator[Leaf]:
    """Of a record: what isn't a record or a list itself."""
    for at in value if isinstance(value, dict) else range(len(value)):
        inner = value[at]
        if isinstance(inner, dict | list):
            yield from _leaves(inner)
        elif inner is not None:
            yield value, at
