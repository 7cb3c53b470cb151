"""An event that a target fails on for ever is found and set aside, and a target that is away isn't taken for that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from headwater.consumers.sources import SourceBatch
from headwater.errors import TransientError
from headwater.events import Event
from headwater.forwarders.api import BusEvent
from headwater.forwarders.http_delivery import BusyTargetError
from headwater.lineage.bulk import DeadLetterReason
from tests.kit.forwarders.stage import ScriptedForwarder, Stage, commit, letters_in, retry_letters, until

AT_ONCE = "0"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    created = Stage(tmp_path, partitions=2)
    yield created
    created.state.close()


class Target(ScriptedForwarder):
    """Fails on batches with certain events, while it is there at all."""

    def __init__(self, fails_on: Callable[[Event], bool], error: Exception | None = None) -> None:
        super().__init__()
        self.fails_on = fails_on
        self.error = error or TransientError("answers 500")

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        self.calls.append([each.event for each in batch])
        if any(self.fails_on(each.event) for each in batch):
            raise self.error
        self.received += [each.event for each in batch]

    def preview(self, event: Event) -> Iterator[str]:
        if event.kind == "Committed" and event.job is not None and event.job.name != "silent":
            yield "a message"


def fill(stage: Stage, *events: Event) -> None:
    for each in events:
        stage.bus.append(each)


def test_it_is_a_dead_letter_and_the_others_arrive_in_order_per_key(stage: Stage) -> None:
    fill(stage, commit(1, "a"), commit(2, "b"), commit(3, "a"), commit(4, "b"), commit(5, "c"))
    target = Target(lambda event: event == commit(2, "b"))
    runner = stage.forward(target, isolate_after=AT_ONCE)
    (letter,) = letters_in(stage)
    assert (letter.reason, letter.event) == (DeadLetterReason.STUCK, commit(2, "b").event_id)
    assert "failed 4 times alone, while the target took others: answers 500" in letter.error
    of_one_key = [each for each in target.received if each.job == commit(1, "a").job]
    assert list(dict.fromkeys(of_one_key)) == [commit(1, "a"), commit(3, "a")]
    assert set(target.received) == {commit(1, "a"), commit(3, "a"), commit(4, "b"), commit(5, "c")}
    assert stage.committed == {0: 5}
    assert runner.metrics.postponed == 0


def test_what_comes_behind_it_under_its_key_waits_until_it_is_set_aside(stage: Stage) -> None:
    fill(stage, commit(1, "a"), commit(2, "a"), commit(3, "b"))
    target = Target(lambda event: event == commit(1, "a"))
    stage.forward(target, isolate_after=AT_ONCE)
    assert commit(2, "a") in target.received
    assert target.calls.index([commit(2, "a")]) > target.calls.index([commit(1, "a")])
    assert letters_in(stage)[0].event == commit(1, "a").event_id


def test_a_target_that_takes_nothing_is_waited_for(stage: Stage) -> None:
    fill(stage, commit(1, "a"), commit(2, "b"), commit(3, "c"))

    async def run() -> None:
        target = Target(lambda _: True)
        runner = stage.runner(target, until_end=False, isolate_after=AT_ONCE)
        running = asyncio.create_task(runner.run())
        await until(lambda: len(target.calls) > 60)
        assert len(letters_in(stage)) == 0
        target.fails_on = lambda _: False
        # It may come back while events are tried alone, so that another key's event arrives first.
        await until(lambda: set(target.received) == {commit(1, "a"), commit(2, "b"), commit(3, "c")})
        runner.stop()
        await running
        assert len(letters_in(stage)) == 0

    asyncio.run(run())


def test_a_target_that_came_back_between_two_events_gets_both(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was away whenever the first one was tried, and there when the second one was."""
    another = lambda some, _: [each for each in some if each.event != commit(1, "a")]  # noqa: E731
    monkeypatch.setattr(random, "sample", another)
    fill(stage, commit(1, "a"), commit(2, "b"))
    target = Target(lambda _: False)
    target.fails_on = lambda event: event == commit(1, "a") and target.calls.count([event]) <= 3
    stage.forward(target, isolate_after=AT_ONCE)
    assert len(letters_in(stage)) == 0
    assert set(target.received) == {commit(1, "a"), commit(2, "b")}


def test_an_event_of_which_nothing_is_sent_does_not_show_that_the_target_is_there(stage: Stage) -> None:
    """Many kinds become no message: they arrive at a target that is away, too."""
    fill(stage, commit(1, "a"), commit(2, "silent"), commit(3, "b"), commit(4, "silent"))

    async def run() -> None:
        target = Target(lambda event: event.job != commit(2, "silent").job)
        runner = stage.runner(target, until_end=False, isolate_after=AT_ONCE)
        running = asyncio.create_task(runner.run())
        await until(lambda: len(target.calls) > 60)
        runner.stop()
        await running
        assert len(letters_in(stage)) == 0

    asyncio.run(run())


def test_a_busy_target_that_takes_some_now_and_then_gets_all(stage: Stage) -> None:
    """By chance, which the run's seed decides: what takes each seventh call can meet a batch's first event for ever."""
    events = [commit(number, f"job{number}") for number in range(1, 11)]
    fill(stage, *events)
    target = Target(lambda _: random.random() > 1 / 7, BusyTargetError("answers 429", is_overload=True))
    stage.forward(target, isolate_after=AT_ONCE)
    assert len(letters_in(stage)) == 0
    assert sorted(each.sequence for each in target.received) == list(range(1, 11))


