"""What a stream read of a Paimon table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and the last of its splits that was read. A batch ends within a snapshot only where the query
limits how much one may take.
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

_LIMITS: Final = "read.stream."
_START_OPTIONS: Final = ("scan.snapshot-id", "scan.timestamp", "scan.timestamp-millis", "scan.tag-name", "scan.version")


@dataclass(frozen=True)
class _StreamOffset:
    snapshot: int
    index: int
    is_state: bool
    """The snapshot's whole state is read, not what it added."""


def versions_of(node: PlanNode, offsets: OffsetRange) -> tuple[ReadVersion, ...]:
    end, start = _parse_offset(offsets.end), _parse_offset(offsets.start)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    limited = any(key.startswith(_LIMITS) for key in stream_options(node))
    since = None if start is None else _range_start(start, end, limited=limited)
    version = f"{end.snapshot}:{end.index}" if limited else None
    return (ReadVersion(end.snapshot, version, since, changes=not end.is_state),)


def _range_start(start: _StreamOffset, end: _StreamOffset, *, limited: bool) -> RangeStart | None:
    """Before a snapshot's first split nothing of it was read, and snapshots are numbered one after the other. Behind
    snapshot 0 are all changes that there are."""
    if start.index >= 0:
        return RangeStart(snapshot=start.snapshot, version=f"{start.snapshot}:{start.index}" if limited else None)
    return None if end.is_state or start.snapshot < 1 else RangeStart(snapshot=start.snapshot - 1)


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    options = stream_options(node)
    end = _parse_offset(offsets.end)
    snapshot = end.snapshot if end is not None and end.is_state else None
    if any(key in options for key in _START_OPTIONS):
        return StreamStart(snapshot, reason=StartReason.REQUESTED)
    latest = options.get("scan.mode") == "latest"
    return StreamStart(snapshot, reason=StartReason.LATEST if latest else StartReason.EARLIEST)


def _parse_offset(text: str | None) -> _StreamOffset | None:
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return _StreamOffset(int(fields["snapshotId"]), int(fields["index"]), bool(fields.get("scanSnapshot", False)))
    except (ValueError, KeyError, TypeError):
        return None
