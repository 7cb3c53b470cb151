"""Bytes that claim to be much are refused without being believed, and what they can mean is bounded."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress

import pytest

from headwater.events import Committed, DecodeError, Event
from headwater.events.avro import Codec
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
    tracemalloc.start()
    for at in range(10, len(good)):
        with suppress(DecodeError):
            codec.decode(good[:at] + length + good[at + 1 :])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MEGABYTE


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
