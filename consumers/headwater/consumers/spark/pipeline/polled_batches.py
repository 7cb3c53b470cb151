"""Forms micro-batches of a bus that is asked what it has: a topic, a local log, an archive, whatever a replay reads.

Only the store's offsets say how far the bus was read. Interrupted, the next run goes on there; a store from a backup
gets what it lacks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from headwater.consumers.replay.ranges import BusRange, Positions, RangeSource
from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources import OffsetGap
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS, END_CHECK_SECONDS
from headwater.consumers.spark.pipeline.batch_writer import (
    BatchSettings,
    OrderedBatches,
    PipelineFigures,
    RangesByPartition,
    SparkBatch,
)
from headwater.consumers.spark.pipeline.frames import KafkaSettings, frame_of
from headwater.consumers.spark.pipeline.kafka_topic import TopicRecreated
from headwater.consumers.spark.pipeline.reading_tasks import BusReading
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import BulkLineageMeta, BusPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG: Final = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 0.2
WriterMaker: TypeAlias = Callable[[BusReading, BatchSettings, PipelineFigures], OrderedBatches]


class PolledBus(Protocol):
    """A bus that is asked what it has."""

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        """Return the offsets that can be read now. Raises TopicRecreated once if they are those of another topic."""
        ...


class PolledBatches:
    """Has the micro-batches of a bus written, those of a topic in their order."""

    def __init__(
        self,
        bus: PolledBus,
        frame_of_ranges: Callable[[RangesByPartition], DataFrame],
        make_writer: Callable[[str, str], OrderedBatches],
        *,
        most_records: int,
        is_first_hand: bool = False,
    ) -> None:
        """`make_writer` gets the cluster and the topic of partitions. Drivers write to what is `is_first_hand`, so that
        a store that has all of it is complete until now; an archive may lack what they have sent last."""
        self._bus = bus
        self._frame_of = frame_of_ranges
        self._make_writer = make_writer
        self._writers: dict[tuple[str, str], OrderedBatches] = {}
        self._most_records = most_records
        self._is_first_hand = is_first_hand
        self._shortened: dict[BusPartition, int] = {}
        """Where partitions are read that end before the store's offsets: the bus lost their ends."""

    def run(self, is_stopping: Callable[[], bool], *, interval: float | None) -> None:
        """Run until stopped, with a batch each `interval` seconds; with None until the end that the bus has now."""
        with suppress(StopRequested):
            while not self._has_ended(is_stopping, interval):
                pass

    def _has_ended(self, is_stopping: Callable[[], bool], interval: float | None) -> bool:
        """Run. Return False if the topic was made anew, and has to be read from its beginning."""
        try:
            self._run(is_stopping, interval)
        except TopicRecreated as e:
            _LOG.warning("%s", e)
            self._record_recreation(e.seen)
            return False
        return True

    def _run(self, is_stopping: Callable[[], bool], interval: float | None) -> None:
        asked, there = wall_micros() - CLOCK_SKEW_MICROS, self._bus.ranges()
        look_at = time.monotonic() + END_CHECK_SECONDS
        while not is_stopping():
            began = time.monotonic()
            is_done = self._write_next(there)
            if is_done and (interval is None or began >= look_at):
                self._record_ends(there, asked)
                look_at = began + END_CHECK_SECONDS
            if interval is None:
                if is_done:
                    return
                continue
            while is_done and not is_stopping():
                time.sleep(_PAUSE_SECONDS)
                is_done = time.monotonic() - began < interval
            asked, there = wall_micros() - CLOCK_SKEW_MICROS, self._bus.ranges()

    def write_until(self, last: RangesByPartition) -> Iterator[None]:
        """Write what comes before these ends, a batch of each topic each time. Raises StopRequested if stopped."""
        is_done = False
        while not is_done:
            is_done = self._write_next(last)
            yield

    def _write_next(self, there: RangesByPartition) -> bool:
        """Write one batch of each topic. Return whether nothing is left of what is there."""
        done = [self._write_topic(*each) for each in sorted(_by_topic(there).items())]
        return all(done)

    def _write_topic(self, topic: tuple[str, str], available: RangesByPartition) -> bool:
        writer = self._writer(topic, available)
        stored = writer.stored_offsets()
        writer.record_gaps([gap for each in available for gap in self._lost(each, available[each], stored.get(each))])
        left = {
            each: BusRange(first, found.end)
            for each, found in available.items()
            if (first := max(found.first, self._shortened.get(each, stored.get(each, 0)))) < found.end
        }
        if not left:
            return True
        share = max(1, self._most_records // len(left))
        batch = {each: BusRange(found.first, min(found.end, found.first + share)) for each, found in left.items()}
        if not writer.write(SparkBatch(batch, partial(self._frame_of, batch), self._bus.ranges)):
            return False
        self._shortened.update((each, found.end) for each, found in batch.items() if each in self._shortened)
        return batch == left

    def _lost(self, where: BusPartition, available: BusRange, stored: int | None) -> Iterator[OffsetGap]:
        """Yield what expired before it was read, or was lost with the end of a partition, which counts on there."""
        if stored is None or stored <= self._shortened.get(where, -1):
            self._shortened.pop(where, None)
        elif where in self._shortened:
            return
        elif stored < available.first:
            yield OffsetGap(where, stored, available.first, GapReason.LOG_EXPIRED)
        elif stored > available.end:
            end = self._bus.ranges()[where].end  # others of the group may have read what came meanwhile
            if stored > end:
                self._shortened[where] = end
                yield OffsetGap(where, end, stored, GapReason.LOG_RECREATED)

    def _writer(self, topic: tuple[str, str], available: RangesByPartition) -> OrderedBatches:
        if topic not in self._writers:
            self._writers[topic] = self._make_writer(*topic)
            self._writers[topic].begin(list(available) if self._is_first_hand else [])
        return self._writers[topic]

    def _record_ends(self, last: RangesByPartition, asked: int) -> None:
        if self._is_first_hand:
            for topic, available in _by_topic(last).items():
                self._writer(topic, available).record_ends(available, asked)

    def _record_recreation(self, seen: RangesByPartition) -> None:
        """Record what is lost of the topic that is gone. What came to it last, nobody can say."""
        for topic, available in _by_topic(seen).items():
            writer = self._writer(topic, available)
            stored, gaps = writer.stored_offsets(), list[OffsetGap]()
            for each, found in available.items():
                at = stored.get(each, 0)
                gaps.append(OffsetGap(each, at, found.end if found.end > at else None, GapReason.LOG_RECREATED))
            writer.record_gaps(gaps)


class SparkRangeReader:
    """Has Spark's tasks store ranges of sources: a replay by Spark, into a database or a lake."""

    def __init__(
        self,
        spark: SparkSession,
        meta: BulkLineageMeta,
        make_writer: WriterMaker,
        settings: BatchSettings,
        *,
        kafka: KafkaSettings,
        most_invalid: int,
    ) -> None:
        """`meta` is the store that `make_writer` writes into."""
        self._spark = spark
        self._meta = meta
        self._make_writer = make_writer
        self._settings = settings
        self._kafka = kafka
        self._most_invalid = most_invalid

    def read(self, source: RangeSource, end: Positions, report: Callable[[int], None]) -> int:
        """Store what a source has from the store's offsets up to these. Return the number of events. `report` gets that
        number after each batch. Raises StopRequested where it is stopped."""
        figures = PipelineFigures()

        def make(cluster: str, topic: str) -> OrderedBatches:
            bus = BusReading(source.kind, cluster, topic, source.topic, self._most_invalid)
            return self._make_writer(bus, self._settings, figures)

        def frame(ranges: RangesByPartition) -> DataFrame:
            return frame_of(self._spark, source, ranges, self._kafka)

        batches = PolledBatches(source, frame, make, most_records=self._settings.most_records)
        there = source.ranges()
        wanted = {
            where: BusRange(there[where].first, min(last, there[where].end))
            for where, last in end.items()
            if where in there
        }
        for _ in batches.write_until(wanted):
            report(figures.events)
        return figures.events


def _by_topic(available: RangesByPartition) -> dict[tuple[str, str], dict[BusPartition, BusRange]]:
    found: dict[tuple[str, str], dict[BusPartition, BusRange]] = {}
    for partition, each in available.items():
        found.setdefault(partition[:2], {})[partition] = each
    return found
