"""What is forwarded, in which order, what is committed, and what becomes of errors of each class."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headwater.consumers.sources import SourceBatch
from headwater.errors import TerminalError, TransientError
from headwater.events import JobName
from headwater.events.names import VALIDATION_JOB_NAMESPACE
from headwater.forwarders.api import BusEvent, RefusedEventsError
from headwater.forwarders.runner import RateLimiter
from headwater.lineage.bulk import DeadLetterReason, DeadLetterState
from tests.kit.forwarders.stage import MemorySource, ScriptedForwarder, Stage, commit, letters_in, retry_letters, until


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    created = Stage(tmp_path, partitions=2)
    yield created
    created.state.close()


def test_events_arrive_in_order_in_batches_and_are_committed(stage: Stage) -> None:
    events = [commit(number) for number in range(1, 26)]
    for each in events:
        stage.bus.append(each)
    target = ScriptedForwarder()
    runner = stage.forward(target, batch="10")
    assert target.received == events
    assert [len(each) for each in target.calls] == [10, 10, 5]
    assert stage.committed == {0: 25}
    assert (runner.metrics.sent, runner.metrics.lag) == (25, 0)


def test_the_next_one_goes_on_where_it_ended(stage: Stage) -> None:
    stage.bus.append(commit(1))
    stage.forward(ScriptedForwarder())
    stage.bus.append(commit(2))
    target = ScriptedForwarder()
    stage.forward(target)
    assert target.received == [commit(2)]


@pytest.mark.parametrize(
    "error", [TransientError("busy"), ConnectionRefusedError("away"), TerminalError("no right")], ids=repr
)
def test_a_target_that_is_away_gets_the_same_batch_again(stage: Stage, error: Exception) -> None:
    stage.bus.append(commit(1))
    stage.bus.append(commit(2))
    target = ScriptedForwarder(error, error, error)
    runner = stage.forward(target)
    assert target.calls == [[commit(1), commit(2)]] * 4
    assert target.received == [commit(1), commit(2)]
    assert runner.metrics.waits_by == {"the target": 3}
    assert runner.metrics.fault is None
    assert str(error) in str(runner.metrics.last_error)
    assert stage.bus.rests >= 3, "the bus must hear of it while it waits"


def test_a_call_that_hangs_is_cancelled_and_made_again(stage: Stage) -> None:
    async def hang(_: Sequence[BusEvent]) -> None:
        await asyncio.Event().wait()

    stage.bus.append(commit(1))
    target = ScriptedForwarder(hang)
    runner = stage.forward(target, timeout="0.05")
    assert target.received == [commit(1)]
    assert "no answer within 0.05 s" in str(runner.metrics.last_error)


def test_refused_events_are_dead_letters_and_the_rest_was_sent(stage: Stage) -> None:
    for number in range(1, 4):
        stage.bus.append(commit(number))
    target = ScriptedForwarder(RefusedEventsError({1: "no such platform; password=abc123"}))
    runner = stage.forward(target)
    (letter,) = letters_in(stage)
    assert (letter.reason, letter.event, letter.kind) == (DeadLetterReason.REFUSED, commit(2).event_id, "Committed")
    assert "no such platform" in letter.error
    assert "abc123" not in letter.error
    assert len(target.calls) == 1
    assert stage.committed == {0: 3}
    assert (runner.metrics.sent, runner.metrics.dead_letters, runner.metrics.dead_letters_waiting) == (2, 1, 1)


def test_a_refusal_of_what_is_not_in_the_batch_is_a_fault(stage: Stage) -> None:
    stage.bus.append(commit(1))
    stage.forward(ScriptedForwarder(RefusedEventsError({5: "what?"}), RefusedEventsError({5: "what?"})))
    (letter,) = letters_in(stage)
    assert letter.reason is DeadLetterReason.FAULT


def test_of_a_batch_that_it_fails_on_only_the_bad_event_is_a_dead_letter(stage: Stage) -> None:
    class Picky(ScriptedForwarder):
        async def handle(self, batch: Sequence[BusEvent]) -> None:
            if any(each.event == commit(2) for each in batch):
                raise KeyError("two")
            await super().handle(batch)

    for number in range(1, 4):
        stage.bus.append(commit(number))
    target = Picky()
    stage.forward(target)
    assert target.received == [commit(1), commit(3)]
    (letter,) = letters_in(stage)
    assert (letter.reason, letter.error, letter.event) == (
        DeadLetterReason.FAULT,
        "KeyError: 'two'",
        commit(2).event_id,
    )


@pytest.mark.slow
def test_a_forwarder_that_fails_on_everything_does_not_make_everything_a_dead_letter(stage: Stage) -> None:
    """Otherwise one wrong line in it would be a dead letter for each event of a day."""
    for number in range(1, 151):
        stage.bus.append(commit(number))
    target = ScriptedForwarder(*[ValueError("always")] * 130)
    runner = stage.forward(target)
    assert len(letters_in(stage)) == 100
    assert [each.sequence for each in target.received] == list(range(101, 151))
    assert runner.metrics.dead_letters == 100


def test_what_is_no_event_and_what_is_unknown_are_dead_letters(stage: Stage) -> None:
    stage.bus.append(b"nonsense")
    stage.bus.append(b"\xc3\x01" + bytes(range(8)) + b"later")
    stage.bus.append(commit(1))
    target = ScriptedForwarder()
    stage.forward(target)
    assert target.received == [commit(1)]
    letters = letters_in(stage)
    assert [each.reason for each in letters] == [DeadLetterReason.UNDECODABLE, DeadLetterReason.UNKNOWN]
    assert letters[0].data == b"nonsense"


def test_one_that_is_told_to_stop_while_it_waits_commits_nothing_of_the_batch(stage: Stage) -> None:
    async def run() -> None:
        stage.bus.append(commit(1))
        target = ScriptedForwarder(*[TransientError("away")] * 1_000)
        runner = stage.runner(target, until_end=False)
        running = asyncio.create_task(runner.run())
        await until(lambda: len(target.calls) > 2)
        runner.stop()
        await running

    asyncio.run(run())
    assert stage.committed == {}


def test_one_that_is_told_to_stop_finishes_and_commits_what_it_sends(stage: Stage) -> None:
    async def run() -> None:
        let_go = asyncio.Event()

        async def slow(_: Sequence[BusEvent]) -> None:
            await let_go.wait()

        for number in range(1, 4):
            stage.bus.append(commit(number))
        target = ScriptedForwarder(slow)
        runner = stage.runner(target, until_end=False, batch="2")
        running = asyncio.create_task(runner.run())
        await until(lambda: bool(target.calls))
        runner.stop()
        let_go.set()
        await running

    asyncio.run(run())
    assert stage.committed == {0: 2}


def test_what_another_member_took_over_while_it_waited_is_left_to_it(stage: Stage) -> None:
    """Sent by both, an old event could come after a newer one of its key."""

    async def lose(_: Sequence[BusEvent]) -> None:
        stage.bus.lost.add(0)
        raise TransientError("away")

    stage.bus.append(commit(1), 0)
    stage.bus.append(commit(1, "other", producer=8), 1)
    target = ScriptedForwarder(lose)
    stage.forward(target)
    assert target.received == [commit(1, "other", producer=8)]
    assert stage.committed == {1: 1}


def test_only_what_the_filters_let_through_is_sent_and_all_is_committed(stage: Stage) -> None:
    for number, job in enumerate(["etl", "tmp_1", "report"], 1):
        stage.bus.append(commit(number, job))
    target = ScriptedForwarder()
    runner = stage.forward(target, exclude_jobs="tmp*")
    assert [str(each.job) for each in target.received] == [str(JobName(name=job)) for job in ("etl", "report")]
    assert runner.metrics.filtered == 1
    assert stage.committed == {0: 3}


@pytest.mark.parametrize(("configured", "sent"), [({}, [2]), ({"validations": "true"}, [1, 2])])
def test_a_validation_is_sent_to_who_asks_for_it(stage: Stage, configured: dict[str, str], sent: list[int]) -> None:
    """A target's users would take a result table that is gone for one of theirs."""
    job = JobName(namespace=VALIDATION_JOB_NAMESPACE, name="report")
    stage.bus.append(commit(1).model_copy(update={"job": job}))
    stage.bus.append(commit(2, "report"))
    target = ScriptedForwarder()
    stage.forward(target, **configured)
    assert [each.sequence for each in target.received] == sent


