"""A producer's time never goes back; barriers grow, and are unique within their incarnation."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.barriers import MAX_MILLIS, BatchBarriers, millis_of, stream_barrier
from headwater.events.clock import ProducerClock, micros_of, moment_of, uuid7

MICROS = st.integers(0, 4_102_444_800_000_000)  # until 2100
PRODUCERS = st.uuids(version=4)


@given(st.lists(st.tuples(MICROS, st.none() | MICROS), min_size=1))
def test_time_never_goes_back_whatever_the_wall_clock_and_the_broker_say(steps: list[tuple[int, int | None]]) -> None:
    wall = iter(w for w, observed in steps for _ in range(1 if observed is None else 2))
    clock = ProducerClock(lambda: next(wall))
    last = 0
    for _, observed in steps:
        if observed is not None:
            clock.observe(observed)
        now = clock.now()
        assert now >= last
        last = now


@given(MICROS, st.integers(1, 10**12))
def test_a_clock_that_is_behind_goes_on_at_the_brokers_pace(wall: int, behind: int) -> None:
    times = iter([wall, wall, wall + 5, wall + 1_000])
    clock = ProducerClock(lambda: next(times))
    clock.observe(wall + behind)
    clock.observe(wall + behind)
    assert clock.now() == wall + behind + 5
    assert clock.now() == wall + behind + 1_000


@given(MICROS, st.integers(1, 10**12))
def test_a_wall_clock_that_was_set_right_needs_no_help_any_more(wall: int, behind: int) -> None:
    now = [wall]
    clock = ProducerClock(lambda: now[0])
    clock.observe(wall + behind)
    now[0] = wall + behind  # set right
    for _ in range(16):
        now[0] += 1_000
        clock.observe(now[0])
    now[0] += 1_000_000_000_000
    assert clock.now() == now[0]


@given(st.lists(st.integers(-(10**6), 10**6), min_size=16, max_size=40), MICROS, st.data())
def test_acknowledgements_with_another_date_than_most_move_no_clock(
    differences: list[int], date: int, data: st.DataObject
) -> None:
    """A broker, or who answers in its place, that says 2031 once would otherwise hold for the driver's whole life."""
    wall = 1_800_000_000_000_000
    clock = ProducerClock(lambda: wall)
    wrong = data.draw(st.sets(st.integers(0, len(differences) - 1), max_size=7))
    for number, difference in enumerate(differences):
        clock.observe(date if number in wrong else wall + difference)
    assert wall <= clock.now() <= wall + 61_000_000


def test_what_is_passed_over_is_later_for_good() -> None:
    clock = ProducerClock(lambda: 5)
    clock.pass_over(7)
    assert (clock.now(), clock.now()) == (8, 8)


@pytest.mark.parametrize("absurd", [-1, 10**18, 2**70])
def test_what_is_no_date_is_ignored(absurd: int) -> None:
    clock = ProducerClock(lambda: 5)
    clock.observe(absurd)
    assert clock.now() == 5


def test_a_clock_stops_where_dates_do() -> None:
    clock = ProducerClock(lambda: 10**18)
    assert moment_of(clock.now()).year == 9999


@given(MICROS)
def test_microseconds_are_exact_both_ways(micros: int) -> None:
    assert micros_of(moment_of(micros)) == micros


@given(PRODUCERS, st.lists(st.integers(0, 2**41), min_size=1, max_size=50))
def test_barriers_of_a_producer_grow_whatever_the_milliseconds_do(producer: UUID, millis: list[int]) -> None:
    barriers = BatchBarriers(producer)
    given_out = [barriers.next(at) for at in millis]
    assert given_out == sorted(set(given_out))


@given(PRODUCERS)
def test_more_commits_than_a_millisecond_has_room_for_take_the_next_one(producer: UUID) -> None:
    barriers = BatchBarriers(producer)
    given_out = [barriers.next(7) for _ in range(2_500)]
    assert given_out == sorted(set(given_out))
    assert [millis_of(b) for b in (given_out[0], given_out[1_024], given_out[-1])] == [7, 8, 9]


def test_threads_share_the_barriers_of_a_producer() -> None:
    barriers, given_out = BatchBarriers(uuid7()), list[int]()
    threads = [
        threading.Thread(target=lambda: given_out.extend([barriers.next(1) for _ in range(500)])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(given_out)) == 4_000


@given(st.integers(0, 2**41), st.lists(st.integers(0, 2**24), min_size=2, unique=True))
def test_micro_batches_of_an_incarnation_are_unique_and_in_order(began: int, batches: list[int]) -> None:
    barriers = [stream_barrier(began, batch) for batch in sorted(batches)]
    assert barriers == sorted(set(barriers))


@given(st.integers(0, 2**41), st.integers(0, 2**20 - 1))
def test_a_micro_batch_run_again_is_the_same_barrier_and_says_when_its_stream_began(began: int, batch: int) -> None:
    assert stream_barrier(began, batch) == (began << 20) + batch
    assert millis_of(stream_barrier(began, batch)) == began


@pytest.mark.parametrize(("began", "batch"), [(-1, 0), (0, -1), (MAX_MILLIS + 1, 0), (MAX_MILLIS, 1 << 20)])
def test_what_has_no_barrier_is_refused(began: int, batch: int) -> None:
    with pytest.raises(ValueError, match=r"batch id counts from 0|milliseconds since 1970"):
        stream_barrier(began, batch)


def test_the_greatest_barrier_is_a_long() -> None:
    assert stream_barrier(MAX_MILLIS, (1 << 20) - 1) == 2**63 - 1


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_uuids_sort_by_time_and_are_of_version_7(one: int, other: int, noise: bytes) -> None:
    first, second = uuid7(one, noise), uuid7(other, noise)
    assert (first < second) == (one < other)
    assert first.version == 7
    assert first.variant == "specified in RFC 4122"
    assert first.int >> 80 == one
