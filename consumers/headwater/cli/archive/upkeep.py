"""`headwater archive compact` and `expire`: few large files, and none that are too old."""

from __future__ import annotations

from argparse import Namespace
from datetime import date, datetime, timezone

from headwater.cli.archive.process import add_archive, given_place
from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, moment
from headwater.cli.output import CommandOutput, Size
from headwater.errors import ConfigurationError, TransientError


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