def test_a_rate_is_held(stage: Stage) -> None:
    """By the limiter's own clock: 20 events a second go out in batches of 20, one a second."""
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async def take() -> None:
        limiter = RateLimiter(20.0, lambda: 5.0 + sum(waits))
        for _ in range(4):
            await limiter.take(20, pause)

    asyncio.run(take())
    assert waits == [1.0, 1.0, 1.0]
    for number in range(1, 26):
        stage.bus.append(commit(number))
    target = ScriptedForwarder()
    stage.forward(target, rate="20000", batch="10")
    assert [len(each) for each in target.calls] == [10, 10, 5]


class TestRetries:
    def test_a_marked_letter_is_sent_and_gone(self, stage: Stage) -> None:
        stage.bus.append(commit(1))
        stage.forward(ScriptedForwarder(RefusedEventsError({0: "not yet"})))
        retry_letters(stage)
        target = ScriptedForwarder()
        runner = stage.forward(target)
        assert target.received == [commit(1)]
        assert letters_in(stage) == []
        assert runner.metrics.retried == 1

    def test_the_bus_is_polled_between_many(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else Kafka takes the partitions away, and a wish to stop isn't seen."""

        async def refuse(batch: Sequence[BusEvent]) -> None:
            raise RefusedEventsError(dict.fromkeys(range(len(batch)), "no"))

        for number in range(1, 251):
            stage.bus.append(commit(number))
        stage.forward(ScriptedForwarder(*([refuse] * 3)))
        retry_letters(stage)
        target = ScriptedForwarder()
        seen: list[int] = []
        poll = MemorySource.poll

        def counted(source: MemorySource, most: int, timeout: float) -> SourceBatch:
            seen.append(len(target.received))
            return poll(source, most, timeout)

        monkeypatch.setattr(MemorySource, "poll", counted)
        stage.forward(target)
        assert [each.sequence for each in target.received] == list(range(1, 251))
        assert {100, 200, 250} <= set(seen)

    def test_one_that_is_refused_again_waits_with_the_new_reason(self, stage: Stage) -> None:
        stage.bus.append(commit(1))
        stage.forward(ScriptedForwarder(RefusedEventsError({0: "not yet"})))
        retry_letters(stage)
        stage.forward(ScriptedForwarder(RefusedEventsError({0: "never"})))
        (letter,) = letters_in(stage)
        assert (letter.state, letter.error, letter.attempts) == (DeadLetterState.WAITING, "never", 2)

    def test_one_whose_process_dies_is_retried_by_the_next(self, stage: Stage) -> None:
        """It is removed after the target has it, and not before."""
        stage.bus.append(commit(1))
        stage.forward(ScriptedForwarder(RefusedEventsError({0: "not yet"})))
        retry_letters(stage)

        async def die(_: Sequence[BusEvent]) -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            stage.forward(ScriptedForwarder(die))
        target = ScriptedForwarder()
        stage.forward(target)
        assert target.received == [commit(1)]

    def test_the_same_record_makes_one_letter_however_often_it_comes(self, stage: Stage) -> None:
        stage.bus.append(commit(1))
        stage.forward(ScriptedForwarder(RefusedEventsError({0: "a"})))
        stage.bus.committed.clear()
        stage.forward(ScriptedForwarder(RefusedEventsError({0: "b"})))
        assert [each.error for each in letters_in(stage)] == ["a"]
