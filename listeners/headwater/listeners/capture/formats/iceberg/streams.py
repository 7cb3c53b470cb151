"""What a stream read of an Iceberg table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and how many of the files that it added were read. Whether those are all of them, and which
snapshot came before, the table's metadata tells: the extractor looks it up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.protocol import ReadVersion, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts


@dataclass(frozen=True)
class _Offset:
    snapshot: int
    position: int
    is_state: bool
    """All files of the snapshot's state are read, not only those that it added."""

    @property
    def text(self) -> str:
        return f"{self.snapshot}:{self.position}"


def versions_of(offsets: OffsetRange, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    end = _offset(offsets.end)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    known = facts.looked_up.get("iceberg", {}).get("streamed", {})
    since = _last_snapshot_read(_offset(offsets.start), known)
    reached = _last_snapshot_read(end, known)
    if reached is None:  # the checkpoint says where it goes on, and the table no longer tells what was before
        return (ReadVersion(version=end.text, since=since, changes=True),)
    is_state = end.is_state or (since is None and _is_first(reached, end, known))
    return (ReadVersion(reached.snapshot, reached.version, since, changes=not is_state),)


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    start = _offset(offsets.start)
    asked = "stream-from-timestamp" in stream_options(node)
    reason = StartReason.REQUESTED if asked else StartReason.EARLIEST
    return StreamStart(None if start is None or start.snapshot < 0 else start.snapshot, reason=reason)


def _last_snapshot_read(offset: _Offset | None, known: Mapping[str, Mapping[str, int]]) -> RangeStart | None:
    """The last snapshot of which something was read, and where in it that ended; none before the first."""
    if offset is None or offset.snapshot < 0:
        return None
    fields = known.get(str(offset.snapshot), {})
    if offset.position == 0:
        return RangeStart(snapshot=fields["parent"]) if "parent" in fields else None
    whole = fields.get("added") == offset.position
    return RangeStart(snapshot=offset.snapshot, version=None if whole else offset.text)


def _is_first(reached: RangeStart, end: _Offset, known: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether it is all of a table's first snapshot: what that added is all that there is."""
    fields = known.get(str(end.snapshot), {})
    if reached.version is not None or not fields:
        return False
    return "parent" not in fields if reached.snapshot == end.snapshot else bool(fields.get("second"))


def _offset(text: str | None) -> _Offset | None:
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return _Offset(int(fields["snapshot_id"]), int(fields["position"]), bool(fields.get("scan_all_files", False)))
    except (ValueError, KeyError, TypeError):
        return None
