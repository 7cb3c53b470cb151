"""Hudi in structured streaming: what a source's offsets say was read.

An offset is the time at which the newest instant that was read had been completed, so that an instant which was asked
for earlier and completed later is read in the next batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from headwater.events.jobs import RangeStart
from headwater.listeners.capture.formats.hudi.timelines import COMMITS, HudiInstant
from headwater.listeners.capture.formats.protocol import ReadVersion

_OFFSET: Final = "offsetCommitTime"
_START: Final = "000"
"""What Hudi calls the time before the first instant."""


def offset_of(text: str | None) -> int | None:
    """The number in a source's offset; None where there is none, and at the beginning."""
    if not text:
        return None
    found = str(json.loads(text)[_OFFSET])
    return None if found == _START or not found.isdecimal() or int(found) == 0 else int(found)


def range_of(start: str | None, end: str, line: Sequence[HudiInstant]) -> ReadVersion | None:
    """What a batch between two offsets read, by the table's timeline; None where they are the same: nothing was."""
    first, last = offset_of(start), offset_of(end)
    if last is None or first == last:
        return None
    commits = [each for each in line if each.action in COMMITS]
    newest, oldest = _instant(last, commits), None if first is None else _instant(first, commits)
    since = None if first is None else RangeStart(snapshot=oldest, version=str(first))
    why = "the timeline doesn't have the instant that this stream read last" if newest is None else None
    return ReadVersion(newest, str(last), since, changes=True, why=why)


def _instant(offset: int, commits: Sequence[HudiInstant]) -> int | None:
    """The instant that was completed then; older tables count by the time at which instants were asked for."""
    found = [each.number for each in commits if each.at == offset]
    return found[-1] if found else next((each.number for each in commits if each.number == offset), None)
