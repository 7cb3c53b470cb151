"""`headwater archive`: every event as it came, kept as long as wanted.

The process that archives; what is in an archive, and whether it is whole; compaction and retention.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.bus import add_bus, archive_place, open_source, require_bus
from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, moment
from headwater.cli.output import CommandOutput, Size
from headwater.cli.service import add_service, logging_as, serve_health, stop_on_signals
from headwater.consumers.tuning import tune_garbage_collection
from headwater.errors import ConfigurationError, TransientError

if TYPE_CHECKING:
    from headwater.consumers.archive.archiver import Archiver
    from headwater.consumers.archive.table import EventArchive


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
    add_bus(parser)
    parser.flag("group", str, _GROUP, "the consumer group; its processes share the partitions", "NAME")
    parser.flag("flush-size", _size, "64MiB", "write files when so much waits in memory", "SIZE")
    parser.flag("flush-age", _seconds, "5m", "write files when the oldest record has waited so long", "TIME")
    add_service(parser, "each batch")
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
    require_bus(given)
    with (
        logging_as(given.log_format, given.log_level),
        closing(_create_archive(given)) as archive,
        _upkeep(archive, given),
    ):
        figures = _archive(archive, given)
    output.record("archived", figures)
    return Exit.DONE


def _create_archive(given: Any) -> EventArchive:
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
    with serve_health(archiver.metrics, given.health):
        await archiver.run()
    return archiver.metrics.figures()


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


_OFFSETS: Final = ("topic", "partition", "first", "end", "why")


@command(
    "Show what is in an archive: files, days, offsets of each partition, and what the bus had lost.",
    "headwater archive status --archive /mnt/lineage/archive",
    "headwater archive status --archive /mnt/lineage/archive -o json",
    flags=[add_archive],
)
def status(given: Namespace, output: CommandOutput) -> int:
    archive = _open_archive(given)
    from headwater.consumers.archive.ordered_rows import missing_offsets  # noqa: PLC0415
    from headwater.consumers.archive.table import FILE_BYTES  # noqa: PLC0415

    state = archive.refresh()
    days = sorted({file.day for file in state.files if file.records})
    output.record(
        "archive",
        {
            "records": sum(file.records for file in state.files),
            "files": len(state.files),
            "small files": sum(file.size < FILE_BYTES // 2 for file in state.files),
            "size": Size(sum(file.size for file in state.files)),
            "first day": days[0].isoformat() if days else None,
            "last day": days[-1].isoformat() if days else None,
            "commits": state.version,
        },
    )
    records: dict[object, int] = {}
    for file in state.files:
        records[file.partition] = records.get(file.partition, 0) + file.records
    rows = [
        (known.topic, each.number, known.first, known.next, records[each])
        for each, known in sorted(state.partitions.items())
    ]
    output.table("partitions", ("topic", "partition", "first", "next", "records"), rows)
    gaps = [
        (state.partitions[gap.partition].topic, gap.partition.number, gap.first, gap.end, why, gap.reason.value)
        for gap, why in missing_offsets(archive, state.files)
    ]
    output.table("gaps", (*_OFFSETS, "reason"), gaps)
    return Exit.DONE


@command(
    """Read an archive from end to end: is each file what was written, and is each offset there once?

Offsets without a record are listed as unarchived. `missing` is what the bus had lost, `expired` what retention
removed, and `no record` a mark of a transaction or what a compacted topic had dropped. Exit code 1 means damage.""",
    "headwater archive verify --archive /mnt/lineage/archive",
    flags=[add_archive],
)
def verify(given: Namespace, output: CommandOutput) -> int:
    archive = _open_archive(given)
    from headwater.consumers.archive.ordered_rows import Verification  # noqa: PLC0415

    began, verification = datetime.now(timezone.utc), Verification(archive)
    files = list(verification.run())
    damages, unarchived = verification.damages, verification.unarchived
    output.record(
        "verified",
        {
            "files": len(files),
            "records": sum(file.records for file in files),
            "size": Size(sum(file.size for file in files)),
            "damages": len(damages),
            "unarchived ranges": len(unarchived),
            "seconds": round((datetime.now(timezone.utc) - began).total_seconds(), 1),
        },
    )
    output.table("damages", ("path", "error"), damages)
    rows = [(each.topic, each.partition.number, each.first, each.end, each.why) for each in unarchived]
    output.table("unarchived", _OFFSETS, rows)
    return Exit.FAILED if damages else Exit.DONE


def _open_archive(given: Any) -> EventArchive:
    place = given_place(given)
    from headwater.consumers.archive.table import EventArchive  # noqa: PLC0415

    return EventArchive.open(place)


def _before(parser: Flags) -> None:
    parser.flag("before", moment, None, "only days before this one; else all days that are over", "TIME")


@command(
    """Merge the small files of each day and partition into large ones, while archivers and readers go on.

A reader sees the small files or the large one, never both and never none. Files that were replaced a day ago or earlier
are removed. Run it once a day, unless `archive run` does.""",
    "headwater archive compact --archive /mnt/lineage/archive",
    flags=[add_archive, _before],
)
def compact(given: Namespace, output: CommandOutput) -> int:
    place = given_place(given)
    from headwater.consumers.archive import upkeep  # noqa: PLC0415
    from headwater.consumers.archive.table import EventArchive  # noqa: PLC0415

    archive = EventArchive.open(place)
    done = upkeep.compact(archive, before=_day(given.before))
    fields = {
        "files before": done.files_before,
        "files after": done.files_after,
        "records": done.records,
        "size before": Size(done.bytes_before),
        "left to another process": done.conflicts,
        "files removed": archive.vacuum(),
    }
    output.record("compacted", fields)
    return Exit.DONE


def _older_than(parser: Flags) -> None:
    parser.flag("older-than", moment, None, "the days that are older, such as 400d", "AGE")


@command(
    """Remove old days from an archive, for ever. The archive remembers which offsets it had.

A day is removed when all of it is older. Its files are removed a day later, by a compaction or by `archive run`.""",
    "headwater archive expire --archive /mnt/lineage/archive --older-than 400d --dry-run",
    "headwater archive expire --archive /mnt/lineage/archive --older-than 400d --yes",
    flags=[add_archive, _older_than, add_erasing],
)
def expire(given: Namespace, output: CommandOutput) -> int:
    if given.older_than is None:
        raise ConfigurationError("how old? Say --older-than AGE, such as 400d")
    place = given_place(given)
    from headwater.consumers.archive import upkeep  # noqa: PLC0415
    from headwater.consumers.archive.table import EventArchive  # noqa: PLC0415

    archive, before = EventArchive.open(place), given.older_than.astimezone(timezone.utc).date()
    old = upkeep.files_before(archive, before)
    fields = {"files": len(old), "records": sum(each.records for each in old), "size": Size(sum(f.size for f in old))}
    output.record("expired", {"before": before.isoformat(), **fields}, f"Days before {before} in {place}")

    def work() -> tuple[str, dict[str, object]]:
        done = upkeep.expire(archive, before)
        if done.conflicts:
            raise TransientError(f"another process changes the days before {before}: try again")
        return f"removed {done.records} records in {done.files_before} files", {}

    question = f"Remove {fields['records']} records from {place}? They can't be brought back."
    return erase(given, output, question, work, is_nothing=not old)


def _day(time: datetime | None) -> date | None:
    return None if time is None else time.astimezone(timezone.utc).date()
