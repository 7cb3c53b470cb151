"""Marks on fields that say how an event that is too large may be cut into parts (see `parts`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The elements of this tuple or map may go to different parts; everything unmarked is in every part."""


@dataclass(frozen=True)
class IndexesInto:
    """These numbers are indexes into the named tuple of the event. Where that is spread, each part holds the indexes
    of the elements that it has, counted within the part, so that a part can be stored without the others."""

    field: str


@dataclass(frozen=True)
class Shorten:
    """A text for people: where an event is too large it loses its end, and says so. Facts are never shortened."""
