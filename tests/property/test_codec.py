"""decode(encode(event)) == event, for every kind; a codec answers any bytes with an event or one typed error."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from headwater.events.avro import Codec, DecodeError, EncodeError, Problem, UnknownEvent
from headwater.events.envelope import Event
from headwater.events.event_size import may_fit
from headwater.events.kinds import KINDS, AnyEvent
from headwater.testing.strategies import drafts, events
from tests.kit.effort import examples
from tests.kit.events.fuzz import run, watched
from tests.kit.seeds import seed

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
    assert is_answered(data)


@given(events(), st.data())
def test_damaged_bytes_give_an_event_or_one_typed_error(event: Event, data: st.DataObject) -> None:
    good = CODEC.encode(event)
    at = data.draw(st.integers(0, len(good) - 1))
    damage = data.draw(st.binary(max_size=9))
    width = data.draw(st.integers(0, 9))
    assert is_answered(good[:at] + damage + good[at + width :])


def is_answered(data: bytes) -> bool:
    """Whether bytes give an event, or an error that says what is wrong and where."""
    try:
        return isinstance(CODEC.decode(data), Event | UnknownEvent)
    except DecodeError as error:
        return error.problem.value in str(error) and 0 <= error.offset <= len(data)


# A small share of what `tests.benchmarks.fuzz_codec` tries by the million: enough to find each bomb that there was.


@pytest.mark.slow
def test_mutated_events_give_an_event_or_one_typed_error_at_once() -> None:
    answers = run(seed(), max(4_000, examples(6_000)))
    problems = (Problem.MALFORMED, Problem.TRAILING_BYTES, Problem.UNKNOWN_FRAMING)
    assert min(answers[problem.value] for problem in problems) > 5
    assert min(answers[name] for name in ("an event", "an unknown event")) > 50


def test_the_watch_sees_what_takes_too_long() -> None:
    with pytest.raises(TimeoutError, match="took"), watched(seconds=0.01):
        sum(range(3_000_000))


def test_the_watch_ends_what_has_no_end() -> None:
    with pytest.raises(TimeoutError, match=r"no end after 0\.05 s"), watched(hang=0.05):
        all(number >= 0 for number in count())


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.slow
def test_the_watch_sees_what_takes_too_much(size: int) -> None:
    """In a process of its own: this one may have had more before."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        taken = pool.submit(take, size << 20)
        if size == 1:
            assert taken.result() == size << 20
        else:
            with pytest.raises(MemoryError, match="where 33,554,432 are allowed"):
                taken.result()


def take(size: int) -> int:
    with watched(most_memory=32 << 20):
        return len(b"x" * size)
