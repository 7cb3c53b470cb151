"""Offsets of topics as versions, and what a stream read by the offsets of its checkpoint: `{"topic":{"0":4,"1":7}}`.

A version is a text: for each partition the offset behind the last record that was read, as `{"0":42,"1":17}`. `since`
is the version before. A topic that was read from its beginning, wherever that was, was read as a state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange

_START_WORDS: Final = {"latest": StartReason.LATEST, "earliest": StartReason.EARLIEST}
_START_OPTIONS: Final = ("startingtimestamp", "startingoffsetsbytimestamp")
"""Both go before offsets."""


def versions_of(source: SourceRelation, offsets: OffsetRange) -> tuple[ReadVersion, ...]:
    """None where this topic gave nothing, whatever the others of the subscription did."""
    topic: str = source.hints.get("topic", "")
    ends, starts = _parse_offsets(offsets.end), _parse_offsets(offsets.start)
    if ends is None or (offsets.start is not None and starts is None):
        return (ReadVersion(changes=True, why="the offsets of this stream can't be read"),)
    if topic not in ends:
        return ()
    start = (starts or {}).get(topic)
    if start == ends[topic]:
        return ()
    since = None if start is None else RangeStart(version=text_of(start))
    return (ReadVersion(version=text_of(ends[topic]), since=since, changes=True),)


def topics_in(offsets: OffsetRange) -> tuple[str, ...]:
    return tuple(_parse_offsets(offsets.end) or ())


def start_of(source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
    options = stream_options(node)
    asked = any(options.get(option) for option in _START_OPTIONS)
    word = options.get("startingoffsets", "latest").strip().lower()
    reason = StartReason.REQUESTED if asked else _START_WORDS.get(word, StartReason.REQUESTED)
    start = (_parse_offsets(offsets.start) or {}).get(source.hints.get("topic", ""))
    return StreamStart(version=None if start is None else text_of(start), reason=reason)


def _parse_offsets(text: str | None) -> Mapping[str, Mapping[str, int]] | None:
    """None where the text isn't there, or isn't what Spark writes."""
    try:
        by_topic: Any = json.loads(text or "")
        return {topic: {str(int(p)): int(o) for p, o in partitions.items()} for topic, partitions in by_topic.items()}
    except (AttributeError, TypeError, ValueError):
        return None


Ranges = Mapping[str, Sequence[int]]
"""By partition: from which offset, and up to which; what is below zero was found by the executors."""
UNSEEN: Final = "up to which offset it was read isn't known: the latest is found on the executors while they read"


def version_of(ranges: Ranges) -> ReadVersion:
    """What a batch read of one topic."""
    starts = {partition: bounds[0] for partition, bounds in ranges.items()}
    ends = {partition: bounds[1] for partition, bounds in ranges.items()}
    is_known = bool(ends) and min(ends.values()) >= 0
    since = RangeStart(version=text_of(starts)) if starts and min(starts.values()) >= 0 else None
    return ReadVersion(
        version=text_of(ends) if is_known else None,
        since=since,
        changes=since is not None,
        why=None if is_known else UNSEEN,
    )


def text_of(offsets: Mapping[str, int]) -> str:
    """By the number of the partition."""
    ordered = sorted(offsets.items(), key=lambda partition: int(partition[0]))
    return json.dumps(dict(ordered), separators=(",", ":"))
