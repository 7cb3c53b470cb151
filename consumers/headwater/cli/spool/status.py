"""`headwater spool status`: the spools there are, what waits in them for whom, and how much room there is.

`headwater spool verify`: whether what is in spools can be read, and what it means if it can't.
"""

from __future__ import annotations

import shutil
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import limit
from headwater.cli.output import CommandOutput, Size, age_of
from headwater.cli.spool.arguments import add_spools, chosen, configuration_of, settings_of
from headwater.errors import HeadwaterError
from headwater.listeners.bus.handover import open_handover
from headwater.listeners.bus.options import DEAD_SPOOLS
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.spool_listing import SpoolStatus, SpoolSummary
from headwater.listeners.bus.spool_verification import SpoolDefect, SpoolVerification, verify_spool
from headwater.listeners.hadoop import hadoop_with_own_jvm
from headwater.listeners.settings import Settings

_NOTE_SECONDS = 5.0
_COLUMNS = ("spool", "segments", "size", "records", "sequences", "lost", "verdict")
_FINDINGS = ("file", "bytes", "what", "lost", "of", "not delivered to", "what to do")


@command(
    """Read spools from end to end and show what is damaged, which listener hasn't got it, and what to do about it.

Nothing is changed. Exit code 1 if something is damaged.""",
    "headwater spool verify",
    "headwater spool verify --spool-dir /var/spool/headwater -o json",
    flags=[add_spools],
)
def verify(given: Namespace, output: CommandOutput) -> int:
    spools = chosen([*spool_places(settings_of(given))], given.spools)
    progress = _Progress(output)
    verdicts = [verify_spool(left.directory, progress.read) for left in spools]
    output.table("spools", _COLUMNS, map(_verdict_row, verdicts), "Spools, read from end to end")
    findings = [finding for verdict in verdicts for finding in _findings(verdict)]
    if findings or given.output == "json":
        output.table("damage", _FINDINGS, findings, "What isn't as it was written")
    output.record("read", progress.figures())
    return Exit.DONE if all(verdict.is_sound for verdict in verdicts) else Exit.FAILED


class _Progress:
    """Says every few seconds how far it is: a spool can be large."""

    def __init__(self, output: CommandOutput) -> None:
        self._output = output
        self._began = self._noted = time.monotonic()
        self._bytes = 0

    def read(self, count: int) -> None:
        self._bytes += count
        if time.monotonic() - self._noted > _NOTE_SECONDS:
            self._noted = time.monotonic()
            self._output.note(f"{Size(self._bytes)} read, {Size(self._rate())}/s")

    def figures(self) -> dict[str, object]:
        seconds = round(time.monotonic() - self._began, 3)
        return {"size": Size(self._bytes), "seconds": seconds, "bytes a second": Size(self._rate())}

    def _rate(self) -> float:
        return self._bytes / max(0.001, time.monotonic() - self._began)


def _verdict_row(verdict: SpoolVerification) -> tuple[object, ...]:
    numbers = None if verdict.first_sequence is None else f"{verdict.first_sequence} to {verdict.last_sequence}"
    words = "sound" if verdict.is_sound else "damaged"
    return verdict.spool, verdict.segments, Size(verdict.bytes), verdict.records, numbers, verdict.lost, words


def _findings(verdict: SpoolVerification) -> Iterator[tuple[object, ...]]:
    yield from map(_finding, verdict.findings)
    if verdict.more:
        yield verdict.spool, None, f"{verdict.more} further places", None, None, None, "as for the others"


def _finding(finding: SpoolDefect) -> tuple[object, ...]:
    place = None if finding.start is None else f"{finding.start} to {finding.end}"
    families = ", ".join(f"{count} {family}" for family, count in sorted(finding.families.items()))
    return (
        finding.path,
        place,
        finding.what,
        finding.lost,
        families or None,
        ", ".join(finding.listeners) or None,
        finding.advice,
    )


