"""Counts what became of a batch, and logs dead letters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from headwater.consumers.sources import EventSource, SourceBatch
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.pipeline import BatchResult
from headwater.lineage.bulk import DeadLetter, StoreSetBack

_LOG: Final = logging.getLogger(__name__)
_MAX_LOGGED: Final = 10
"""Log at most this many dead letters of a batch one by one."""
_MAX_ERROR_LENGTH: Final = 300


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
