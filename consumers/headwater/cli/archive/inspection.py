"""`headwater archive status` and `verify`: what is in an archive, and whether it is whole."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.archive.process import add_archive, given_place
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.output import CommandOutput, Size

if TYPE_CHECKING:
    from headwater.consumers.archive.table import EventArchive

_OFFSETS: Final = ("topic", "partition", "first", "end", "why")


@command(
    "Show what is in an archive: files, days, offsets of each partition, and what the bus had lost.",
    "headwater archive status --archive /mnt/lineage/archive",
    "headwater archive status --archive /mnt/lineage/archive -o json",
    flags=[add_archive],
)
def status(given: Namespace, output: CommandOutput) -> int:
    archive = _opened(given)
    from headwater.consumers.archive.ordered_rows import missing_offsets  # noqa: PLC0415
    from headwater.consumers.archive.table import FILE_BYTES  # noqa: PLC0415

    state = archive.refresh()
    days = sorted({each.day for each in state.files if each.records})
    output.record(
        "archive",
        {
            "records": sum(each.records for each in state.files),
            "files": len(state.files),
            "small files": sum(each.size < FILE_BYTES // 2 for each in state.files),
            "size": Size(sum(each.size for each in state.files)),
            "first day": days[0].isoformat() if days else None,
            "last day": days[-1].isoformat() if days else None,
            "commits": state.version,
        },
    )
    records: dict[object, int] = {}
    for each in state.files:
        records[each.partition] = records.get(each.partition, 0) + each.records
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
    archive = _opened(given)
    from headwater.consumers.archive.verification import Verification  # noqa: PLC0415

    began, verification = datetime.now(timezone.utc), Verification(archive)
    files = list(verification.run())
    damages, unarchived = verification.damages, verification.unarchived
    output.record(
        "verified",
        {
            "files": len(files),
            "records": sum(each.records for each in files),
            "size": Size(sum(each.size for each in files)),
            "damages": len(damages),
            "unarchived ranges": len(unarchived),
            "seconds": round((datetime.now(timezone.utc) - began).total_seconds(), 1),
        },
    )
    output.table("damages", ("path", "error"), damages)
    rows = [(each.topic, each.partition.number, each.first, each.end, each.why) for each in unarchived]
    output.table("unarchived", _OFFSETS, rows)
    return Exit.FAILED if damages else Exit.DONE


def _opened(given: Any) -> EventArchive:
    place = given_place(given)
    from headwater.consumers.archive.table import EventArchive  # noqa: PLC0415

    return EventArchive.open(place)
