"""How far topics were read, as versions: pure functions of what Spark says.

A version is a text, the offset behind the last record that was read, for each partition: `{"0":42,"1":17}`. What came
before is `since`. A topic that was read from its beginning, wherever that was, was read as a state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.events import Since
from headwater.listeners.capture.formats.protocol import Version

Ranges = Mapping[str, Sequence[int]]
"""By partition: from which offset, and up to which; what is below zero was found by the executors."""
UNSEEN: Final = "up to which offset it was read isn't known: the latest is found on the executors while they read"


def version_of(ranges: Ranges) -> Version:
    """What a batch read of one topic."""
    starts = {partition: bounds[0] for partition, bounds in ranges.items()}
    ends = {partition: bounds[1] for partition, bounds in ranges.items()}
    is_known = bool(ends) and min(ends.values()) >= 0
    since = Since(version=text_of(starts)) if starts and min(starts.values()) >= 0 else None
    return Version(
        version=text_of(ends) if is_known else None,
        since=since,
        changes=since is not None,
        why=None if is_known else UNSEEN,
    )


def text_of(offsets: Mapping[str, int]) -> str:
    """By the number of the partition."""
    ordered = sorted(offsets.items(), key=lambda each: int(each[0]))
    return json.dumps(dict(ordered), separators=(",", ":"))
