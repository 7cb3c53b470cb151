"""Hudi in structured streaming: what a source's offsets say was read.

An offset is the time at which the newest instant that was read had been completed, so that an instant which was asked
for earlier and completed later is read in the next batch. Sources of older tables count by the time at which instants
were asked for. The offset in front of a query's first batch isn't in Spark's log but in the source's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.hudi.timelines import COMMITS, HudiInstant, timeline, timeline_facts
from headwater.listeners.capture.formats.protocol import ReadVersion, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

_OFFSET: Final = "offsetCommitTime"
_START: Final = "000"
"""What Hudi calls the time before the first instant."""
_BEFORE_FIRST: Final = RangeStart(snapshot=-1)
_START_OPTION: Final = "hoodie.datasource.streaming.startoffset"
_START_WORDS: Final = {"earliest": StartReason.EARLIEST, "latest": StartReason.LATEST}
_FALLBACK: Final = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
"""Without it a stream may leave out what only archived instants wrote."""
_NOT_IN_TIMELINE: Final = "the timeline doesn't have the instant that this stream read last"
_UNSEEN_START: Final = "Hudi doesn't show where this stream began"
_PARTIAL: Final = f"with {_FALLBACK}=false a stream may leave out what was written by archived instants"


def versions_of(path: str, node: PlanNode, offsets: OffsetRange, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    if offsets.end is None:
        return ()
    begins = {offset for of, offset in timeline_facts(facts).get("begins", ()) if of == path}
    start = offsets.start or (begins.pop() if len(begins) == 1 else None)
    is_partial = stream_options(node).get(_FALLBACK, "true").strip().lower() == "false"
    found = range_of(start, offsets.end, timeline(facts, path) or (), is_partial=is_partial)
    return () if found is None else (found,)


def start_of(node: PlanNode) -> StreamStart:
    """Why a new query begins where it does."""
    asked = stream_options(node).get(_START_OPTION, "earliest").strip().lower()
    return StreamStart(reason=_START_WORDS.get(asked, StartReason.REQUESTED))


def range_of(
    start: str | None, end: str, line: Sequence[HudiInstant], *, is_partial: bool = False
) -> ReadVersion | None:
    """What a batch between two offsets read, by the table's timeline; None where they are the same: nothing was.

    Without a start it is unknown where the batch began. Behind the first offset are all changes that there are, in as
    far as archived instants are read too. They aren't the table's state: a row that is changed while the batch reads is
    in the next one alone.
    """
    last = offset_of(end)
    if last is None or (start is not None and offset_of(start) == last):
        return None
    newest = _newest_commit(last, line)
    why = None if newest is not None else _NOT_IN_TIMELINE
    if start is None:
        return ReadVersion(newest, str(last), changes=True, why=why or _UNSEEN_START)
    first = offset_of(start)
    if first is not None:
        since = RangeStart(snapshot=_newest_commit(first, line), version=str(first))
    elif is_partial:
        return ReadVersion(newest, str(last), changes=True, why=why or _PARTIAL)
    else:
        since = _BEFORE_FIRST
    return ReadVersion(newest, str(last), since, changes=True, why=why)


def offset_of(text: str) -> int | None:
    """The number in a source's offset; None at the beginning."""
    found = str(json.loads(text)[_OFFSET])
    return None if found == _START or not found.isdecimal() or int(found) == 0 else int(found)


def _newest_commit(offset: int, line: Sequence[HudiInstant]) -> int | None:
    """The newest commit that an offset includes. What was completed then may be another instant: a clean changes no
    row."""
    commits = [instant for instant in line if instant.action in COMMITS]
    if any(instant.at == offset for instant in line):
        found = [instant for instant in commits if instant.at <= offset]
    elif any(instant.number == offset for instant in line):
        found = [instant for instant in commits if instant.number <= offset]
    else:
        return None
    return found[-1].number if found else None
