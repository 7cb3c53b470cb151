"""A small share of what `tests.benchmarks.fuzz_codec` tries by the million: enough to find each bomb that there was."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import count

import pytest

from headwater.events.avro import Problem
from tests.kit.effort import examples
from tests.kit.events.fuzz import run, watched
from tests.kit.seeds import seed


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
