"""What a stream read of an Iceberg table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and how many of the files that it added were read. Whether those are all of them, and which
snapshot came before, the table's metadata tells: the eye looks it up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.events import Since, StartReason
from headwater.listeners.capture.formats.protocol import Begins, Version
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.statements import Facts, Took


@dataclass(frozen=True)
class _Offset:
    snapshot: int
    position: int
    is_state: bool
    """All files of the snapshot's state are read, not only those that it added."""

    @property
    def text(self) -> str:
        return f"{self.snapshot}:{self.position}"


def versions_of(took: Took, facts: Facts) -> tuple[Version, ...]:
    end = _offset(took.end)
    if end is None:
        return (Version(why="the offset of this stream can't be read"),)
    known = facts.looked_up.get("iceberg", {}).get("streamed", {})
    since = _reached(_offset(took.start), known)
    reached = _reached(end, known)
    if reached is None:  # the checkpoint says where it goes on, and the table no longer tells what was before
        return (Version(version=end.text, since=since, changes=True),)
    is_state = end.is_state or (since is None and _is_first(reached, end, known))
    return (Version(reached.snapshot, reached.version, since, changes=not is_state),)


def beginning_of(node: Node, took: Took) -> Begins:
    start = _offset(took.start)
    asked = "stream-from-timestamp" in stream_options(node)
    reason = StartReason.REQUESTED if asked else StartReason.EARLIEST
    return Begins(None if start is None or start.snapshot < 0 else start.snapshot, reason=reason)


def _reached(offset: _Offset | None, known: Mapping[str, Mapping[str, int]]) -> Since | None:
    """The last snapshot of which something was read, and where in it that ended; none before the first."""
    if offset is None or offset.snapshot < 0:
        return None
    told = known.get(str(offset.snapshot), {})
    if offset.position == 0:
        return Since(snapshot=told["parent"]) if "parent" in told else None
    whole = told.get("added") == offset.position
    return Since(snapshot=offset.snapshot, version=None if whole else offset.text)


def _is_first(reached: Since, end: _Offset, known: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether it is all of a table's first snapshot: what that added is all that there is."""
    told = known.get(str(end.snapshot), {})
    if reached.version is not None or not told:
        return False
    return "parent" not in told if reached.snapshot == end.snapshot else bool(told.get("second"))


def _offset(text: str | None) -> _Offset | None:
    if text is None:
        return None
    try:
        told = json.loads(text)
        return _Offset(int(told["snapshot_id"]), int(told["position"]), bool(told.get("scan_all_files", False)))
    except (ValueError, KeyError, TypeError):
        return None
