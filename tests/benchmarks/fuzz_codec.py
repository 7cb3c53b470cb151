"""Mutated events by the million: each must give an event or one typed error, in bounded time.

`FUZZ_INPUTS` says how many (a million), `FUZZ_SEED` with which seed: a failure prints it with the bytes.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

from headwater.events.avro import Codec, DecodeError, SchemaMessage, UnknownEvent, released, schema_message
from headwater.testing.examples import EXAMPLES

INPUTS = int(os.environ.get("FUZZ_INPUTS", "1000000"))
SEED = int(os.environ.get("FUZZ_SEED", str(time.time_ns())))
PROCESSES = 2
SLOW_SECONDS = 2.0
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

Mutation = Callable[[bytes, random.Random], bytes]


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


def answer(codec: Codec, data: bytes) -> str:
    """What came of it; anything else than these answers escapes."""
    try:
        found = codec.decode(data)
    except DecodeError as e:
        return e.problem.value
    if isinstance(found, UnknownEvent | SchemaMessage):
        return type(found).__name__
    codec.encode(found)
    return "an event"


def fuzz(seed: int, inputs: int) -> Counter[str]:
    rng = random.Random(seed)
    corpus = [Codec().encode(event) for event in EXAMPLES]
    corpus += [schema_message(schema) for schema in released()]
    answers: Counter[str] = Counter()
    codec = Codec()
    for number in range(inputs):
        if number % 10_000 == 0:
            codec = Codec()  # schemas learned from mutated messages must not pile up
        data = mutated(rng.choice(corpus), rng)
        started = time.perf_counter()
        try:
            answers[answer(codec, data)] += 1
        except BaseException:
            print(f"seed {seed}, input {number}: {data.hex()}", file=sys.stderr)
            raise
        if time.perf_counter() - started > SLOW_SECONDS:
            raise TimeoutError(f"seed {seed}, input {number} took {time.perf_counter() - started:.1f} s: {data.hex()}")
    return answers


def main() -> int:
    """Print how often each answer was given."""
    print(f"{INPUTS:,} inputs, FUZZ_SEED={SEED}")
    started = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        shares = pool.starmap(fuzz, [(SEED + n, INPUTS // PROCESSES) for n in range(PROCESSES)])
    answers = sum(shares, Counter[str]())
    for name, count in answers.most_common():
        print(f"{name:<24}{count:>12,}")
    print(f"{answers.total() / (time.perf_counter() - started):,.0f} inputs/s; every one an event or one typed error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
