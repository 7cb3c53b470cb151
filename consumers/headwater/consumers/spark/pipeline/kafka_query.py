"""From Kafka by Structured Streaming: the batch writer stores each micro-batch, with the checkpoint's offsets.

A checkpoint belongs to one topic, by its id: of a topic that was deleted and made again the new one has a checkpoint of
its own, below the same directory.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.sources import OffsetGap
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS, END_CHECK_SECONDS
from headwater.consumers.spark.pipeline.batch_writer import OrderedBatches
from headwater.consumers.spark.pipeline.jobs import translate_job_error
from headwater.consumers.spark.pipeline.kafka_topic import KafkaTopicClient, TopicDescription
from headwater.consumers.spark.pipeline.ranges import BatchOffsets
from headwater.consumers.spark.pipeline.records import from_kafka, kafka_frame, kafka_options
from headwater.errors import HeadwaterError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1
"""How often a stop is looked for."""
_EARLIEST: Final = -2


class TopicRecreated(HeadwaterError):  # noqa: N818 - no fault
    """The topic was deleted and made again while it was read. No offsets were moved."""


class KafkaQuery:
    """The streaming query over one topic, as long as it has its id."""

    def __init__(
        self,
        spark: SparkSession,
        client: KafkaTopicClient,
        topic: TopicDescription,
        writer: OrderedBatches,
        *,
        group: str,
        settings: Mapping[str, str],
        checkpoint: str,
        most_records: int,
        trigger: Mapping[str, Any],
    ) -> None:
        """`settings` are those of Kafka's Java client; `trigger` are the arguments of Spark's trigger."""
        self._spark = spark
        self._client = client
        self._topic = topic
        self._name = client.name
        self._query_name = f"{group}.{client.name}"
        self._writer = writer
        self._checkpoint = f"{checkpoint.rstrip('/')}/{topic.cluster}-{topic.id}"
        self._most_records = most_records
        self._trigger = dict(trigger)
        self._is_available_now = bool(trigger.get("availableNow"))
        self._failure: BaseException | None = None
        self._options = kafka_options(settings, max(len(topic.partitions), spark.sparkContext.defaultParallelism))
        self._seen: dict[BusPartition, BusRange] = {}

    def run(self, is_stopping: Callable[[], bool]) -> None:
        """Run until the end, or until it is to stop. Raises TopicRecreated if the topic has another id now."""
        self._writer.begin(self._topic.partitions)
        asked = wall_micros() - CLOCK_SKEW_MICROS
        ends = self._client.available(self._topic)
        self._catch_up()
        query = self._start()
        try:
            self._wait(query, is_stopping)
        finally:
            query.stop()
        if self._is_available_now and not is_stopping():
            self.check_topic()
            self._catch_up()
            self._writer.record_ends(ends, asked)

    def _start(self) -> StreamingQuery:
        stream = self._spark.readStream.format("kafka").options(
            **self._options,
            subscribe=self._name,
            startingOffsets=self._starting_offsets(),
            maxOffsetsPerTrigger=str(self._most_records),
        )
        sink = stream.load().writeStream.queryName(self._query_name).foreachBatch(self._write)
        return sink.option("checkpointLocation", self._checkpoint).trigger(**self._trigger).start()

    def _starting_offsets(self) -> str:
        """Return where a new checkpoint begins: where the store is, to read nothing twice."""
        stored = self._writer.stored_offsets()
        begin = {str(each.number): stored.get(each, _EARLIEST) for each in self._topic.partitions}
        return json.dumps({self._name: begin})

    def _wait(self, query: StreamingQuery, is_stopping: Callable[[], bool]) -> None:
        look_at = time.monotonic() + END_CHECK_SECONDS
        while not is_stopping():
            try:
                if query.awaitTermination(_LOOK_SECONDS):
                    return
            except Exception as e:
                raise self._failure or translate_job_error(e) from e
            if time.monotonic() >= look_at and not (self._is_available_now or self._writer.is_busy):
                self._record_ends()
                look_at = time.monotonic() + END_CHECK_SECONDS

    def _record_ends(self) -> None:
        """Record up to when partitions are complete to which nothing comes: they have no micro-batches."""
        self.check_topic()
        self._catch_up()
        until = wall_micros() - CLOCK_SKEW_MICROS
        self._writer.record_ends(self._client.available(self._topic), until)

    def _catch_up(self) -> None:
        """Read again what a store lacks that lost its newest rows: without new events there is no micro-batch."""
        last = self._last_batch()
        if last is not None:
            self._writer.write(CatchUpBatch(self, last))

    def _write(self, frame: DataFrame, number: int) -> None:
        try:
            self._writer.write(KafkaBatch(self, frame, number))
        except BaseException as e:
            self._failure = e
            raise

    def offsets_of(self, number: int) -> BatchOffsets:
        """Return the offsets of a micro-batch by its number, out of the checkpoint."""
        previous = f"offsets/{number - 1}" if number else "sources/0/0"
        first, end = (self._read_offsets(each) for each in (previous, f"offsets/{number}"))
        partitions = {each.number: each for each in self._topic.partitions}
        batch = {
            partitions.get(each) or BusPartition(self._topic.cluster, self._topic.id, each): BusRange(
                first.get(each, 0), last
            )
            for each, last in end.items()
        }
        self._seen = self._client.available(self._topic)
        return BatchOffsets(batch, self._seen)

    def _last_batch(self) -> int | None:
        """Return the number of the last micro-batch that the checkpoint has passed. One that isn't complete is read by
        the query itself."""
        files, place = self._in_checkpoint("commits")
        names = [str(each.getPath().getName()) for each in files.listStatus(place)] if files.exists(place) else []
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _in_checkpoint(self, name: str) -> tuple[Any, Any]:
        """Return the checkpoint's file system, and a path in it."""
        context: Any = self._spark.sparkContext  # pyspark's way into the JVM isn't public
        place = context._jvm.org.apache.hadoop.fs.Path(f"{self._checkpoint}/{name}")  # noqa: SLF001
        return place.getFileSystem(context._jsc.hadoopConfiguration()), place  # noqa: SLF001

    def _read_offsets(self, name: str) -> dict[int, int]:
        files, place = self._in_checkpoint(name)
        stream = files.open(place)
        try:
            context: Any = self._spark.sparkContext
            jvm = context._jvm  # noqa: SLF001
            text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        found = json.loads(str(text).strip().splitlines()[-1]).get(self._name, {})
        return {int(number): offset for number, offset in found.items()}

    def read(self, ranges: Mapping[BusPartition, BusRange]) -> DataFrame:
        """Return the records of ranges that lie before a micro-batch."""
        return kafka_frame(self._spark, self._options, self._name, ranges)

    def check_topic(self) -> None:
        if self._client.topic_id() != self._topic.id:
            _LOG.warning("%s was deleted and made again: the new topic is read from its beginning", self._name)
            raise TopicRecreated(self._name)

    def record_recreation(self) -> None:
        """Record what is lost of the topic that is gone. What came to it last, nobody can say."""
        stored = self._writer.stored_offsets()
        gaps = []
        for partition in self._topic.partitions:
            at = stored.get(partition, 0)
            end = self._seen[partition].end if partition in self._seen else at
            gaps.append(OffsetGap(partition, at, end if end > at else None, GapReason.LOG_RECREATED))
        self._writer.record_gaps(gaps)