_SPOOLS: Final = (
    *("spool", "application", "name", "producer", "driver"),
    *("since", "size", "records", "problem", "what becomes"),
)
_WAITING: Final = ("spool", "listener", "waiting", "oldest", "dropped", "note")
_ROOM: Final = ("directory", "live", "left", "limit of each", "limit of all left", "free")
_UNREADABLE: Final = "nothing: nobody takes it up"


@command(
    """List the spools there are, what waits in them for which listener, and how much room there is.

--limit holds for the spools; what waits is listed for those.""",
    "headwater spool status",
    "headwater spool status --properties-file spark-defaults.conf -o json",
    flags=[add_spools, limit(1000)],
)
def status(given: Namespace, output: CommandOutput) -> int:
    settings = settings_of(given)
    places = [*spool_places(settings)]
    spools = chosen(places, given.spools, are_all_here=settings.spool_handover is None)
    files, waiting_in_files = _handover_rows(given, settings)
    there, shown = [*map(_row, spools), *files], spools[: given.limit]
    output.table("spools", _SPOOLS, there[: given.limit])
    if len(there) > given.limit:
        output.note(f"there are {len(there)}, of which these are {given.limit}: --limit shows more")
    waiting = [*_waiting(shown), *(waiting_in_files if len(shown) < given.limit else ())]
    output.table("waiting", _WAITING, waiting, "What waits, in records at most")
    output.table("room", _ROOM, _room(settings, places, spools))
    return Exit.DONE


def _handover_rows(given: Namespace, settings: Settings) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Rows of files that drivers handed over, as those of spools, and rows of what waits in them."""
    spools: list[tuple[object, ...]] = []
    waiting: list[tuple[object, ...]] = []
    with hadoop_with_own_jvm(configuration_of(given)) as connect:
        if (handover := open_handover(settings, connect)) is None:
            return spools, waiting
        for name, size in sorted(handover.sizes().items()):
            if given.spools and name not in given.spools:
                continue
            where = f"{handover.where}/{name}"
            try:
                header = handover.header(name)
            except HeadwaterError as e:
                spools.append((where, *[None] * 3, "unreadable", None, Size(size), None, str(e), _UNREADABLE))
                continue
            names = ", ".join(header.waiting) or "any listener"
            fate = f"the next driver with {names} takes it up, or `headwater spool ship`"
            who = header.application or None, None, header.producer or None
            spools.append((where, *who, "handed over", header.since, Size(size), None, None, fate))
            waiting += [(where, listener, count, *[None] * 3) for listener, count in header.waiting.items()]
    return spools, waiting


def _row(left: SpoolSummary) -> tuple[object, ...]:
    application = left.manifest.application
    return (
        left.directory,
        application.id or None,
        application.name or None,
        left.manifest.producer,
        left.status,
        left.since,
        Size(left.size),
        left.records,
        "; ".join(_problems(left)) or None,
        left.fate,
    )


def _problems(left: SpoolSummary) -> Iterator[str]:
    if left.manifest.refused:
        yield f"{left.manifest.refused} events were refused by the disk"
    if any(each.dropped for each in left.waiting.values()):
        yield "its limit was reached"
    yield from left.faults


def _waiting(spools: Sequence[SpoolSummary]) -> Iterator[tuple[object, ...]]:
    for left in spools:
        for name, each in left.waiting.items():
            note = "could not be made" if each.has_failed else None
            yield left.directory, name, each.records, age_of(each.oldest), each.dropped, note


def _room(settings: Settings, places: Sequence[Path], spools: Sequence[SpoolSummary]) -> Iterator[tuple[object, ...]]:
    limit = settings.spool_max_bytes
    for place in dict.fromkeys(places):
        inside = [left for left in spools if left.directory.parent == place]
        live = sum(left.size for left in inside if left.status is SpoolStatus.LIVE)
        dead = sum(left.size for left in inside if left.status is not SpoolStatus.LIVE)
        free = Size(shutil.disk_usage(place).free) if place.is_dir() else None
        yield place, Size(live), Size(dead), Size(limit), Size(DEAD_SPOOLS * limit), free
