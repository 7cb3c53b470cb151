"""`headwater spool verify`: whether what is in spools can be read, and what it means if it can't."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.output import CommandOutput, Size
from headwater.cli.spool.arguments import add_spools, chosen, settings_of
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.spool_verification import SpoolDefect, SpoolVerification, verify_spool

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
    output.table("spools", _COLUMNS, map(_row, verdicts), "Spools, read from end to end")
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


def _row(verdict: SpoolVerification) -> tuple[object, ...]:
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