class CatchUpBatch:
    """What the checkpoint has passed, up to the end of a micro-batch: normally the store has all of it."""

    def __init__(self, query: KafkaQuery, number: int) -> None:
        self._query = query
        self._number = number

    def offsets(self) -> BatchOffsets:
        found = self._query.offsets_of(self._number)
        passed = {each: BusRange(there.end, there.end) for each, there in found.batch.items()}
        return BatchOffsets(passed, found.available)

    def frame(self, ranges: Mapping[BusPartition, BusRange]) -> DataFrame:
        return self._query.read(ranges)

    def check(self) -> None:
        self._query.check_topic()


class KafkaBatch:
    """One micro-batch of the query."""

    def __init__(self, query: KafkaQuery, frame: DataFrame, number: int) -> None:
        self._query = query
        self._frame = from_kafka(frame)
        self._batch = query.offsets_of(number)
        self._number = number

    def offsets(self) -> BatchOffsets:
        return self._query.offsets_of(self._number)

    def frame(self, ranges: Mapping[BusPartition, BusRange]) -> DataFrame:
        batch = self._batch.batch
        if any(found.first < batch[each].first for each, found in ranges.items()):
            return self._query.read(ranges)
        skipped = [
            f"(partition = {each.number} AND offset < {ranges[each].first if each in ranges else found.end})"
            for each, found in batch.items()
            if each not in ranges or ranges[each].first > found.first
        ]
        return self._frame.where(f"NOT ({' OR '.join(skipped)})") if skipped else self._frame

    def check(self) -> None:
        self._query.check_topic()
