"""What a stream read of a Delta table, by the offsets that its source writes into the checkpoint.

An offset is the next file to be read: version 7 with the lowest index says that all of version 6 was read. While the
table that was there first is being read, files are counted over its whole state. A query that begins anew reads that
state, unless it asks for a version, and then goes on with what is added to it.
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

_BEFORE: Final = frozenset({-1, -100})
"""The index in front of a version's first file, as older and newer sources write it."""
_BEHIND: Final = 1 << 62
"""Larger ones stand behind a version's last file."""


@dataclass(frozen=True)
class _Point:
    """How far was read: all of this version, or of its files those below an index."""

    version: int
    index: int | None = None
    is_state: bool = False
    """The files are those of the table's whole state at that version."""

    @property
    def text(self) -> str | None:
        return None if self.index is None else f"{self.version}:{self.index}"


def versions_of(node: Node, took: Took) -> tuple[Version, ...]:
    end = _point(took.end)
    if end is None:
        return (Version(why="the offset of this stream can't be read"),)
    start = _point(took.start)
    if start is None:
        return (_first(node, end),)
    since = Since(snapshot=start.version, version=start.text)
    return (Version(end.version, end.text, since, changes=not end.is_state),)


def beginning_of(node: Node, took: Took) -> Begins:
    options = stream_options(node)
    asked = options.get("startingversion", "")
    if asked.isdecimal():
        return Begins(snapshot=int(asked), reason=StartReason.REQUESTED)
    if asked == "latest":
        return Begins(reason=StartReason.LATEST)
    if "startingtimestamp" in options:
        return Begins(reason=StartReason.REQUESTED)
    end = _point(took.end)
    return Begins(snapshot=end.version if end and end.is_state else None, reason=StartReason.EARLIEST)


def _first(node: Node, end: _Point) -> Version:
    """What is read first, with nothing before it: a state, or changes from a version on that was asked for."""
    options = stream_options(node)
    asked = options.get("startingversion")
    if asked is None and "startingtimestamp" not in options:
        return Version(end.version, end.text)
    since = Since(snapshot=int(asked) - 1) if asked and asked.isdecimal() and asked != "0" else None
    return Version(end.version, end.text, since, changes=True)


def _point(offset: str | None) -> _Point | None:
    if offset is None:
        return None
    try:
        told = json.loads(offset)
        version, index = int(told["reservoirVersion"]), int(told["index"])
        is_state = bool(told.get("isStartingVersion", False))
    except (ValueError, KeyError, TypeError):
        return None
    if index in _BEFORE:
        return _Point(version - 1) if not is_state else _Point(version, -1, is_state=True)
    return _Point(version, None if index > _BEHIND else index, is_state)
