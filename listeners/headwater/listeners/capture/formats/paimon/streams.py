"""What a stream read of a Paimon table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and the last of its splits that was read. A batch ends within a snapshot only where the query
limits how much one may take.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from headwater.events import Since, StartReason
from headwater.listeners.capture.formats.protocol import Begins, Version
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.statements import Took

_LIMITS: Final = "read.stream."
_ASKED: Final = ("scan.snapshot-id", "scan.timestamp", "scan.timestamp-millis", "scan.tag-name", "scan.version")


@dataclass(frozen=True)
class _Offset:
    snapshot: int
    index: int
    is_state: bool
    """The snapshot's whole state is read, not what it added."""


def versions_of(node: Node, took: Took) -> tuple[Version, ...]:
    end, start = _offset(took.end), _offset(took.start)
    if end is None:
        return (Version(why="the offset of this stream can't be read"),)
    limited = any(key.startswith(_LIMITS) for key in stream_options(node))
    since = None if start is None else _since(start, end, limited=limited)
    version = f"{end.snapshot}:{end.index}" if limited else None
    return (Version(end.snapshot, version, since, changes=not end.is_state),)


def _since(start: _Offset, end: _Offset, *, limited: bool) -> Since | None:
    """Before a snapshot's first split nothing of it was read, and snapshots are numbered one after the other."""
    if start.index >= 0:
        return Since(snapshot=start.snapshot, version=f"{start.snapshot}:{start.index}" if limited else None)
    return None if end.is_state or start.snapshot <= 1 else Since(snapshot=start.snapshot - 1)


def beginning_of(node: Node, took: Took) -> Begins:
    options = stream_options(node)
    end = _offset(took.end)
    snapshot = end.snapshot if end is not None and end.is_state else None
    if any(key in options for key in _ASKED):
        return Begins(snapshot, reason=StartReason.REQUESTED)
    latest = options.get("scan.mode") == "latest"
    return Begins(snapshot, reason=StartReason.LATEST if latest else StartReason.EARLIEST)


def _offset(text: str | None) -> _Offset | None:
    if text is None:
        return None
    try:
        told = json.loads(text)
        return _Offset(int(told["snapshotId"]), int(told["index"]), bool(told.get("scanSnapshot", False)))
    except (ValueError, KeyError, TypeError):
        return None
