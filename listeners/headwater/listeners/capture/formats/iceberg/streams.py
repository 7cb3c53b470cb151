"""What a stream read of an Iceberg table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and how many of the files that it added were read. Whether those are all of them, and which
snapshot came before, the table's metadata tells: the extractor looks it up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.protocol import ReadVersion, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

_Fields: TypeAlias = Mapping[str, int]
_BEFORE_FIRST: Final = -1
"""Iceberg gives an offset this snapshot while a table has none."""
_UNSEEN_START: Final = "the table doesn't tell any more with which snapshot this stream began"
_PASSED_OVER: Final = "this stream passed over commits after the state that it began with"


@dataclass(frozen=True)
class _Offset:
    snapshot: int
    position: int
    is_state: bool
    """All files of the snapshot's state are read, not only those that it added."""

    @property
    def text(self) -> str:
        return f"{self.snapshot}:{self.position}"


def versions_of(node: PlanNode, offsets: OffsetRange, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    end, start = _offset(offsets.end), _offset(offsets.start)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    known = facts.looked_up.get("iceberg", {}).get("streamed", {})
    since = _last_snapshot_read(start, known)
    reached = _last_snapshot_read(end, known)
    if reached is None:  # the checkpoint says where it goes on, and the table no longer tells what was before
        return (ReadVersion(version=end.text, since=since, changes=True),)
    if end.is_state or since is not None:
        return (ReadVersion(reached.snapshot, reached.version, since, changes=not end.is_state),)
    return (_first_read(node, start, reached, known.get(_line_key(start, end))),)


def _first_read(node: PlanNode, start: _Offset | None, reached: RangeStart, line: _Fields | None) -> ReadVersion:
    """What is read with nothing before it. Additions since a table's first snapshot are its state, if each commit
    only added rows; else they are the changes since before that one."""
    if line is None or not _is_beginning(node, start, line):
        return ReadVersion(reached.snapshot, reached.version, changes=True, why=_UNSEEN_START)
    is_state = start is not None and start.is_state
    if line["adds_later"] and (is_state or line["adds"]):
        return ReadVersion(reached.snapshot, reached.version)
    if is_state:
        return ReadVersion(reached.snapshot, reached.version, changes=True, why=_PASSED_OVER)
    return ReadVersion(reached.snapshot, reached.version, RangeStart(snapshot=_BEFORE_FIRST), changes=True)


def _is_beginning(node: PlanNode, start: _Offset | None, line: _Fields) -> bool:
    """Whether nothing comes before the line. A stream that found an empty table begins with what is there first, unless
    it asks for a time."""
    if start is not None and start.snapshot >= 0:
        return line["first"] == start.snapshot and (start.is_state or "before" not in line)
    asked = stream_options(node).get("stream-from-timestamp", "0")
    return "before" not in line and asked.isdecimal() and int(asked) <= line["at"]


def _line_key(start: _Offset | None, end: _Offset) -> str:
    return f"{_BEFORE_FIRST if start is None else start.snapshot}..{end.snapshot}"


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    start = _offset(offsets.start)
    asked = "stream-from-timestamp" in stream_options(node)
    reason = StartReason.REQUESTED if asked else StartReason.EARLIEST
    return StreamStart(None if start is None or start.snapshot < 0 else start.snapshot, reason=reason)


def _last_snapshot_read(offset: _Offset | None, known: Mapping[str, _Fields]) -> RangeStart | None:
    """The last snapshot of which something was read, and where in it that ended; none before the first."""
    if offset is None or offset.snapshot < 0:
        return None
    fields = known.get(str(offset.snapshot), {})
    if offset.position == 0:
        return None if offset.is_state or "parent" not in fields else RangeStart(snapshot=fields["parent"])
    whole = not offset.is_state and fields.get("added") == offset.position
    return RangeStart(snapshot=offset.snapshot, version=None if whole else offset.text)


def _offset(text: str | None) -> _Offset | None:
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return _Offset(int(fields["snapshot_id"]), int(fields["position"]), bool(fields.get("scan_all_files", False)))
    except (ValueError, KeyError, TypeError):
        return None
