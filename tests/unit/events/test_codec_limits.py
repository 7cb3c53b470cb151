"""Bytes that claim to be much are refused without being believed, and what they can mean is bounded."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from fastavro import schemaless_reader, schemaless_writer

from headwater.events import AlterTable, Committed, DecodeError, Event
from headwater.events.avro import Codec, current_schema
from headwater.events.changes import DropColumn, OtherChange
from headwater.testing.examples import EXAMPLES

MEGABYTE = 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
@pytest.mark.parametrize(
    "length", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
)
def test_absurd_lengths_are_refused_without_being_believed(event: Event, length: bytes) -> None:
    """The greatest and the least long that Avro can say, in place of each byte that may be a length."""
    codec, good = Codec(), Codec().encode(event)
    codec.decode(good)  # what is compiled at the first event is no bytes' doing
    tracemalloc.start()
    for at in range(10, len(good)):
        with suppress(DecodeError):
            codec.decode(good[:at] + length + good[at + 1 :])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MEGABYTE


@pytest.mark.slow
def test_a_driver_without_a_free_descriptor_encodes_all_the_same() -> None:
    """Each schema was read from its file when its first event came, which fails in a driver that leaks sockets."""
    ended = subprocess.run([sys.executable, "-c", _STARVED], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"{len(EXAMPLES)} events\n"), ended.stderr


_STARVED = """
import os, resource
from headwater.events.avro import Codec
from headwater.testing.examples import EXAMPLES
codec = Codec()
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
try:
    open(os.devnull)
except OSError:
    print(len([codec.decode(codec.encode(each)) for each in EXAMPLES]), "events")
"""


@pytest.mark.slow
def test_the_most_that_a_message_can_mean_is_bounded() -> None:
    """The smallest inputs that a Committed can have, as many as fit: 14 bytes each, and some hundreds in memory."""
    commit = next(event for event in EXAMPLES if isinstance(event, Committed))
    count = 60_000
    plain = commit.model_copy(
        update={"inputs": tuple(commit.inputs[0].model_copy(update=_NOTHING) for _ in range(count))}
    )
    data = Codec().encode(plain)
    assert len(data) < MEGABYTE
    tracemalloc.start()
    back = Codec().decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(back, Committed)
    assert len(back.inputs) == count
    assert peak < 256 * MEGABYTE


_NOTHING = {"dataset": None, "table": None, "generation": None, "snapshot": None}


# A table change that only a newer version has a word for doesn't cost the rest of the event.


EVENT = next(event for event in EXAMPLES if isinstance(event, AlterTable))


def test_an_unknown_change_is_read_as_another_change() -> None:
    schema, codec = current_schema(AlterTable), Codec()
    changed = EVENT.model_copy(update={"changes": (DropColumn(path=("a",)), DropColumn(path=("b",)))})
    data = codec.encode(changed)
    record: Any = schemaless_reader(io.BytesIO(data[10:]), schema.parsed, None)
    record["changes"][0]["change"] = "SetMood"
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema.parsed, record)
    back = codec.decode(data[:10] + buffer.getvalue())
    assert isinstance(back, AlterTable)
    assert back.changes == (OtherChange(what="SetMood"), DropColumn(path=("b",)))
    assert back.table == EVENT.table


def test_all_members_of_the_union_are_one_flat_record() -> None:
    fields = json.loads(current_schema(AlterTable).text)["fields"]
    (changes,) = [field["type"] for field in fields if field["name"] == "changes"]
    assert changes["items"]["name"] == "TableChange"
    assert changes["items"]["fields"][0]["name"] == "change"
    assert all(field["type"][0] == "null" for field in changes["items"]["fields"][1:])
