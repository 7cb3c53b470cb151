"""Mutated events by the million: each must give an event or one typed error, in bounded time and memory.

`FUZZ_INPUTS` says how many (a million), `FUZZ_SEED` with which seed: a failure prints it with the bytes. Where native
code finds no end, the process dies without a word: `FUZZ_TRACE=1` prints each input's number before it is tried.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import time

from fastavro import schemaless_writer

from headwater.events.avro import (
    WriterSchema,
)
from headwater.events.envelope import Event
from tests.kit import seeds
from tests.kit.events.fuzz import Json, Maker, plain, run

INPUTS = int(os.environ.get("FUZZ_INPUTS", "1000000"))
SEED = int(os.environ.get("FUZZ_SEED", str(seeds.seed())))
MANY = 150_000
COUNTS = (b"", b"\xe0\xa7\x12", b"\x80" * 5 + b"\x08")
"""Of the items of an array: none, 150 000, and 2^37, which needs items of no bytes to be believed."""


def written(schema: WriterSchema, event: Event, rng: random.Random) -> bytes:
    """The event as far as the schema has its fields, the others made up; or in place of one, a byte many times."""
    fields: list[dict[str, Json]] = schema.parsed["fields"]
    content = plain(event) if event.kind == schema.kind else {}
    new = [n for n, field in enumerate(fields) if field["name"] not in content]
    end, filler = len(fields), b""
    if rng.random() < 0.4:
        end = rng.choice(new or range(end)) if rng.random() < 0.7 else rng.randrange(end)
        filler = rng.choice(COUNTS) + rng.choice((b"\0", b"\x01", b"\x02")) * rng.choice((9, 9, 9_000, MANY))
    body = io.BytesIO()
    try:
        maker = Maker(schema.parsed["__named_schemas"], rng)
        content |= {fields[n]["name"]: maker.value(fields[n]["type"]) for n in new if n < end}
        schemaless_writer(body, {**json.loads(schema.text), "fields": fields[:end]}, content)
    except Exception:  # noqa: BLE001 - a field isn't what it was: how much was written is as good as any
        filler = filler or bytes(9)
    return body.getvalue() + filler


def main() -> int:
    """Print how often each answer was given."""
    print(f"{INPUTS:,} inputs, FUZZ_SEED={SEED}")
    started = time.perf_counter()
    answers = run(SEED, INPUTS)
    for name, times in answers.most_common():
        print(f"{name:<24}{times:>12,}")
    print(f"{answers.total() / (time.perf_counter() - started):,.0f} inputs/s; every one an event or one typed error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
