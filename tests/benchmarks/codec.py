"""Encoding and decoding beside bare fastavro on the same record as a plain dict, and the size of a Committed."""

from __future__ import annotations

import io
import sys
import zlib
from datetime import timedelta
from uuid import uuid4

from fastavro import schemaless_reader, schemaless_writer

from headwater.events.avro import Codec, current_schema
from headwater.events.clock import ProducerClock
from headwater.events.envelope import Event
from headwater.events.health import Heartbeat
from headwater.events.jobs import Committed, JobLineage
from headwater.events.producer import Producer
from headwater.testing.examples import COMMITTED, EXAMPLES
from tests.benchmarks.harness import HEADER, Aims, compare, row

AIM = 0.6
BYTES, BYTES_IN_A_BATCH, BATCH = 650, 300, 200


def rates(event: Event, aims: Aims) -> list[str]:
    """The same bytes both ways."""
    codec, schema = Codec(), current_schema(type(event)).parsed
    data = codec.encode(event)
    body = data[10:]
    plain = schemaless_reader(io.BytesIO(body), schema, None)

    def bare_encode() -> bytes:
        buffer = io.BytesIO()
        schemaless_writer(buffer, schema, plain)
        return buffer.getvalue()

    if bare_encode() != body or codec.decode(data) != event:
        raise AssertionError("the two ways differ")
    encoding = compare(lambda: codec.encode(event), bare_encode)
    decoding = compare(lambda: codec.decode(data), lambda: schemaless_reader(io.BytesIO(body), schema, None))
    if isinstance(event, Committed):
        aims.at_least("encode a Committed, of bare fastavro's rate", encoding.ratio, AIM)
        aims.at_least("decode a Committed, of bare fastavro's rate", decoding.ratio, AIM)
    return [row(f"encode {event.kind}", encoding), row(f"decode {event.kind}", decoding)]


def sizes() -> tuple[int, float]:
    """A Committed's bytes, and its share of a batch of many, each with snapshots of its own, as a producer compresses
    it. zlib stands for the codecs of a broker's client: lz4 is somewhat larger, zstd somewhat smaller."""
    codec = Codec()
    commit = next(e for e in EXAMPLES if isinstance(e, Committed))
    batch: list[bytes] = []
    for number in range(BATCH):
        inputs = tuple(i.model_copy(update={"snapshot": uuid4().int >> 65}) for i in commit.inputs)
        later = timedelta(milliseconds=317 * number)
        own = {"snapshot": uuid4().int >> 65, "parent": uuid4().int >> 65, "snapshot_time": commit.time + later}
        output = commit.outputs[0].model_copy(update=own)
        batch.append(
            codec.encode(
                commit.model_copy(
                    update={
                        "inputs": inputs,
                        "outputs": (output,),
                        "sequence": number + 1,
                        "family_sequence": number + 1,
                        "barrier": commit.barrier + (number << 25),
                        "time": commit.time + later,
                        "started": commit.time + later - timedelta(seconds=12),
                        "ended": commit.time + later,
                    }
                )
            )
        )
    return len(codec.encode(commit)), len(zlib.compress(b"".join(batch), 6)) / BATCH


def nowhere(event: Event, data: bytes) -> None:
    """What `emit` costs before anything is written."""


def main() -> int:
    """Print the tables; 1 if an aim is missed."""
    print(HEADER)
    aims = Aims()
    lines = [
        line
        for event in EXAMPLES
        if isinstance(event, Committed | JobLineage | Heartbeat)
        for line in rates(event, aims)
    ]
    producer = Producer("app", clock=ProducerClock())
    bare = Codec()
    stamped = next(e for e in EXAMPLES if isinstance(e, Committed))
    lines.append(
        row(
            "emit Committed (redact, stamp, encode) / encode",
            compare(lambda: producer.emit(COMMITTED, nowhere), lambda: bare.encode(stamped)),
        )
    )
    print("\n".join(lines))
    alone, in_a_batch = sizes()
    aims.at_most("a Committed of 3 inputs and 1 output", alone, BYTES, "bytes")
    aims.at_most(f"each of {BATCH} in a compressed batch", in_a_batch, BYTES_IN_A_BATCH, "bytes")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
