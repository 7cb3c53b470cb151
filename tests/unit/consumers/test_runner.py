"""What probes and Prometheus hear of a writer."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater.consumers.health_server import HealthServer
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.runner import Runner
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events.avro import Codec
from headwater.lineage.bulk import BusPartition, DeadLetterReason, EventRows, MergeResult, WriteBatch
from headwater.lineage.sql.errors import StoreDataError
from headwater.testing.examples import EXAMPLES

pytestmark = pytest.mark.slow

WHERE = BusPartition("cluster", "topic", 0)


def get(serving: HealthServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{serving.port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


class Scripted:
    """A source of two events, and a store that says what it is asked to."""

    kind = topic = "log"

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.done_up_to: dict[BusPartition, int] = {}
        self.merged: list[WriteBatch] = []
        self._left = [BusRecord(Codec().encode(each), WHERE, number, 7) for number, each in enumerate(EXAMPLES[:2])]

    def poll(self, most: int, timeout: float) -> SourceBatch:
        records, self._left = tuple(self._left[:1]), self._left[1:]
        return SourceBatch(records, {each.partition: each.offset + 1 for each in records})

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        self.done_up_to.update(positions)

    def rest(self) -> None: ...

    def lag(self) -> int:
        return len(self._left)

    def close(self) -> None: ...

    def epoch(self) -> int:
        return 0

    def merge(self, work: WriteBatch) -> MergeResult:
        if self.troubles:
            raise self.troubles.pop(0)
        self.merged.append(work)
        return MergeResult(len(work.rows))

    def merge_events(self, events: Sequence[EventRows], work: WriteBatch) -> MergeResult:
        """Refuses all."""
        letters = tuple(each.dead_letter("no such number") for each in events)
        return replace(self.merge(replace(work, dead_letters=letters)), refused=letters)


def runner(script: Scripted) -> Runner:
    return Runner(script, StorePipeline({"": script}, "g", "log", "log"), until_end=True)  # type: ignore[dict-item,arg-type]


def test_probes_say_how_it_is() -> None:
    vitals = WriterMetrics()
    with HealthServer(vitals, "127.0.0.1", 0) as serving:
        assert get(serving, "/live") == (200, "alive\n")
        assert get(serving, "/ready") == (503, "not yet\n")
        vitals.has_polled = True
        assert get(serving, "/ready") == (200, "ready\n")
        vitals.waiting_for = "the store: nobody answers"
        assert get(serving, "/ready") == (503, "the store: nobody answers\n")
        vitals.waiting_for, vitals.outage = None, "the topic: all brokers are down"
        assert get(serving, "/ready") == (503, "the topic: all brokers are down\n")
        assert get(serving, "/else")[0] == 404


def test_metrics_are_what_prometheus_reads() -> None:
    vitals = WriterMetrics(events=5, lag=3, stored_until=1)
    vitals.record_merge(0.02)
    vitals.record_merge(99)
    with HealthServer(vitals, "127.0.0.1", 0) as serving:
        _, text = get(serving, "/metrics")
    samples = {
        (each.name, each.labels.get("le")): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }
    assert samples["headwater_writer_events_total", None] == 5
    assert samples["headwater_writer_lag", None] == 3
    assert samples["headwater_writer_lag_seconds", None] > 1
    assert samples["headwater_writer_merge_seconds_bucket", "0.05"] == 1
    assert samples["headwater_writer_merge_seconds_bucket", "+Inf"] == 2


def test_an_address_that_is_taken_is_reported() -> None:
    with HealthServer(WriterMetrics(), "127.0.0.1", 0) as serving, pytest.raises(ConfigurationError, match="free it"):
        HealthServer(WriterMetrics(), "127.0.0.1", serving.port)


def test_what_is_away_is_waited_for_and_nothing_is_passed_over() -> None:
    script = Scripted(TransientError("nobody answers"), TransientError("nobody answers"))
    running = runner(script)
    asyncio.run(running.run())
    assert script.done_up_to == {WHERE: 2}
    assert [[each.next for each in work.offsets] for work in script.merged] == [[1], [2]]
    assert (running.metrics.waits, running.metrics.events, running.metrics.is_ready) == (2, 2, True)


def test_what_the_database_refuses_is_looked_for_event_by_event() -> None:
    script = Scripted(StoreDataError("out of range"))
    running = runner(script)
    asyncio.run(running.run())
    assert script.done_up_to == {WHERE: 2}
    (letter,) = script.merged[0].dead_letters
    assert (letter.reason, letter.error, letter.position) == (DeadLetterReason.REFUSED, "no such number", 0)
    assert letter.event == EXAMPLES[0].event_id
    assert not script.merged[0].rows
    assert script.merged[1].rows
    assert running.metrics.dead_letters == 1


def test_what_somebody_has_to_change_ends_it_with_nothing_said_to_be_done() -> None:
    script = Scripted(TerminalError("the store is another version's"))
    with pytest.raises(TerminalError):
        asyncio.run(runner(script).run())
    assert script.done_up_to == {}


def test_it_can_be_stopped_while_it_waits() -> None:
    script = Scripted(*[TransientError("nobody answers")] * 10_000)

    async def stopped() -> Runner:
        running = runner(script)
        task = asyncio.create_task(running.run())
        while running.metrics.waiting_for is None and not task.done():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        running.stop()
        await asyncio.wait_for(task, 60)
        return running

    running = asyncio.run(stopped())
    assert running.metrics.waiting_for == "the store: nobody answers"
    assert script.done_up_to == {}


class Busy(Scripted):
    """Has one event after the other, until it is asked how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = self.polls = 0

    def poll(self, most: int, timeout: float) -> SourceBatch:
        assert self.polls < 100_000, "nobody asks"
        self.polls += 1
        if self.looks:
            return SourceBatch()
        return SourceBatch((self._left[0]._replace(offset=self.polls),), {WHERE: self.polls + 1})

    def lag(self) -> int:
        self.looks += 1
        return 0


def test_how_much_there_is_is_asked_while_the_bus_is_never_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its lag would be unknown just when it falls behind."""
    monkeypatch.setattr("headwater.consumers.writer.runner._LOOK_SECONDS", 0.0)
    script = Busy()
    asyncio.run(runner(script).run())
    assert script.merged


def test_what_has_come_does_not_wait_for_a_look_at_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look asks the broker for each partition."""
    monkeypatch.setattr("headwater.consumers.writer.runner._LOOK_SECONDS", 1e12)
    script = Watched()
    asyncio.run(runner(script).run())
    assert script.looks[0] == 2


class Watched(Scripted):
    """Notes after how many transactions it is asked how much there is."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[int] = []

    def lag(self) -> int:
        self.looks.append(len(self.merged))
        return super().lag()
