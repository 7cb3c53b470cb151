"""Runs a pipeline in a Spark session: from a bus into a store, until the end or until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from headwater.consumers.replay.archive_range import ArchiveRange
from headwater.consumers.replay.ranges import LogRange
from headwater.consumers.spark.pipeline.batch_writer import (
    BatchSettings,
    BatchWriter,
    OrderedBatches,
    PipelineFigures,
    RangesByPartition,
    SparkBatch,
)
from headwater.consumers.spark.pipeline.frames import frame_of, from_kafka, kafka_frame
from headwater.consumers.spark.pipeline.kafka_topic import SparkKafkaTopic
from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
from headwater.consumers.spark.pipeline.lake.tables import LakeTables
from headwater.consumers.spark.pipeline.lake.writer import LakeBatchWriter
from headwater.consumers.spark.pipeline.options import PipelineOptions
from headwater.consumers.spark.pipeline.polled_batches import PolledBatches, PolledBus
from headwater.consumers.spark.pipeline.reading_tasks import BusReading
from headwater.consumers.spark.pipeline.session import require_arrow
from headwater.consumers.spark.pipeline.writing_tasks import StoreWriting
from headwater.errors import ConfigurationError
from headwater.lineage.lake import LakeAddress
from headwater.lineage.store import StoreOptions, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KAFKA: Final = "kafka"
_LOOK_SECONDS: Final = 0.2
"""How often a stop is looked for while tasks run."""


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
        options, spark = self._options, self._spark
        if options.reads_kafka:
            with closing(SparkKafkaTopic(spark, options.kafka, options.topic)) as topic:
                frame = partial(kafka_frame, spark, options.kafka, options.topic)
                self._run_batches(topic, frame, make_writer, KAFKA, options.topic)
            return
        log, archive = options.log, options.archive
        opened = (
            LogRange(f"log:{log}", log.expanduser(), dict) if log else ArchiveRange(str(archive), str(archive), dict)
        )
        with closing(opened) as source:
            self._run_batches(source, partial(frame_of, spark, source), make_writer, source.kind, source.topic)

    def _run_batches(
        self,
        bus: PolledBus,
        frame: Callable[[RangesByPartition], DataFrame],
        make_writer: Callable[..., OrderedBatches],
        kind: str,
        name: str,
    ) -> None:
        options = self._options

        def make(cluster: str, topic: str) -> OrderedBatches:
            reading = BusReading(kind, cluster, topic, name, options.most_invalid)
            settings = BatchSettings(options.group, self._buckets, options.most_records, self._stop.is_set)
            return make_writer(reading, settings, self.figures)

        is_first_hand = options.archive is None
        batches = PolledBatches(bus, frame, make, most_records=options.most_records, is_first_hand=is_first_hand)
        with self._cancelled_when_stopped():
            batches.run(self._stop.is_set, interval=options.interval)

    @contextmanager
    def _cancelled_when_stopped(self) -> Generator[None]:
        """Cancel what Spark does for this thread when the run is stopped, which a signal handler may ask for."""
        context, tag, is_over = self._spark.sparkContext, f"headwater-{uuid4()}", threading.Event()

        def cancel() -> None:
            while not is_over.wait(_LOOK_SECONDS):
                if self._stop.is_set():
                    context.cancelJobsWithTag(tag)
                    return

        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        threading.Thread(target=cancel, name="headwater-stop", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()
            with suppress(Exception):  # the session may be gone
                context.removeJobTag(tag)
                context.setInterruptOnCancel(False)


def run_pipeline(spark: SparkSession, options: PipelineOptions) -> PipelineFigures:
    """Read events from a bus into a store, and return what was stored. For a Spark job of your own.

    from headwater.consumers.spark.pipeline import PipelineOptions, run_pipeline
    from headwater.lineage.store import StoreOptions

    run_pipeline(spark, PipelineOptions(
        StoreOptions.at("postgresql://writer@db/lineage"),
        kafka={"bootstrap.servers": "broker-1:9092"},
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
        batch = SparkBatch({}, partial(from_kafka, frame), dict)
        while not writer.write(batch):
            pass
        return writer.figures
