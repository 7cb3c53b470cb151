"""Runs a pipeline in a Spark session: from a bus into a store, until the end or until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from headwater.consumers.replay.archive_range import ArchiveRange
from headwater.consumers.replay.log_range import LogRange
from headwater.consumers.replay.ranges import RangeSource
from headwater.consumers.retrying import StopRequested
from headwater.consumers.spark.pipeline.batch_writer import (
    BatchSettings,
    BatchWriter,
    FrameBatch,
    OrderedBatches,
    PipelineFigures,
)
from headwater.consumers.spark.pipeline.kafka_query import KafkaQuery, TopicRecreated
from headwater.consumers.spark.pipeline.kafka_topic import KafkaTopicClient, TopicDescription
from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
from headwater.consumers.spark.pipeline.lake.tables import LakeTables
from headwater.consumers.spark.pipeline.lake.writer import LakeBatchWriter
from headwater.consumers.spark.pipeline.options import PipelineOptions
from headwater.consumers.spark.pipeline.polled_batches import PolledBatches
from headwater.consumers.spark.pipeline.reading_tasks import BusReading
from headwater.consumers.spark.pipeline.session import require_arrow
from headwater.consumers.spark.pipeline.writing_tasks import StoreWriting
from headwater.errors import ConfigurationError
from headwater.lineage.lake import LakeAddress
from headwater.lineage.store import StoreOptions, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KAFKA: Final = "kafka"


class PipelineRun:
    """One run of a pipeline. `stop` may be called from any thread or signal handler."""

    def __init__(self, spark: SparkSession, options: PipelineOptions) -> None:
        require_arrow()
        self._spark = spark
        self._options = options.checked()
        self._buckets = options.buckets_for(spark)
        self._stop = threading.Event()
        self.figures = PipelineFigures()

    def stop(self) -> None:
        """End soon. A micro-batch that isn't complete is read again by the next run."""
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def run(self) -> PipelineFigures:
        """Run until the end of the bus, or until stopped. TransientErrors mean that a later run may succeed."""
        store = self._options.store
        if isinstance(store, LakeAddress):
            lake = LakeBulkMeta(LakeTables.open(self._spark, store, self._options.patience))
            self._run(partial(LakeBatchWriter, lake, self._options.patience))
            return self.figures
        with open_store(store) as opened:
            writing = StoreWriting(store, self._options.patience)
            self._run(partial(BatchWriter, opened.bulk, writing))
        return self.figures

    def _run(self, make_writer: Callable[..., OrderedBatches]) -> None:
        log, archive = self._options.log, self._options.archive
        if log is not None:
            self._run_polled(LogRange(f"log:{log}", log.expanduser(), dict), make_writer)
        elif archive is not None:
            self._run_polled(ArchiveRange(archive, archive, dict), make_writer)
        else:
            with suppress(StopRequested):
                self._run_kafka(make_writer)

    def _run_polled(self, opened: RangeSource, make_writer: Callable[..., OrderedBatches]) -> None:
        options = self._options
        with closing(opened) as source:

            def make(cluster: str, topic: str) -> OrderedBatches:
                return self._writer(make_writer, self._bus(source.kind, cluster, topic, source.topic))

            is_first_hand = options.log is not None
            batches = PolledBatches(
                self._spark, source, make, most_records=options.most_records, is_first_hand=is_first_hand
            )
            batches.run(self._stop.is_set, interval=options.interval)

    def _run_kafka(self, make_writer: Callable[..., OrderedBatches]) -> None:
        options = self._options
        with closing(KafkaTopicClient(self._spark, options.kafka, options.topic)) as client:
            lost: KafkaQuery | None = None
            while not self._stop.is_set():
                topic = client.describe()
                client.check_times()
                bus = self._bus(KAFKA, topic.cluster, topic.id, options.topic)
                query = self._query(client, topic, self._writer(make_writer, bus))
                try:
                    query.run(self._stop.is_set)
                except TopicRecreated:
                    lost = query
                else:
                    return
                lost.record_recreation()

    def _query(self, client: KafkaTopicClient, topic: TopicDescription, writer: OrderedBatches) -> KafkaQuery:
        options = self._options
        trigger = (
            {"availableNow": True} if options.interval is None else {"processingTime": _duration(options.interval)}
        )
        assert options.checkpoint is not None  # noqa: S101 - `checked` says so
        return KafkaQuery(
            self._spark,
            client,
            topic,
            writer,
            group=options.group,
            settings=options.kafka,
            checkpoint=options.checkpoint,
            most_records=options.most_records,
            trigger=trigger,
        )

    def _bus(self, kind: str, cluster: str, topic: str, name: str) -> BusReading:
        return BusReading(kind, cluster, topic, name, self._options.most_invalid)

    def _writer(self, make_writer: Callable[..., OrderedBatches], bus: BusReading) -> OrderedBatches:
        options = self._options
        settings = BatchSettings(options.group, self._buckets, options.most_records, self._stop.is_set)
        return make_writer(bus, settings, self.figures)


def run_pipeline(spark: SparkSession, options: PipelineOptions) -> PipelineFigures:
    """Read events from a bus into a store, and return what was stored. For a Spark job of your own.

    from headwater.consumers.spark.pipeline import PipelineOptions, run_pipeline
    from headwater.lineage.store import StoreOptions

    run_pipeline(spark, PipelineOptions(
        StoreOptions.at("postgresql://writer@db/lineage"),
        kafka={"bootstrap.servers": "broker-1:9092"},
        checkpoint="s3a://lake/checkpoints/lineage",
    ))
    """
    return PipelineRun(spark, options).run()


def store_events(
    frame: DataFrame, store: str | StoreOptions, *, topic: str = "", kind: str = KAFKA, buckets: int | None = None
) -> PipelineFigures:
    """Store the events of a frame with the columns of Spark's Kafka source, such as an archive of the topic.

    No offsets are moved, because nobody knows whether the frame is all that there was. Storing it again changes
    nothing. Dead letters are named by `topic`, partition and offset.
    """
    if frame.isStreaming:
        raise ConfigurationError("a streaming frame is stored by run_pipeline, or by store_events within foreachBatch")
    require_arrow()
    where = store if isinstance(store, StoreOptions) else StoreOptions.at(store)
    options = PipelineOptions(where, buckets=buckets)
    spark = frame.sparkSession
    with open_store(where) as opened:
        bus = BusReading(kind, "", topic, topic, options.most_invalid)
        settings = BatchSettings(options.group, options.buckets_for(spark), options.most_records)
        writing = StoreWriting(where, options.patience)
        writer = BatchWriter(opened.bulk, writing, bus, settings, PipelineFigures())
        writer.write_all(FrameBatch(frame))
        return writer.figures


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)} milliseconds"
