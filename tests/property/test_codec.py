"""decode(encode(event)) == event, for every kind; a codec answers any bytes with an event or one typed error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from headwater.events.avro import Codec, DecodeError, EncodeError, UnknownEvent
from headwater.events.envelope import Event
from headwater.events.event_size import may_fit
from headwater.events.kinds import KINDS, AnyEvent
from headwater.testing.strategies import drafts, events

CODEC = Codec()
UNWRITTEN = 400
"""Names of kinds and the records that hold others take no bytes, and are counted."""
ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_event_comes_back_as_it_was(kind: type[Event]) -> None:
    @given(events(kind))
    def law(event: Event) -> None:
        data = CODEC.encode(event)
        back = CODEC.decode(data)
        assert isinstance(back, kind)
        assert back == event
        assert CODEC.encode(back) == data

    law()


@given(events())
def test_json_tells_the_same(event: Event) -> None:
    assert ADAPTER.validate_json(event.model_dump_json()) == event


@given(events())
def test_equal_events_have_equal_hashes(event: Event) -> None:
    back = CODEC.decode(CODEC.encode(event))
    assert hash(back) == hash(event)


@given(events(), st.integers(0, 4_000))
def test_an_event_that_surely_is_too_large_takes_more_bytes(event: Event, limit: int) -> None:
    assert may_fit(event, limit + UNWRITTEN) or len(CODEC.encode(event)) > limit


@given(drafts())
def test_a_draft_has_no_bytes(draft: Event) -> None:
    with pytest.raises(EncodeError, match="let a Producer stamp it"):
        CODEC.encode(draft)


@given(st.binary(max_size=200))
def test_any_bytes_give_an_event_or_one_typed_error(data: bytes) -> None:
    _answers(data)


@given(events(), st.data())
def test_damaged_bytes_give_an_event_or_one_typed_error(event: Event, data: st.DataObject) -> None:
    good = CODEC.encode(event)
    at = data.draw(st.integers(0, len(good) - 1))
    damage = data.draw(st.binary(max_size=9))
    width = data.draw(st.integers(0, 9))
    _answers(good[:at] + damage + good[at + width :])


def _answers(data: bytes) -> None:
    try:
        answer = CODEC.decode(data)
    except DecodeError as error:
        if error.problem.value not in str(error) or not 0 <= error.offset <= len(data):
            pytest.fail(f"doesn't say what is wrong and where: {error}")
    else:
        assert isinstance(answer, Event | UnknownEvent)
