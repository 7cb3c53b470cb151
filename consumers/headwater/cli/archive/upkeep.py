"""`headwater archive compact` and `expire`: few large files, and none that are too old."""

from __future__ import annotations

from argparse import Namespace
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

from headwater.cli.archive.process import add_archive, archive_directory, open_iceberg
from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, moment
from headwater.cli.output import CommandOutput, Size
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.archive.iceberg import IcebergArchive


def _before(parser: Flags) -> None:
    parser.flag("before", moment, None, "only days before this one; else all days that are over", "TIME")


@command(
    """Merge the small files of each day and kind into large ones, while archivers and readers go on.

A reader sees the small files or the large one, never both and never none. Run it once a day.""",
    "headwater archive compact --archive /mnt/lineage/archive",
    flags=[add_archive, _before],
)
def compact(given: Namespace, output: CommandOutput) -> int:
    table = open_iceberg(given)
    if table is not None:
        places = table.compact(_day(given.before) or datetime.now(timezone.utc).date())
        output.record("compacted", {"partitions": places})
        return Exit.DONE
    directory = archive_directory(given)
    from headwater.consumers.archive import upkeep  # noqa: PLC0415
    from headwater.consumers.archive.directory import ParquetArchive  # noqa: PLC0415

    done = upkeep.compact(ParquetArchive.create(directory), before=_day(given.before))
    fields = {
        "files before": done.files_before,
        "files after": done.files_after,
        "records": done.rows,
        "size before": Size(done.bytes_before),
        "size after": Size(done.bytes_after),
        "left to another process": done.conflicts,
    }
    output.record("compacted", fields)
    return Exit.DONE


def _older_than(parser: Flags) -> None:
    parser.flag("older-than", moment, None, "the days that are older, such as 400d", "AGE")


@command(
    """Remove old days from an archive, for ever. The archive remembers which offsets it had.

A day is removed when all of it is older.""",
    "headwater archive expire --archive /mnt/lineage/archive --older-than 400d --dry-run",
    "headwater archive expire --archive /mnt/lineage/archive --older-than 400d --yes",
    flags=[add_archive, _older_than, add_erasing],
)
def expire(given: Namespace, output: CommandOutput) -> int:
    if given.older_than is None:
        raise ConfigurationError("how old? Say --older-than AGE, such as 400d")
    table = open_iceberg(given)
    if table is not None:
        return _expire_table(table, given, output)
    directory = archive_directory(given)
    from headwater.consumers.archive import upkeep  # noqa: PLC0415
    from headwater.consumers.archive.directory import ParquetArchive  # noqa: PLC0415

    before = given.older_than.astimezone(timezone.utc).date()
    old = upkeep.files_before(ParquetArchive.open(directory), before)
    fields = {"files": len(old), "records": sum(each.rows for each in old), "size": Size(sum(f.size for f in old))}
    output.record("expired", {"before": before.isoformat(), **fields}, f"Days before {before} in {directory}")

    def work() -> tuple[str, dict[str, object]]:
        done = upkeep.expire(ParquetArchive.create(directory), before)
        return f"removed {done.rows} records in {done.files_before} files", {}

    question = f"Remove {fields['records']} records from {directory}? They can't be brought back."
    return erase(given, output, question, work, is_nothing=not old)


def _expire_table(table: IcebergArchive, given: Namespace, output: CommandOutput) -> int:
    before = given.older_than.astimezone(timezone.utc).date()

    def work() -> tuple[str, dict[str, object]]:
        table.expire(before)
        return f"removed the days before {before}; their files go when the table's snapshots expire", {}

    return erase(given, output, f"Remove the days before {before} from {given.archive}?", work)


def _day(time: datetime | None) -> date | None:
    return None if time is None else time.astimezone(timezone.utc).date()
