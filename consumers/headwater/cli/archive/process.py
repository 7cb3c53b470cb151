"""`headwater archive run`: events from a bus into an archive, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
from argparse import Namespace
from contextlib import AbstractContextManager, closing, nullcontext
from typing import TYPE_CHECKING, Any, Final

from headwater.cli import logs
from headwater.cli.bus import WAYS, archive_place, bus_address, host_and_port, open_source
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of, pair, whole_number
from headwater.cli.output import CommandOutput
from headwater.cli.stopping import stop_on_signals
from headwater.consumers.tuning import tune_garbage_collection
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.archive.archiver import Archiver
    from headwater.consumers.archive.table import EventArchive

_LOG: Final = logging.getLogger(__name__)
_GROUP: Final = "headwater-archive"


def add_archive(parser: Flags) -> None:
    text = "a directory, or the URL of one in an object store, such as s3://BUCKET/PATH, gs://… or abfss://…"
    parser.flag("archive", archive_place, None, text, "PLACE")


def given_place(given: Any) -> str:
    """Return where the archive is."""
    if given.archive is None:
        raise ConfigurationError("which archive? Name its directory or URL by --archive PLACE")
    place: str = given.archive
    return place


def _flags(parser: Flags) -> None:
    parser.flag("bus", bus_address, None, f"where events are: {WAYS}", "BUS")
    parser.flag("group", str, _GROUP, "the consumer group; its processes share the partitions", "NAME")
    parser.flag("flush-size", _size, "64MiB", "write files when so much waits in memory", "SIZE")
    parser.flag("flush-age", _seconds, "5m", "write files when the oldest record has waited so long", "TIME")
    parser.flags("kafka", pair, "a setting of the Kafka client", "KEY=VALUE")
    parser.flag("health", host_and_port, None, "serve /live, /ready and /metrics there", "HOST:PORT")
    parser.flag("drain-seconds", whole_number, "30", "how long it may take to end after a SIGTERM", "N")
    parser.flag("log-format", one_of(logs.FORMATS), "text", "how the log on standard error looks", "{text,json}")
    parser.flag("log-level", one_of(logs.LEVELS), "info", "what is in it; debug has each batch", "LEVEL")
    text = "remove days that are older, such as 400d; kept for ever unless given"
    parser.flag("keep", _days, None, text, "AGE")
    parser.switch("no-upkeep", "leave to somebody else to compact files and to remove old ones")
    parser.switch("until-end", "stop once all that is on the bus is archived")


@command(
    """Archive every event as it came: its bytes, key, headers and offset, and columns to query it by.

The archive is a Delta table, by days and partitions of the topic. Each record is in it once, whatever dies meanwhile;
several processes of a group share the partitions of a topic. A SIGTERM or Ctrl-C ends it when what it holds is written.
A second one ends it at once: the rest is read again next time.""",
    "headwater archive run --bus kafka://broker-1:9092,broker-2:9092 --archive /mnt/lineage/archive",
    "headwater archive run --bus kafka://broker-1:9092 --archive s3://lake/audit/events --keep 400d",
    "headwater archive run --bus log:/var/lib/headwater/log --archive /var/lib/headwater/archive --until-end",
    flags=[add_archive, _flags],
)
def run(given: Namespace, output: CommandOutput) -> int:
    if given.bus is None:
        raise ConfigurationError("where are the events? Name the bus by --bus kafka://HOST:PORT or --bus log:DIR")
    with (
        logs.logging_as(given.log_format, given.log_level),
        closing(_opened(given)) as archive,
        _upkeep(archive, given),
    ):
        figures = _archive(archive, given)
    output.record("archived", figures)
    return Exit.DONE


def _opened(given: Any) -> EventArchive:
    place = given_place(given)
    from headwater.consumers.archive.table import EventArchive  # noqa: PLC0415

    return EventArchive.create(place)


def _archive(archive: EventArchive, given: Any) -> dict[str, int]:
    from headwater.consumers.archive.archiver import Archiver, FlushSettings  # noqa: PLC0415

    with closing(open_source(given.bus, given.group, given.kafka, archive.next_offsets)) as source:
        settings = FlushSettings(size=given.flush_size, age=given.flush_age)
        archiver = Archiver(source, archive, settings, until_end=given.until_end)
        return asyncio.run(_run(archiver, given))


async def _run(archiver: Archiver, given: Any) -> dict[str, int]:
    stop_on_signals(archiver.stop, given.drain_seconds, "archived")
    tune_garbage_collection()
    with _health_server(archiver, given.health):
        await archiver.run()
    return archiver.metrics.figures()


def _health_server(archiver: Archiver, health: tuple[str, int] | None) -> AbstractContextManager[object]:
    if health is None:
        return nullcontext()
    from headwater.consumers.health_server import HealthServer  # noqa: PLC0415

    return HealthServer(archiver.metrics, *health)


def _upkeep(archive: EventArchive, given: Any) -> AbstractContextManager[object]:
    if given.no_upkeep or given.until_end:
        return nullcontext()
    from headwater.consumers.archive.upkeep import ArchiveUpkeep  # noqa: PLC0415

    return ArchiveUpkeep(archive, given.keep)


def _days(text: str) -> int:
    from headwater.config.units import seconds_of  # noqa: PLC0415 - it imports pydantic

    days = int(seconds_of(text) // 86_400)
    if days < 1:
        raise ValueError(f"{text!r} is less than a day: the archive keeps whole days")
    return days


def _size(text: str) -> int:
    from headwater.config.units import bytes_of  # noqa: PLC0415 - it imports pydantic

    size = int(bytes_of(text))
    if size < 1 << 20:
        raise ValueError(f"{text!r} is less than 1 MiB: files would be too small to read")
    return size


def _seconds(text: str) -> float:
    from headwater.config.units import seconds_of  # noqa: PLC0415 - it imports pydantic

    seconds = float(seconds_of(text))
    if seconds < 1:
        raise ValueError(f"{text!r} is less than a second: files would be too small to read")
    return seconds
