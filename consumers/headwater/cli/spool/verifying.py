"""`headwater spool verify`: whether what is in spools can be read, and what it means if it can't."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from headwater.cli.exits import Exit
from headwater.cli.output import Output
from headwater.cli.spool.arguments import chosen, places_of, settings_of
from headwater.cli.spool.units import Size
from headwater.listeners.bus.verifying import Finding, Verdict, verify_spool

_NOTE_SECONDS = 5.0
_COLUMNS = ("spool", "segments", "size", "records", "sequences", "lost", "verdict")
_FINDINGS = ("file", "bytes", "what", "lost", "of", "not delivered to", "what to do")


def verify(given: Any, output: Output) -> int:
    spools = chosen(places_of(settings_of(given)), given.spools)
    progress = _Progress(output)
    verdicts = [verify_spool(left.directory, progress.read) for left in spools]
    output.table("Spools, read from end to end", _COLUMNS, map(_row, verdicts))
    findings = [finding for verdict in verdicts for finding in _findings(verdict)]
    if findings:
        output.table("What isn't as it was written", _FINDINGS, findings)
    output.record("Read", progress.told())
    return Exit.DONE if all(verdict.is_sound for verdict in verdicts) else Exit.FAILED


class _Progress:
    """Says now and then how far it is: a spool can be large."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._began = self._noted = time.monotonic()
        self._bytes = 0

    def read(self, count: int) -> None:
        self._bytes += count
        if time.monotonic() - self._noted > _NOTE_SECONDS:
            self._noted = time.monotonic()
            self._output.note(f"{Size(self._bytes)} read, {Size(self._rate())}/s")

    def told(self) -> dict[str, object]:
        seconds = round(time.monotonic() - self._began, 3)
        return {"size": Size(self._bytes), "seconds": seconds, "a second": Size(self._rate())}

    def _rate(self) -> float:
        return self._bytes / max(0.001, time.monotonic() - self._began)


def _row(verdict: Verdict) -> tuple[object, ...]:
    numbers = None if verdict.first_sequence is None else f"{verdict.first_sequence} to {verdict.last_sequence}"
    words = "sound" if verdict.is_sound else "damaged"
    return verdict.spool, verdict.segments, Size(verdict.bytes), verdict.records, numbers, verdict.lost, words


def _findings(verdict: Verdict) -> Iterator[tuple[object, ...]]:
    yield from map(_finding, verdict.findings)
    if verdict.more:
        yield verdict.spool, None, f"{verdict.more} further places", None, None, None, "as for the others"


def _finding(finding: Finding) -> tuple[object, ...]:
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
