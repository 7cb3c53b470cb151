"""`headwater replay` by Spark: executors store what the sources have, in fresh tables of a database or in a lake."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.bus import is_kafka, kafka_settings
from headwater.cli.exits import Exit
from headwater.cli.output import CommandOutput
from headwater.cli.replay_output import ProgressLines
from headwater.cli.service import stopping_on_signals

if TYPE_CHECKING:
    from headwater.consumers.replay.filling import BulkReader, BulkReaderMaker
    from headwater.consumers.replay.ranges import RangeSource
    from headwater.consumers.spark.pipeline.polled_batches import WriterMaker
    from headwater.lineage.bulk import BulkLineageMeta
    from headwater.lineage.lake import LakeAddress
    from headwater.lineage.store import Store, StoreOptions

SPARK: Final = "spark"


@contextmanager
def bulk_reader(given: Any) -> Generator[BulkReaderMaker | None]:
    """Yield what makes the reader of what there is at first, in a session that ends with this block.

    It is None if this process reads itself.
    """
    if given.by != SPARK:
        yield None
        return
    with _Executors.opened(given) as executors:
        yield executors.into_database


def fill_lake(given: Any, output: CommandOutput, sources: Sequence[RangeSource], address: LakeAddress) -> int:
    """Store what the sources have in a lake, from its offsets on, and say what was done."""
    from headwater.consumers.replay.filling import ends_until, read_with_progress  # noqa: PLC0415 - imports SQLAlchemy
    from headwater.consumers.replay.preparation import check_coverage  # noqa: PLC0415

    show, events = ProgressLines(given.output, sys.stderr).show, 0
    with _Executors.opened(given, lake=address) as executors:
        lake, reader = executors.into_lake(address)
        check_coverage(lake, sources, lake.offsets(given.group), {}, accept_loss=given.accept_loss)
        for source in sources:
            end = ends_until(source, given.until)
            source.read(lake.offsets(given.group), end)
            events += read_with_progress(reader, source, end, f"reading {source.address}", show)
    output.outcome(f"{events:,} events were stored in {address.words}", {"store": address.words, "events": events})
    return Exit.DONE


class _Executors:
    """A Spark session with the settings that a command line gave."""

    def __init__(self, spark: Any, given: Any, is_stopping: Callable[[], bool]) -> None:
        from headwater.consumers.spark.pipeline.session import require_arrow  # noqa: PLC0415 - it imports SQLAlchemy

        require_arrow()
        self._spark = spark
        self._given = given
        self._is_stopping = is_stopping

    @classmethod
    @contextmanager
    def opened(cls, given: Any, *, lake: LakeAddress | None = None) -> Generator[_Executors]:
        from headwater.consumers.spark.pipeline.session import pipeline_session  # noqa: PLC0415

        reads_kafka = any(map(is_kafka, getattr(given, "from")))
        session = pipeline_session(dict(given.conf), master=given.master, reads_kafka=reads_kafka, lake=lake)
        stop = threading.Event()
        with session as spark, stopping_on_signals(stop.set, "stored"):
            yield cls(spark, given, stop.is_set)

    def into_database(self, store: Store, options: StoreOptions) -> BulkReader:
        from headwater.consumers.spark.pipeline.batch_writer import BatchWriter  # noqa: PLC0415
        from headwater.consumers.spark.pipeline.writing_tasks import StoreWriting  # noqa: PLC0415

        writing = StoreWriting(options, self._retry_seconds(options))
        return self._reader(options, store.bulk, partial(BatchWriter, store.bulk, writing))

    def into_lake(self, address: LakeAddress) -> tuple[BulkLineageMeta, BulkReader]:
        """Return the lake, whose tables are made where there are none, and who reads into it."""
        from headwater.consumers.spark.pipeline.lake import LakeTables  # noqa: PLC0415
        from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta  # noqa: PLC0415
        from headwater.consumers.spark.pipeline.lake.writer import LakeBatchWriter  # noqa: PLC0415

        patience = self._retry_seconds(address)
        lake = LakeBulkMeta(LakeTables.open(self._spark, address, patience))
        return lake, self._reader(address, lake, partial(LakeBatchWriter, lake, patience))

    def _retry_seconds(self, store: StoreOptions | LakeAddress) -> float:
        from headwater.consumers.spark.pipeline import PipelineOptions  # noqa: PLC0415

        return PipelineOptions(store).patience

    def _reader(self, store: StoreOptions | LakeAddress, meta: BulkLineageMeta, make_writer: WriterMaker) -> BulkReader:
        from headwater.consumers.spark.pipeline import PipelineOptions  # noqa: PLC0415
        from headwater.consumers.spark.pipeline.batch_writer import BatchSettings  # noqa: PLC0415
        from headwater.consumers.spark.pipeline.polled_batches import SparkRangeReader  # noqa: PLC0415

        given, about = self._given, PipelineOptions(store, buckets=self._given.buckets)
        most = given.batch or about.most_records
        settings = BatchSettings(given.group, about.buckets_for(self._spark), most, self._is_stopping)
        return SparkRangeReader(
            self._spark,
            meta,
            make_writer,
            settings,
            kafka=lambda address: kafka_settings(address, given.kafka_client),
            most_invalid=about.most_invalid,
        )
