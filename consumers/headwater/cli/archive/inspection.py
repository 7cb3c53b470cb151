"""`headwater archive status` and `verify`: what is in an archive, and whether it is whole."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.archive.process import add_archive, archive_directory
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.output import CommandOutput, Size

if TYPE_CHECKING:
    from headwater.consumers.archive.directory import ParquetArchive
    from headwater.consumers.archive.state import ArchiveState

_SMALL: Final = 8 << 20
"""The rows of a file of which compaction makes a larger one take less than that in memory."""
_OFFSETS: Final = ("topic", "partition", "first", "end", "why")


@command(
    "Show what is in an archive: files, days, offsets of each partition, and what the bus had lost.",
    "headwater archive status --archive /mnt/lineage/archive",
    "headwater archive status --archive /mnt/lineage/archive -o json",
    flags=[add_archive],
)
def status(given: Namespace, output: CommandOutput) -> int:
    state = _opened(given).refresh()
    files = list(state.files.values())
    days = sorted({each.day for each in files})
    output.record(
        "archive",
        {
            "records": sum(each.rows for each in files),
            "files": len(files),
            "small files": sum(each.memory < _SMALL for each in files),
            "size": Size(sum(each.size for each in files)),
            "first day": days[0].isoformat() if days else None,
            "last day": days[-1].isoformat() if days else None,
            "commits": state.version,
        },
    )
    output.table("partitions", ("topic", "partition", "first", "next", "expired before", "records"), _partitions(state))
    output.table("gaps", (*_OFFSETS[:4], "reason"), _gaps(state))
    return Exit.DONE


def _partitions(state: ArchiveState) -> list[tuple[object, ...]]:
    rows: dict[object, int] = {}
    for span in (span for each in state.files.values() for span in each.spans):
        rows[span.partition] = rows.get(span.partition, 0) + span.rows
    return [
        (known.topic, each.number, known.first, known.next, known.expired, rows.get(each, 0))
        for each, known in sorted(state.partitions.items())
    ]


def _gaps(state: ArchiveState) -> list[tuple[object, ...]]:
    topics = {each: known.topic for each, known in state.partitions.items()}
    return [
        (
            topics.get(each.partition, each.partition.topic),
            each.partition.number,
            each.first,
            each.end,
            each.reason.value,
        )
        for each in state.gaps
    ]


@command(
    """Read an archive from end to end: is each file what was written, and is each offset there once?

Offsets without a record are listed as unarchived. `gap` is what the bus had lost, `expired` what retention removed, and
`no record` a mark of a transaction or what a compacted topic had dropped. Exit code 1 means damage.""",
    "headwater archive verify --archive /mnt/lineage/archive",
    flags=[add_archive],
)
def verify(given: Namespace, output: CommandOutput) -> int:
    archive = _opened(given)
    from headwater.consumers.archive.verification import Verification  # noqa: PLC0415

    began, verification = datetime.now(timezone.utc), Verification(archive)
    files = list(verification.run())
    damages, unarchived = verification.damages, verification.unarchived
    output.record(
        "verified",
        {
            "files": len(files),
            "records": sum(each.rows for each in files),
            "size": Size(sum(each.size for each in files)),
            "damaged files": len(damages),
            "unarchived ranges": len(unarchived),
            "seconds": round((datetime.now(timezone.utc) - began).total_seconds(), 1),
        },
    )
    output.table("damages", ("path", "error"), damages)
    rows = [(each.topic, each.partition.number, each.first, each.end, each.why) for each in unarchived]
    output.table("unarchived", _OFFSETS, rows)
    return Exit.FAILED if damages else Exit.DONE


def _opened(given: Any) -> ParquetArchive:
    directory = archive_directory(given)
    from headwater.consumers.archive.directory import ParquetArchive  # noqa: PLC0415

    return ParquetArchive.open(directory)
