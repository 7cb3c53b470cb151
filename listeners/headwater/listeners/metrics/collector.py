"""The bus's report as metrics. It is made when somebody asks: emitting an event costs no more than its counters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from headwater.events.envelope import EventFamily
from headwater.listeners.bus.durations import DurationHistogram
from headwater.listeners.bus.report import BusReport, IntakeReport, ListenerReport, ListenerState

ReportFunction: TypeAlias = Callable[[], "BusReport | None"]
_FAMILY_LABELS: Final = tuple(family.value for family in EventFamily if family is not EventFamily.UNKNOWN)


class BusCollector(Collector):
    """Yields what a bus reports when it is asked; nothing where there is no bus."""

    def __init__(
        self, report: ReportFunction, *, info: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        """`info` is given once, as labels of `headwater_info`; `labels` stand on every sample."""
        self._report = report
        self._info = dict(info or {})
        self._labels = dict(labels or {})

    def collect(self) -> Iterator[Metric]:
        report = self._report()
        if report is None:
            return
        if self._info:
            yield InfoMetricFamily("headwater", "The driver that these are the metrics of.", value=self._info)
        for metric in itertools.chain(
            _intake_metrics(report.intake, report), _listener_metrics(report.listeners), _histograms(report.listeners)
        ):
            yield self._labelled(metric)

    def describe(self) -> Iterator[Metric]:
        """Nothing is asked of the bus to register this."""
        return iter(())

    def _labelled(self, metric: Metric) -> Metric:
        if self._labels:
            metric.samples = [sample._replace(labels={**self._labels, **sample.labels}) for sample in metric.samples]
        return metric


def _intake_metrics(intake: IntakeReport, report: BusReport) -> Iterator[Metric]:
    emitted = {**dict.fromkeys(_FAMILY_LABELS, 0), **intake.emitted}
    yield _counter(
        "headwater_events_emitted", "Events that were emitted, with a place in the order.", "family", emitted
    )
    yield CounterMetricFamily("headwater_events_spooled", "Events appended to the spool.", intake.append.count)
    words = "Events that the spool didn't take: its disk is full, or fails. A Gap says so."
    yield CounterMetricFamily("headwater_events_refused", words, report.refused)
    words = "What no event could be made of: a fault of headwater. A Gap says so."
    yield _counter("headwater_events_broken", words, "kind", intake.broken)
    yield _counter("headwater_gaps_emitted", "Gaps that were emitted: something may be missing.", "reason", intake.gaps)
    words = (
        "Events that Gaps say are missing, as far as they know how many: what capture's queues and the spool dropped."
    )
    yield _counter("headwater_gap_missed_events", words, "reason", intake.missed)
    yield GaugeMetricFamily("headwater_spool_bytes", "Size of this driver's spool.", intake.spool_bytes)
    words = "Spools of dead drivers that this one delivered."
    yield CounterMetricFamily("headwater_dead_spools_shipped", words, report.shipped)
    if report.shipper is not None:
        words = "1 while the process runs in which listeners with native clients work."
        yield GaugeMetricFamily("headwater_shipper_up", words, float(report.shipper.pid is not None))
        words = "How often that process died and was started again."
        yield CounterMetricFamily("headwater_shipper_restarts", words, report.shipper.restarts)
    words = "Emitting one event, on the thread that emits it: redaction, encoding and the append."
    yield _histogram("headwater_emit_seconds", words, {(): intake.emit})
    words = "Writing one event to the spool, on the thread that emits it."
    yield _histogram("headwater_append_seconds", words, {(): intake.append})


def _listener_metrics(listeners: tuple[ListenerReport, ...]) -> Iterator[Metric]:
    words = "1 for the state that the listener is in."
    state = GaugeMetricFamily("headwater_listener_state", words, labels=("listener", "state"))
    words = "What the listener raised, by type, and the problems that it reported, by cause."
    errors = CounterMetricFamily("headwater_listener_errors", words, labels=("listener", "cause"))
    calls = SummaryMetricFamily("headwater_listener_call_seconds", "Calls of the listener.", labels=("listener",))
    for one in listeners:
        for possible in ListenerState:
            state.add_metric((one.name, possible.value), float(one.state is possible))
        for cause, count in one.errors.items():
            errors.add_metric((one.name, cause), count)
        calls.add_metric((one.name,), one.calls, one.seconds)
    yield from (state, errors, calls)
    yield from _counters(listeners)
    yield from _gauges(listeners)


def _counters(listeners: tuple[ListenerReport, ...]) -> Iterator[Metric]:
    for name, words, value in _COUNTERS:
        counter = CounterMetricFamily(f"headwater_listener_{name}", words, labels=("listener",))
        for one in listeners:
            counter.add_metric((one.name,), value(one))
        yield counter


def _gauges(listeners: tuple[ListenerReport, ...]) -> Iterator[Metric]:
    for name, words, value in _GAUGES:
        gauge = GaugeMetricFamily(f"headwater_listener_{name}", words, labels=("listener",))
        for one in listeners:
            gauge.add_metric((one.name,), value(one))
        yield gauge


_Numbers: TypeAlias = "tuple[tuple[str, str, Callable[[ListenerReport], float]], ...]"
_COUNTERS: Final[_Numbers] = (
    (
        "handed_events",
        "Events delivered to the listener, again where they were delivered again.",
        lambda one: one.received,
    ),
    (
        "acknowledged_events",
        "Events that the listener answered for, or took without failing; those of dead drivers too.",
        lambda one: one.acknowledged,
    ),
    (
        "missed_events",
        "Events that a plain listener didn't get, because it was too slow or suspended.",
        lambda one: one.missed,
    ),
    (
        "lost_events",
        "Events, at most, that a durable listener lost: the spool reached its limit, or is damaged.",
        lambda one: one.lost,
    ),
    (
        "dead_letters",
        "Events that a durable listener refused for ever: they lie in its dead letters.",
        lambda one: one.dead_letters,
    ),
)
_GAUGES: Final[_Numbers] = (
    ("lag_events", "Events that the listener hasn't dealt with.", lambda one: one.lag),
    ("lag_seconds", "Age of the oldest event that the listener hasn't dealt with.", lambda one: one.lag_seconds),
)


def _histograms(listeners: tuple[ListenerReport, ...]) -> Iterator[Metric]:
    yield _histogram(
        "headwater_listener_hand_off_seconds",
        "From the append of an event to its first delivery to the listener.",
        {(one.name,): one.received_after for one in listeners},
        ("listener",),
    )
    yield _histogram(
        "headwater_listener_acknowledge_seconds",
        "From the append of an event until the listener answered for it.",
        {(one.name,): one.acknowledged_after for one in listeners},
        ("listener",),
    )


def _counter(name: str, words: str, label: str, counts: Mapping[str, float]) -> Metric:
    counter = CounterMetricFamily(name, words, labels=(label,))
    for value, count in counts.items():
        counter.add_metric((value,), count)
    return counter


def _histogram(
    name: str, words: str, values: Mapping[tuple[str, ...], DurationHistogram], labels: tuple[str, ...] = ()
) -> Metric:
    histogram = HistogramMetricFamily(name, words, labels=labels)
    for label_values, durations in values.items():
        bounds = [*map(repr, durations.bounds), "+Inf"]
        buckets = list(zip(bounds, map(float, itertools.accumulate(durations.counts)), strict=True))
        histogram.add_metric(label_values, buckets, durations.seconds)
    return histogram
