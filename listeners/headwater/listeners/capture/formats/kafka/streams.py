"""What a stream read of topics, by the offsets that it writes into its checkpoint: `{"topic":{"0":4,"1":7}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Since, StartReason
from headwater.listeners.capture.formats.kafka.offsets import text_of
from headwater.listeners.capture.formats.protocol import Begins, Described, Version
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.statements import Took

_WORDS: Final = {"latest": StartReason.LATEST, "earliest": StartReason.EARLIEST}
_ASKED: Final = ("startingtimestamp", "startingoffsetsbytimestamp")
"""Both go before offsets."""


def versions_of(source: Described, took: Took) -> tuple[Version, ...]:
    """None where this topic gave nothing, whatever the others of the subscription did."""
    topic: str = source.hints.get("topic", "")
    ends, starts = _offsets(took.end), _offsets(took.start)
    if ends is None or (took.start is not None and starts is None):
        return (Version(changes=True, why="the offsets of this stream can't be read"),)
    if topic not in ends:
        return ()
    start = (starts or {}).get(topic)
    if start == ends[topic]:
        return ()
    since = None if start is None else Since(version=text_of(start))
    return (Version(version=text_of(ends[topic]), since=since, changes=True),)


def topics_in(took: Took) -> tuple[str, ...]:
    return tuple(_offsets(took.end) or ())


def beginning_of(source: Described, node: Node, took: Took) -> Begins:
    options = stream_options(node)
    asked = any(options.get(each) for each in _ASKED)
    word = options.get("startingoffsets", "latest").strip().lower()
    reason = StartReason.REQUESTED if asked else _WORDS.get(word, StartReason.REQUESTED)
    start = (_offsets(took.start) or {}).get(source.hints.get("topic", ""))
    return Begins(version=None if start is None else text_of(start), reason=reason)


def _offsets(text: str | None) -> Mapping[str, Mapping[str, int]] | None:
    """None where the text isn't there, or isn't what Spark writes."""
    try:
        told: Any = json.loads(text or "")
        return {topic: {str(int(p)): int(o) for p, o in partitions.items()} for topic, partitions in told.items()}
    except (AttributeError, TypeError, ValueError):
        return None
