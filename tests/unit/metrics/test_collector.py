"""What a bus reports, read as Prometheus reads it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry
from prometheus_client.samples import Sample

from headwater.errors import TransientError
from headwater.events.health import Gap, GapReason
from headwater.listeners.bus import Bus
from headwater.listeners.bus.report import ShipperReport
from headwater.listeners.metrics.collector import BusCollector
from headwater.spi import ListenerContext, RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import QUICK, Hearing, Taking, bus_of, emit_all
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

DOC = Path(__file__).parents[3] / "docs" / "metrics.md"


class Scraped:
    """Samples by name and labels."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._values = {(each.name, tuple(sorted(each.labels.items()))): each.value for each in samples}

    def __call__(self, name: str, **labels: str) -> float:
        return self._values[(f"headwater_{name}", tuple(sorted(labels.items())))]

    def names(self) -> set[str]:
        return {name for name, _ in self._values}


def registry_of(bus: Bus) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BusCollector(bus.report, info={"application": "application_1"}))
    return registry


def scrape(bus: Bus) -> Scraped:
    text = generate_latest(registry_of(bus)).decode()
    return Scraped(sample for family in text_string_to_metric_families(text) for sample in family.samples)


class Holding(Taking):
    """Answers once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        return self.flush(0)

    def flush(self, timeout: float) -> SpoolPosition | None:
        return self.records[-1].position if self.records and self.may_answer.is_set() else None

    def close(self, timeout: float) -> bool:
        return self.may_answer.is_set()


def test_events_on_their_way_are_counted(tmp_path: Path) -> None:
    holding, hearing = Holding(), Hearing()
    with bus_of(tmp_path, {"holding": lambda _: holding, "hearing": lambda _: hearing}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: len(holding.records) == len(emitted) == len(hearing.events))
        before = scrape(bus)
        holding.may_answer.set()
        assert bus.flush(60)
        after = scrape(bus)
    families = {
        family: sum(event.family.value == family for event in emitted) for family in ("CATALOG", "JOB", "ADMIN")
    }
    assert {family: before("events_emitted_total", family=family) for family in families} == families
    assert before("events_spooled_total") == before("append_seconds_count") == len(emitted)
    assert before("emit_seconds_count") == len(DRAFTS)
    assert before("append_seconds_sum") < before("emit_seconds_sum")
    assert before("listener_handed_events_total", listener="holding") == len(emitted)
    assert before("listener_hand_off_seconds_count", listener="holding") == len(emitted)
    assert before("listener_acknowledged_events_total", listener="holding") == 0
    assert before("listener_lag_events", listener="holding") == len(emitted)
    assert before("listener_lag_seconds", listener="holding") > 0
    assert after("listener_acknowledged_events_total", listener="holding") == len(emitted)
    assert after("listener_acknowledge_seconds_count", listener="holding") == len(emitted)
    assert after("listener_acknowledge_seconds_sum", listener="holding") >= before(
        "listener_hand_off_seconds_sum", listener="holding"
    )
    assert after("listener_lag_events", listener="holding") == after("listener_lag_seconds", listener="holding") == 0
    assert after("listener_acknowledged_events_total", listener="hearing") == len(emitted)
    assert after("listener_state", listener="holding", state="running") == 1
    assert after("listener_state", listener="holding", state="pausing") == 0


def test_what_comes_again_is_acknowledged_once(tmp_path: Path) -> None:
    class Twice(Taking):
        failed = 0

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            if self.failed < 3:
                self.failed += 1
                raise TransientError("not yet")
            return batch.end

    with bus_of(tmp_path, {"twice": lambda _: Twice()}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        scraped = scrape(bus)
    assert scraped("listener_handed_events_total", listener="twice") > len(emitted)
    assert scraped("listener_hand_off_seconds_count", listener="twice") == len(emitted)
    assert scraped("listener_acknowledged_events_total", listener="twice") == len(emitted)
    assert scraped("listener_errors_total", listener="twice", cause="TransientError") == 3


@pytest.mark.slow
def test_trouble_shows_by_its_cause(tmp_path: Path) -> None:
    def make(context: ListenerContext) -> Holding:
        context.report_problem("transport", 'no route to "broker"\n')
        context.report_problem('odd "cause"\\', "of somebody's own")
        return Holding()

    with bus_of(tmp_path, {"away": make}) as bus:
        emit_all(bus, DRAFTS[:1])
        until(lambda: bus.report().listeners[0].received)
        scraped = scrape(bus)
    assert scraped("listener_errors_total", listener="away", cause="transport") == 1
    assert scraped("listener_errors_total", listener="away", cause='odd "cause"\\') == 1
    assert scraped("listener_state", listener="away", state="pausing") == 1


def test_a_plain_listener_that_is_too_slow_misses_events(tmp_path: Path) -> None:
    class Stuck(Hearing):
        may_go_on = threading.Event()

        def on_event(self, event: object) -> None:
            self.may_go_on.wait(60)

    with bus_of(tmp_path, {"stuck": lambda _: Stuck()}, options=replace(QUICK, queue_count=2)) as bus:
        emit_all(bus, DRAFTS[:1])
        until(lambda: bus.report().listeners[0].received == 1)
        assert scrape(bus)("listener_lag_seconds", listener="stuck") > 0, "of the one that it receives just now"
        emit_all(bus, DRAFTS[:5])
        scraped = scrape(bus)
        Stuck.may_go_on.set()
    assert scraped("listener_missed_events_total", listener="stuck") == 3
    assert scraped("listener_lag_events", listener="stuck") == 3
    assert scraped("listener_lag_seconds", listener="stuck") > 0


def test_the_lag_of_one_that_was_handed_nothing_yet_has_an_age(tmp_path: Path) -> None:
    may_be_made = threading.Event()

    def slow(_: ListenerContext) -> Taking:
        may_be_made.wait(60)
        return Taking()

    with bus_of(tmp_path, {"slow": slow}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: bus.report().listeners[0].lag_seconds > 0.2)
        assert bus.report().listeners[0].lag == len(emitted)
        may_be_made.set()
        assert bus.flush(60)
        assert bus.report().listeners[0].lag_seconds == 0


class Refusing(Taking):
    """Takes nothing while it is asked not to."""

    may_take = False

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        if not self.may_take:
            raise TransientError("not now")
        return super().handle(batch)

    def close(self, timeout: float) -> bool:
        return self.may_take


def test_what_a_dead_driver_left_counts_where_it_is_delivered(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"mine": lambda _: Refusing()}) as bus:
        left = emit_all(bus, DRAFTS)
        assert not bus.stop(0.5)
    instances: list[Taking] = []

    def make(_: ListenerContext) -> Taking:
        instances.append(Taking())
        return instances[-1]

    with bus_of(tmp_path, {"mine": make}) as bus:
        assert bus.ship(60) == 1
        scraped = scrape(bus)
    delivered = sum(len(each.records) for each in instances)
    assert delivered >= len(left)
    assert scraped("dead_spools_shipped_total") == 1
    assert scraped("listener_acknowledged_events_total", listener="mine") == delivered
    assert scraped("listener_hand_off_seconds_count", listener="mine") == 0, (
        "they waited for a driver, not for this bus"
    )


def test_what_the_limit_of_the_spool_took_is_lost(tmp_path: Path) -> None:
    listener = Refusing()
    keys = {"spool.max.bytes": "65536"}
    with bus_of(tmp_path, {"mine": lambda _: listener}, keys) as bus:
        emitted = emit_all(bus, DRAFTS * 20)
        until(lambda: bus.report().intake.spool_bytes > 0)
        listener.may_take = True
        assert bus.flush(60)
        scraped = scrape(bus)
        got = {each.event_id for each in listener.records}
    missing = sum(event.event_id not in got for event in emitted)
    assert missing > 0
    assert scraped("listener_lost_events_total", listener="mine") == missing
    assert scraped("gap_missed_events_total", reason="SPOOL_LIMIT") == missing


def test_gaps_say_what_capture_dropped(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"taking": lambda _: Taking()}) as bus:
        bus.emit(Gap(reason=GapReason.QUEUE_OVERFLOW, missed=7))
        bus.emit(Gap(reason=GapReason.QUEUE_OVERFLOW, missed=5))
        bus.emit(Gap(reason=GapReason.NOT_SUPPORTED))
        scraped = scrape(bus)
    assert scraped("gaps_emitted_total", reason="QUEUE_OVERFLOW") == 2
    assert scraped("gap_missed_events_total", reason="QUEUE_OVERFLOW") == 12
    assert scraped("gaps_emitted_total", reason="NOT_SUPPORTED") == 1


def test_many_threads_lose_no_count(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"taking": lambda _: Taking()}) as bus:
        threads = [threading.Thread(target=emit_all, args=(bus, DRAFTS[:20] * 5)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bus.flush(60)
        report = bus.report()
    assert report.emitted == report.intake.append.count == report.listeners[0].acknowledged >= 400
    assert report.intake.emit.count == 400


def test_openmetrics_reads_it_too(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"taking": lambda _: Taking()}) as bus:
        emit_all(bus, DRAFTS)
        assert bus.flush(60)
        text = openmetrics.generate_latest(registry_of(bus)).decode()  # type: ignore[no-untyped-call]
    families = list(openmetrics_parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    assert {"headwater_events_emitted", "headwater_append_seconds"} <= {family.name for family in families}
    assert all(family.documentation.endswith(".") for family in families)


def test_the_page_lists_every_metric(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"taking": lambda _: Taking()}) as bus:
        report = replace(bus.report(), shipper=ShipperReport(pid=4711, restarts=1))
        families = list(BusCollector(lambda: report, info={"application": "a"}).collect())
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    names = {"headwater_info" if name == "headwater" else name for name in names}
    listed = re.findall(r"^\| `(headwater_\w+)` \| (\w+)[^|]*\| ([^|]*)\|", DOC.read_text(), re.MULTILINE)
    assert {name for name, _, _ in listed} == names
    kinds = {family.name: family.type for family in families}
    for name, kind, _ in listed:
        family = "headwater" if name == "headwater_info" else name.removesuffix("_total")
        assert kind == {"info": "gauge"}.get(kinds[family], kinds[family])


@pytest.mark.parametrize("labels", [{}, {"application": "application_1"}])
def test_labels_stand_on_every_sample(tmp_path: Path, labels: dict[str, str]) -> None:
    with bus_of(tmp_path, {"taking": lambda _: Taking()}) as bus:
        families = list(BusCollector(bus.report, info={"application": "application_1"}, labels=labels).collect())
    samples = [sample for family in families if family.name != "headwater" for sample in family.samples]
    assert samples
    assert all(("application" in sample.labels) == bool(labels) for sample in samples)
