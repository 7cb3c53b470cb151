"""Hudi in structured streaming: what a source's offsets say was read, and which tables sources and sinks are.

An offset is the time at which the newest instant that was read had been completed, so that an instant which was asked
for earlier and completed later is read in the next batch.
"""

from __future__ import annotations

import json
from typing import Final

from headwater.events import Since
from headwater.events.identity import Site
from headwater.events.names import DatasetId
from headwater.listeners.capture.formats.hudi.places import placed
from headwater.listeners.capture.formats.protocol import Version

_OFFSET: Final = "offsetCommitTime"
_START: Final = "000"
"""What Hudi calls the time before the first instant."""
_SOURCES: Final = ("HoodieStreamSourceV1[", "HoodieStreamSourceV2[", "HoodieStreamSource[")
_SINK: Final = "HoodieStreamingSink["


def offset_of(text: str | None) -> int | None:
    """The number in a source's offset; None where there is none, and at the beginning."""
    if not text:
        return None
    found = str(json.loads(text)[_OFFSET])
    return None if found == _START or not found.isdecimal() or int(found) == 0 else int(found)


def range_of(start: str | None, end: str) -> Version | None:
    """What a batch between two offsets read; None where they are the same: nothing was."""
    first, last = offset_of(start), offset_of(end)
    if last is None or first == last:
        return None
    return Version(version=str(last), since=None if first is None else Since(version=str(first)), changes=True)


def dataset_in(description: str, site: Site) -> DatasetId | None:
    """The table of a source or sink that is described as `HoodieStreamingSink[path]`; None where it isn't Hudi's."""
    for word in (*_SOURCES, _SINK):
        if description.startswith(word) and description.endswith("]"):
            return placed(description[len(word) : -1], site)
    return None
