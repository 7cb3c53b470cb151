"""The compiled reader gives what fastavro and the models' own validation give, of plain events and of damaged bytes.

No other test finds a check of a model that the compiled reader lacks: an event would be stored that should be a dead
letter.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events.avro import Codec, DecodeError, UnknownEvent, codec
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.avro.quick_reader import QuickRead, quick_reader
from headwater.events.envelope import Event
from headwater.events.jobs import Committed
from headwater.events.kinds import KINDS
from headwater.testing.examples import EXAMPLES
from headwater.testing.strategies import events
from tests.kit.effort import examples

CODEC = Codec()
COMMITTED = next(each for each in EXAMPLES if isinstance(each, Committed))
QUICK: dict[type[Event], QuickRead] = {
    kind: read for kind in KINDS.values() if (read := quick_reader(kind)) is not None
}
NO_NUMBER = b"\xff" * 9 + b"\x02"
"""A number of more than 64 bits."""


def strictly(data: bytes) -> Event | UnknownEvent | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "quick_reader", lambda _: None)
        return decoded(data)


def decoded(data: bytes) -> Event | UnknownEvent | str:
    try:
        return CODEC.decode(data)
    except DecodeError as e:
        return str(e)


def test_each_kind_has_the_quick_way() -> None:
    assert QUICK.keys() == set(KINDS.values())


@pytest.mark.parametrize("event", [each for each in EXAMPLES if type(each) in QUICK], ids=lambda each: each.kind)
def test_each_example_is_read_quickly(event: Event) -> None:
    data = CODEC.encode(event)
    found = QUICK[type(event)](data, HEADER_BYTES)
    assert (found, repr(found)) == (event, repr(strictly(data)))


@given(events(*QUICK))
@settings(max_examples=examples(100), deadline=None)
def test_whatever_stands_in_an_event_is_read_as_the_models_read_it(event: Event) -> None:
    data = CODEC.encode(event)
    found, wanted = decoded(data), strictly(data)
    assert found == wanted
    assert isinstance(found, Event)
    assert isinstance(wanted, Event)
    assert (repr(found), found.model_fields_set) == (repr(wanted), wanted.model_fields_set)
    assert found.to_json() == wanted.to_json()


@pytest.mark.slow
@given(
    st.sampled_from([each for each in EXAMPLES if type(each) in QUICK]),
    st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=3),
)
@settings(max_examples=examples(1_500), deadline=None)
def test_damaged_bytes_are_refused_as_the_models_refuse_them(
    event: Event, faults: list[tuple[int, bytes, int]]
) -> None:
    data = CODEC.encode(event)
    for place, damage, width in faults:
        at = HEADER_BYTES + place % (len(data) - HEADER_BYTES)
        data = data[:at] + damage + data[at + width :]
    assert decoded(data) == strictly(data)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b"\x06etl", b"\x00"),  # a job's name of no characters
        (b"\x06etl", b"\x06\xff\xff\xff"),
        (b"\x06etl", NO_NUMBER),
        (b"\x06etl", b"\x05etl"),  # a negative length
        (b"\x06etl", b"\xfe\x01etl"),  # longer than the event
    ],
)
def test_names_that_are_none_are_refused(good: bytes, bad: bytes) -> None:
    job = COMMITTED.job.model_copy(update={"name": "etl"}) if COMMITTED.job else None
    data = CODEC.encode(COMMITTED.model_copy(update={"job": job}))
    assert data.count(good) == 1
    damaged = data.replace(good, bad)
    with pytest.raises((ValueError, IndexError)):
        QUICK[Committed](damaged, HEADER_BYTES)
    assert isinstance(decoded(damaged), str)


@pytest.mark.parametrize("field", ["sequence", "family_sequence", "batch_id"])
def test_counts_below_zero_are_refused(field: str) -> None:
    data = CODEC.encode(COMMITTED.model_copy(update={field: -1}))
    assert isinstance(decoded(data), str)
    assert decoded(data) == strictly(data)


def test_what_is_cut_anywhere_is_refused() -> None:
    data = CODEC.encode(COMMITTED)
    assert [size for size in range(len(data)) if not isinstance(decoded(data[:size]), str)] == []
    assert isinstance(decoded(data + b"\0"), str)
