"""The metrics and health of a writer, for probes and Prometheus, and its log of what became of batches."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.consumers.metrics import Histogram, LoopMetrics, labelled_lines, metric_lines
from headwater.consumers.sources import EventSource, SourceBatch
from headwater.consumers.writer.pipeline import BatchResult
from headwater.lineage.bulk import DeadLetter, StoreSetBack

_LOG: Final = logging.getLogger(__name__)
_MAX_LOGGED: Final = 10
"""Log at most this many dead letters of a batch one by one."""
_MAX_ERROR_LENGTH: Final = 300
_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS: Final = (1, 10, 100, 1_000, 5_000, 10_000, 25_000, 50_000, 100_000)


@dataclass
class WriterMetrics(LoopMetrics):
    """Of a writer."""

    events: int = 0
    """Events that are stored, or among the dead letters."""
    rows: int = 0
    batches: int = 0
    dead_letters: int = 0
    retries: int = 0
    """Transactions that were repeated after a conflict."""
    waits: int = 0
    """How often the writer had to wait for something."""
    stored_until: int | None = None
    """The append time of the last stored record, in microseconds."""
    dead_letters_by: Counter[str] = field(default_factory=Counter)
    """By reason."""
    set_backs: int = 0
    """How often the store turned out to have lost transactions."""
    instants: int = 0
    """Completed instants of several processes."""
    deaths: int = 0
    """Processes that ended by themselves, and were begun anew."""
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    """Processor time of the processes, by their names."""
    cache_hits: int = 0
    """Rows that were omitted because the store has them."""
    rebalances: int = 0
    partitions: int | None = None
    """Partitions that this writer reads."""
    flush_seconds: Histogram = field(default_factory=lambda: Histogram(_SECONDS))
    flush_rows: Histogram = field(default_factory=lambda: Histogram(_ROWS))

    def record_merge(self, seconds: float, rows: int | None = None) -> None:
        """Record how long a transaction took, and how many rows it merged."""
        self.flush_seconds.add(seconds)
        if rows is not None:
            self.flush_rows.add(rows)

    def record_dead_letters(self, dead_letters: Sequence[DeadLetter]) -> None:
        self.dead_letters += len(dead_letters)
        self.dead_letters_by.update(each.reason.value for each in dead_letters)

    def record_wait(self, what: str, why: str) -> None:
        super().record_wait(what, why)
        self.waits += 1

    def figures(self) -> dict[str, int]:
        """Return totals for people, at the end."""
        return {name: getattr(self, name) for name in ("batches", "events", "rows", "dead_letters", "retries", "waits")}

    def render(self) -> Iterator[str]:
        """Yield the metrics in Prometheus' text format."""
        for name, text in _COUNTERS.items():
            yield from metric_lines(f"headwater_writer_{name}_total", "counter", text, getattr(self, name))
        for name, (label, text) in _BY.items():
            yield from labelled_lines(f"headwater_writer_{name}_total", label, text, getattr(self, name))
        yield from metric_lines("headwater_writer_ready", "gauge", "Whether bus and store answer.", int(self.is_ready))
        if self.partitions is not None:
            yield from metric_lines(
                "headwater_writer_partitions", "gauge", "Partitions that it reads.", self.partitions
            )
        yield from self._lag()
        yield from self.flush_seconds.render("headwater_writer_merge_seconds", "Time of a transaction.")
        yield from self.flush_rows.render("headwater_writer_merge_rows", "Rows of a transaction.")

    def _lag(self) -> Iterator[str]:
        if self.lag is not None:
            yield from metric_lines("headwater_writer_lag", "gauge", "Records not yet read.", self.lag)
        if self.stored_until is not None:
            age = time.time() - self.stored_until / 1_000_000
            text = "Seconds since what was stored last came to the bus."
            yield from metric_lines("headwater_writer_lag_seconds", "gauge", text, f"{age if self.lag else 0:.3f}")


_COUNTERS: Final = {
    "polled": "Events taken from the bus.",
    "events": "Events that are stored, or among the dead letters.",
    "rows": "Rows merged, of different keys in each transaction.",
    "batches": "Transactions.",
    "dead_letters": "Events that couldn't be stored.",
    "retries": "Transactions repeated after a conflict.",
    "waits": "Times that the writer waited for the bus or the store.",
    "rebalances": "Rebalances of the consumer group.",
    "set_backs": "Times that the store had lost its newest rows, and events were read again.",
    "instants": "Completed instants.",
    "deaths": "Processes of the writer that ended by themselves.",
    "cache_hits": "Rows omitted because the store has them.",
}
_BY: Final = {
    "dead_letters_by": ("reason", "Events that couldn't be stored, by reason."),
    "waits_by": ("cause", "Times that the writer waited, by cause."),
    "cpu_seconds": ("process", "Processor time of each process, where there are several."),
}


def record_batch(metrics: WriterMetrics, batch: SourceBatch, result: BatchResult) -> None:
    """Add a stored batch to the metrics, and log its dead letters."""
    for each in result.transactions:
        metrics.record_merge(each.seconds, each.rows)
    metrics.batches += 1
    metrics.events += len(batch.records)
    metrics.rows += result.rows
    metrics.record_dead_letters(result.dead_letters)
    metrics.retries += result.retries
    metrics.cache_hits += result.left_out
    if result.cpu_seconds is not None:
        metrics.instants += bool(batch.records)
        metrics.cpu_seconds.update(result.cpu_seconds)
    times = [each.append_time for each in batch.records if each.append_time]
    metrics.stored_until = max(times, default=metrics.stored_until)
    if batch.records:
        counts = {"events": len(batch.records), "rows": result.rows, "dead_letters": len(result.dead_letters)}
        seconds = round(sum(each.seconds for each in result.transactions), 3)
        _LOG.debug("stored a batch", extra={"headwater": {**counts, "seconds": seconds}})
    log_dead_letters(result.dead_letters)


def record_set_back(metrics: WriterMetrics, error: StoreSetBack) -> None:
    """Count and log that the store was set back."""
    metrics.set_backs += 1
    _LOG.warning("%s; caches are emptied, and the bus is read again from the offsets that the store has now", error)


def record_lag(metrics: WriterMetrics, source: EventSource) -> None:
    """Ask the source how many records are unread. Sources without consumer groups have no partitions to report."""
    metrics.lag = source.lag()
    metrics.rebalances = getattr(source, "rebalances", 0)
    metrics.partitions = getattr(source, "partitions", None)


def log_dead_letters(dead_letters: Sequence[DeadLetter]) -> None:
    """Log the first dead letters of a batch in detail, and the number of the others."""
    for each in dead_letters[:_MAX_LOGGED]:
        fields = {
            "reason": each.reason.value,
            "topic": each.topic_name,
            "partition": each.partition.number,
            "position": each.position,
            "kind": each.kind,
            "error": each.error[:_MAX_ERROR_LENGTH],
        }
        _LOG.warning("a dead letter", extra={"headwater": fields})
    if len(dead_letters) > _MAX_LOGGED:
        more = {"count": len(dead_letters) - _MAX_LOGGED}
        _LOG.warning("and more dead letters of the same batch", extra={"headwater": more})
