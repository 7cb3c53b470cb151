"""`headwater pipeline run`: events from a bus into a lineage store by a Spark cluster."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from headwater.cli.bus import (
    WAYS,
    archive_place,
    bus_address,
    is_archive,
    is_kafka,
    is_log,
    kafka_settings,
    log_directory,
    topic_of,
)
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, pair, whole_number
from headwater.cli.output import CommandOutput
from headwater.cli.service import add_logging, logging_as, stopping_on_signals
from headwater.cli.store import add_store, options_of
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.spark.pipeline import PipelineOptions


def _flags(parser: Flags) -> None:
    parser.flag("bus", bus_address, None, f"where events are: {WAYS}", "BUS")
    text = "whose offsets these are; a writer of the same group goes on where the pipeline ended"
    parser.flag("group", str, "headwater-pipeline", text, "NAME")
    parser.switch("available-now", "store what is on the bus now, and end")
    text = "without --available-now: how long after one micro-batch began the next one begins"
    parser.flag("trigger", _seconds, "10s", text, "DURATION")
    parser.flag("batch", count, "500000", "at most so many events in a micro-batch", "N")
    parser.flag(
        "buckets", count, None, "so many tasks write at the same time; as many as there are cores unless given", "N"
    )
    text = "end where so many events in a row can't become rows; 0 never"
    parser.flag("most-invalid", whole_number, "100", text, "N")
    parser.flag("patience", _seconds, "300s", "how long to wait for a store that doesn't answer", "DURATION")
    parser.flags("kafka-client", pair, "a setting of Kafka's Java client, such as security.protocol=SSL", "KEY=VALUE")
    add_spark(parser)
    add_logging(parser)


def add_spark(parser: Flags) -> None:
    """Add the flags of a Spark session."""
    parser.flag("master", str, None, "Spark's master; local[*] unless spark-submit or --conf says otherwise", "URL")
    parser.flags("conf", pair, "a setting of Spark", "KEY=VALUE")


@command(
    """Fill a lineage store by Spark: executors decode events and write rows, for more than one machine can do.

It ends at a SIGTERM or Ctrl-C; what isn't stored then is read again next time. Restarted with the same group it goes on
where it ended. With --available-now it ends when all is stored that is on the bus.

A store in a lake, iceberg:CATALOG.NAMESPACE or delta:…, is for lineage that outgrows a database.

Under spark-submit the master and the configuration are those of its command line.""",
    "headwater pipeline run --bus kafka://broker-1:9092 --store postgresql://writer@db/lineage --available-now",
    "headwater pipeline run --bus kafka://broker-1:9092 --store postgresql://writer@db/lineage "
    "--trigger 30s --master spark://master:7077",
    "headwater pipeline run --bus kafka://broker-1:9092 --store iceberg:lake.lineage "
    "--conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.lake.type=rest "
    "--conf spark.sql.catalog.lake.uri=https://catalog.example.com",
    "headwater pipeline run --bus archive:/mnt/lineage/archive --store postgresql://writer@db/lineage --available-now",
    flags=[add_store, _flags],
)
def run(given: Namespace, output: CommandOutput) -> int:
    if given.bus is None:
        raise ConfigurationError(f"where are the events? Name the bus by --bus {WAYS}")
    with logging_as(given.log_format, given.log_level):
        options = _options(given).checked()
        figures = _run(options, given)
    output.record("written", figures)
    return Exit.DONE


def _options(given: Any) -> PipelineOptions:
    from headwater.consumers.spark.pipeline import PipelineOptions  # noqa: PLC0415 - it imports SQLAlchemy

    store = options_of(given)
    lake = store.lake
    return PipelineOptions(
        store if lake is None else lake,
        topic=topic_of(given.bus),
        kafka=kafka_settings(given.bus, given.kafka_client) if is_kafka(given.bus) else {},
        log=log_directory(given.bus) if is_log(given.bus) else None,
        archive=archive_place(given.bus) if is_archive(given.bus) else None,
        group=given.group,
        interval=None if given.available_now else given.trigger,
        buckets=given.buckets,
        most_records=given.batch,
        most_invalid=given.most_invalid,
        patience=given.patience,
    )


def _run(options: PipelineOptions, given: Any) -> dict[str, int]:
    from headwater.consumers.spark.pipeline import PipelineRun  # noqa: PLC0415
    from headwater.consumers.spark.pipeline.session import pipeline_session  # noqa: PLC0415
    from headwater.lineage.store import StoreOptions, open_store  # noqa: PLC0415

    lake = None if isinstance(options.store, StoreOptions) else options.store
    if isinstance(options.store, StoreOptions):
        open_store(options.store).close()  # what is wrong there shows before a cluster's cores are taken
    reads_kafka = options.reads_kafka
    with pipeline_session(dict(given.conf), master=given.master, reads_kafka=reads_kafka, lake=lake) as spark:
        running = PipelineRun(spark, options)
        with stopping_on_signals(running.stop, "stored"):
            return running.run().totals()


def _seconds(text: str) -> float:
    from headwater.config.units import seconds_of  # noqa: PLC0415 - it imports pydantic

    return float(seconds_of(text))