def test_a_target_that_asks_to_wait_is_not_called_before(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is overloaded isn't asked for each event of the batch in turn, nor for the one that is left alone again
    and again: there is a pause after each such answer."""
    fill(stage, *(commit(number, f"job{number}") for number in range(1, 6)))
    target = Target(lambda event: len(target.calls) < 40 and event != commit(1, "job1"), BusyTargetError("429", 0.001))
    runner, calls_at_pauses = stage.runner(target, isolate_after=AT_ONCE), list[int]()
    pause = runner._delivery._pause

    async def record_pause(seconds: float) -> None:
        calls_at_pauses.append(len(target.calls))
        await pause(seconds)

    monkeypatch.setattr(runner._delivery, "_pause", record_pause)
    asyncio.run(runner.run())
    busy = [number for number, call in enumerate(target.calls[:39], 1) if call != [commit(1, "job1")]]
    assert [number for number in busy if number not in calls_at_pauses] == []
    assert sorted(each.sequence for each in target.received) == list(range(1, 6))


def test_without_a_preview_nobody_knows_and_it_is_waited_for(stage: Stage) -> None:
    fill(stage, commit(1, "a"), commit(2, "b"))
    target = ScriptedForwarder(*[TransientError("away")] * 50)
    stage.forward(target, isolate_after=AT_ONCE)
    assert target.calls == [[commit(1, "a"), commit(2, "b")]] * 51


def test_one_that_is_alone_waits_for_others_and_its_offset_with_it(stage: Stage) -> None:
    fill(stage, commit(1, "a"))

    async def run() -> None:
        target = Target(lambda event: event == commit(1, "a"))
        runner = stage.runner(target, until_end=False, isolate_after=AT_ONCE)
        running = asyncio.create_task(runner.run())
        await until(lambda: runner.metrics.postponed == 1 and len(target.calls) > 10)
        assert stage.committed.get(0, 0) == 0
        assert len(letters_in(stage)) == 0
        fill(stage, commit(2, "b"))
        await until(lambda: len(letters_in(stage)) == 1)
        await until(lambda: stage.committed == {0: 2})
        runner.stop()
        await running
        assert set(target.received) == {commit(2, "b")}

    asyncio.run(run())


def test_one_that_is_alone_is_found_by_sending_another_one_again(stage: Stage) -> None:
    """The one that the target took before it: sending that twice changes nothing."""
    fill(stage, commit(1, "a"), commit(2, "b"), commit(3, "c"))
    target = Target(lambda event: event == commit(3, "c"))
    stage.forward(target, isolate_after=AT_ONCE, batch="1")
    (letter,) = letters_in(stage)
    assert letter.event == commit(3, "c").event_id
    assert target.received == [commit(1, "a"), *[commit(2, "b")] * 3]
    assert "failed 4 times" in letter.error


def test_one_that_waits_alone_when_it_is_stopped_comes_again(stage: Stage) -> None:
    fill(stage, commit(1, "a"))

    async def run() -> None:
        target = Target(lambda event: event == commit(1, "a"))
        runner = stage.runner(target, until_end=False, isolate_after=AT_ONCE)
        running = asyncio.create_task(runner.run())
        await until(lambda: runner.metrics.postponed == 1 and len(target.calls) > 10)
        runner.stop()
        await running

    asyncio.run(run())
    assert stage.committed.get(0, 0) == 0
    target = ScriptedForwarder()
    stage.forward(target)
    assert target.received == [commit(1, "a")]


def test_one_of_a_partition_that_another_member_took_is_left_to_it(stage: Stage) -> None:
    stage.bus.append(commit(1, "a"), partition=1)

    async def run() -> None:
        target = Target(lambda event: event == commit(1, "a"))
        runner = stage.runner(target, until_end=False, isolate_after=AT_ONCE)
        poll, is_lost = runner._source.poll, asyncio.Event()

        def losing(most: int, timeout: float) -> SourceBatch:
            stage.bus.lost.update({1} if is_lost.is_set() else ())
            return poll(most, timeout)

        runner._source.poll = losing  # type: ignore[method-assign]
        running = asyncio.create_task(runner.run())
        await until(lambda: runner.metrics.postponed == 1)
        is_lost.set()
        await until(lambda: runner.metrics.postponed == 0)
        runner.stop()
        await running

    asyncio.run(run())
    assert stage.committed.get(1, 0) == 0
    assert len(letters_in(stage)) == 0


def test_a_letter_that_fails_again_does_not_hold_up_the_bus(stage: Stage) -> None:
    fill(stage, commit(1, "a"), commit(2, "b"))
    target = Target(lambda event: event == commit(1, "a"))
    stage.forward(target, isolate_after=AT_ONCE)
    retry_letters(stage)
    fill(stage, commit(3, "b"))
    stage.forward(target, isolate_after=AT_ONCE)
    assert list(dict.fromkeys(target.received)) == [commit(2, "b"), commit(3, "b")]
    assert len(letters_in(stage)) == 1
