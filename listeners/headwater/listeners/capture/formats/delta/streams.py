"""What a stream read of a Delta table, by the offsets that its source writes into the checkpoint.

An offset is the next file to be read: version 7 with the lowest index says that all of version 6 was read. While the
table that was there first is being read, files are counted over its whole state. A query that begins anew reads that
state, unless it asks for a version, and then goes on with what is added to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.protocol import ReadVersion, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange

_BEFORE_FIRST: Final = frozenset({-1, -100})
"""The index in front of a version's first file, as older and newer sources write it."""
_AFTER_LAST: Final = 1 << 62
"""Larger ones stand behind a version's last file."""

_PASSING_OVER: Final = frozenset(
    {"ignoredeletes", "ignorechanges", "ignorefiledeletion", "skipchangecommits", "readchangefeed", "readchangedata"}
)
"""Without these, a stream ends with an error at a commit that removes rows."""
_UNSEEN_START: Final = (
    "Delta doesn't show at which version this stream began: begin it with a number as startingVersion, or without one"
)


@dataclass(frozen=True)
class _StreamPosition:
    """How far was read: all of this version, or of its files those below an index."""

    version: int
    index: int | None = None
    is_state: bool = False
    """The files are those of the table's whole state at that version."""

    @property
    def text(self) -> str | None:
        return None if self.index is None else f"{self.version}:{self.index}"


def versions_of(node: PlanNode, offsets: OffsetRange) -> tuple[ReadVersion, ...]:
    end = _parse_position(offsets.end)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    start = _parse_position(offsets.start)
    if start is None:
        return (_first_position(node, end),)
    since = RangeStart(snapshot=start.version, version=start.text)
    return (ReadVersion(end.version, end.text, since, changes=not end.is_state),)


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    options = stream_options(node)
    asked = options.get("startingversion", "")
    if asked.isdecimal():
        return StreamStart(snapshot=int(asked), reason=StartReason.REQUESTED)
    if asked == "latest":
        return StreamStart(reason=StartReason.LATEST)
    if "startingtimestamp" in options:
        return StreamStart(reason=StartReason.REQUESTED)
    end = _parse_position(offsets.end)
    return StreamStart(snapshot=end.version if end and end.is_state else None, reason=StartReason.EARLIEST)


def _first_position(node: PlanNode, end: _StreamPosition) -> ReadVersion:
    """What is read first, with nothing before it: a state, or changes from a version on that was asked for."""
    options = stream_options(node)
    asked = options.get("startingversion")
    if asked is None and "startingtimestamp" not in options:
        return ReadVersion(end.version, end.text)
    if asked is None or not asked.isdecimal():
        return ReadVersion(end.version, end.text, changes=True, why=_UNSEEN_START)
    if int(asked) == 0 and _PASSING_OVER.isdisjoint(options):
        return ReadVersion(end.version, end.text)  # each commit only added rows, so all of them are the state
    return ReadVersion(end.version, end.text, RangeStart(snapshot=int(asked) - 1), changes=True)


def _parse_position(offset: str | None) -> _StreamPosition | None:
    if offset is None:
        return None
    try:
        fields = json.loads(offset)
        version, index = int(fields["reservoirVersion"]), int(fields["index"])
        is_state = bool(fields.get("isStartingVersion", False))
    except (ValueError, KeyError, TypeError):
        return None
    if index in _BEFORE_FIRST:
        return _StreamPosition(version - 1) if not is_state else _StreamPosition(version, -1, is_state=True)
    return _StreamPosition(version, None if index > _AFTER_LAST else index, is_state)
