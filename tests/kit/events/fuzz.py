"""Mutated events: each must give an event or one typed error, in bounded time and memory."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from types import FrameType
from typing import Any

from fastavro import schemaless_reader

from headwater.events.avro import (
    Codec,
    DecodeError,
    UnknownEvent,
    current_schema,
)
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.envelope import Event
from headwater.testing.examples import EXAMPLES

STATUS = Path("/proc/self/status")
PEAK = Path("/proc/self/clear_refs")
TRACE = bool(os.environ.get("FUZZ_TRACE"))
PROCESSES = 2
SLOW_SECONDS = 2.0
"""Of the processor, for one input: the largest take some hundredths."""


HANG_SECONDS = 10
MOST_MEMORY = 128 << 20
"""That one input may add to the most that the process ever had."""


ADDRESS_SPACE = 6 << 30
"""A bomb shall burst here, not on the machine."""


LARGE = 300_000
MOST_VALUES = 5_000
INTERESTING = (
    b"\0",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 9 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",
)


EMPTY = {"type": "record", "fields": []}
Mutation = Callable[[bytes, random.Random], bytes]
Json = Any
SchemaMutation = Callable[[dict[str, Json], random.Random], None]


def flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def put(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.choice(INTERESTING) + data[at + rng.randrange(3) :]


def cut(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:low] + data[high:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:high] + data[low:high] * rng.randrange(1, 4) + data[high:]


def noise(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 12)) + data[at:]


MUTATIONS: tuple[Mutation, ...] = (flip, flip, put, put, cut, repeat, noise)


def mutated(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        data = rng.choice(MUTATIONS)(data, rng) or b"\0"
    return data


def records_in(schema: Json) -> list[dict[str, Json]]:
    """Every record that a schema declares, the outermost first."""
    if isinstance(schema, list):
        return [record for part in schema for record in records_in(part)]
    if not isinstance(schema, dict):
        return []
    fields = schema.get("fields", [])
    inner = [field["type"] for field in fields] + [schema[key] for key in ("items", "values") if key in schema]
    return [*([schema] if fields else []), *records_in(inner)]


def any_field(schema: dict[str, Json], rng: random.Random) -> dict[str, Json]:
    field: dict[str, Json] = rng.choice(rng.choice(records_in(schema))["fields"])
    return field


def new_name(rng: random.Random) -> str:
    return f"n{rng.randrange(10**9)}"


def new_type(rng: random.Random) -> Json:
    """A small type of any sort."""
    plain = rng.choice(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
    return rng.choice(
        (
            plain,
            {"type": "fixed", "name": new_name(rng), "size": rng.choice((0, 1, 16, 4_096, -1))},
            {"type": "enum", "name": new_name(rng), "symbols": ["A", "B"]},
            {"type": "record", "name": new_name(rng), "fields": [{"name": "f", "type": plain}]},
            {**EMPTY, "name": new_name(rng)},
            {"type": "array", "items": rng.choice(("null", plain, {**EMPTY, "name": new_name(rng)}))},
            [plain, {"type": "array", "items": plain}],
        )
    )


def add(schema: dict[str, Json], rng: random.Random) -> None:
    fields = rng.choice(records_in(schema))["fields"]
    fields.insert(rng.randrange(len(fields) + 1), {"name": new_name(rng), "type": new_type(rng)})


def drop(schema: dict[str, Json], rng: random.Random) -> None:
    fields = rng.choice(records_in(schema))["fields"]
    if len(fields) > 1:
        fields.pop(rng.randrange(len(fields)))


def retype(schema: dict[str, Json], rng: random.Random) -> None:
    any_field(schema, rng)["type"] = new_type(rng)


def wrap(schema: dict[str, Json], rng: random.Random) -> None:
    """A type in a type in a type …"""
    field = any_field(schema, rng)
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        inner, field["type"] = field["type"], None
        boxed = {"type": "record", "name": new_name(rng), "fields": [{"name": "f", "type": inner}]}
        field["type"] = rng.choice(({"type": "array", "items": inner}, {"type": "map", "values": inner}, boxed))


def thin(schema: dict[str, Json], rng: random.Random) -> None:
    """A record of ours of which hardly anything is written, and the rest filled in."""
    record = rng.choice(records_in(schema))
    if record is not schema:
        record["fields"] = record["fields"][:1]


def reversion(schema: dict[str, Json], rng: random.Random) -> None:
    schema["version"] = rng.choice((0, 1, 2, 2**31, -1, -(10**12), -(10**12), "1", None))


SCHEMA_MUTATIONS: tuple[SchemaMutation, ...] = (
    add,
    add,
    add,
    drop,
    retype,
    wrap,
    thin,
    reversion,
    reversion,
)


def some_bytes(rng: random.Random) -> bytes:
    return rng.choice((b"", b"a", b"abc", b"\x7f" * (LARGE if rng.random() < 0.05 else 9)))


def some_number(rng: random.Random) -> int:
    return rng.choice((0, 1, 2**30))


PRIMITIVES: dict[str, Callable[[random.Random], Json]] = {
    "null": lambda _: None,
    "boolean": lambda rng: rng.random() < 0.5,
    "int": some_number,
    "long": some_number,
    "float": some_number,
    "double": some_number,
    "bytes": some_bytes,
    "string": lambda rng: some_bytes(rng).decode(),
}


class Maker:
    """Makes values up, not too many: arrays of records of arrays … would be more than a message holds."""

    def __init__(self, named: dict[str, Json], rng: random.Random) -> None:
        self._named = named
        self._rng = rng
        self._left = MOST_VALUES

    def value(self, schema: Json) -> Json:
        self._left -= 1
        if self._left < 0:
            raise OverflowError("more values than a message holds")
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            return self.value(self._rng.choice(schema))
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in PRIMITIVES:
            return PRIMITIVES[kind](self._rng)
        return self._composed(kind, schema)

    def _composed(self, kind: str, schema: dict[str, Json]) -> Json:
        many = range(self._rng.randrange(3) if self._left > MOST_VALUES / 2 else 0)
        if kind == "array":
            return [self.value(schema["items"]) for _ in many]
        if kind == "map":
            return {f"k{n}": self.value(schema["values"]) for n in many}
        if kind == "record":
            return {field["name"]: self.value(field["type"]) for field in schema["fields"]}
        return self._rng.choice(schema["symbols"]) if kind == "enum" else bytes(schema["size"])


def plain(event: Event) -> dict[str, Json]:
    body = io.BytesIO(Codec().encode(event)[HEADER_BYTES:])
    content: Json = schemaless_reader(body, current_schema(type(event)).parsed, None)
    return dict(content)


def mutated_schema(event: Event, rng: random.Random) -> str:
    schema: dict[str, Json] = json.loads(current_schema(type(event)).text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(SCHEMA_MUTATIONS)(schema, rng)
    return json.dumps(schema)


def mutated_messages(rng: random.Random) -> Iterator[bytes]:
    corpus = [Codec().encode(event) for event in EXAMPLES]
    while True:
        yield mutated(rng.choice(corpus), rng)


def inputs_of(seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    yield from mutated_messages(rng)


def answer(codec: Codec, data: bytes) -> str:
    """What came of it; anything else than these answers escapes."""
    try:
        found = codec.decode(data)
    except DecodeError as e:
        return e.problem.value
    if isinstance(found, UnknownEvent):
        return "a newer event" if found.known else "an unknown event"
    codec.encode(found)
    return "an event"


def memory() -> int:
    """The most that the process has had until now, in bytes."""
    if STATUS.exists():  # getrusage counts on Linux what stood in the process before it was given this program
        lines = STATUS.read_bytes().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(b"VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak() -> None:
    """Begin anew with what there is now: an import may have taken more for a moment, and would hide what comes."""
    if PEAK.exists():
        PEAK.write_text("5")


@contextmanager
def watched(
    most_memory: int = MOST_MEMORY, seconds: float = SLOW_SECONDS, hang: float = HANG_SECONDS
) -> Generator[None, None, None]:
    """Raises if what is done inside takes too long of the processor, never ends, or takes more memory than that."""

    def hangs(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {hang} s")

    before = signal.signal(signal.SIGVTALRM, hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, hang)
    signal.setitimer(signal.ITIMER_PROF, 2 * hang)  # native code listens to no handler: this one ends the process
    forget_peak()
    started, had = time.process_time(), memory()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    took = time.process_time() - started
    if took > seconds:
        raise TimeoutError(f"took {took:.1f} s")
    if memory() - had > most_memory:
        raise MemoryError(f"{memory() - had:,} bytes, where {most_memory:,} are allowed")


def fuzz(seed: int, inputs: int) -> Counter[str]:
    """How often each answer was given."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))
    answers: Counter[str] = Counter()
    codec = Codec()
    for number, data in zip(count(), islice(inputs_of(seed), inputs), strict=False):
        if number % 10_000 == 0:
            codec = Codec()  # so that an input depends on no more than those before it
        if TRACE:
            print(f"seed {seed}, input {number}, {len(data)} bytes", file=sys.stderr, flush=True)
        try:
            with watched():
                answers[answer(codec, data)] += 1
        except BaseException:
            print(f"seed {seed}, input {number}: {data[:100_000].hex()}", file=sys.stderr)
            raise
    return answers


def run(seed: int, inputs: int) -> Counter[str]:
    """In processes of their own, so that a bomb bursts there."""
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        shares = [pool.submit(fuzz, seed + n, inputs // PROCESSES) for n in range(PROCESSES)]
        return sum((share.result() for share in shares), Counter[str]())
