"""Fingerprints of shapes, computed once for each: a statement that is repeated has the shape it had before."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from headwater.events import ShapedSink
from headwater.events.redaction import Redactor
from headwater.listeners.capture.batch.shapes import ShapeOfWrite, fingerprinted

_KEPT: Final = 2_000
"""As many as the teller keeps shapes."""
Sinks = tuple[ShapedSink, ...]


class Fingerprints:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: OrderedDict[int, tuple[ShapeOfWrite, Sinks, bytes]] = OrderedDict()
        """By the shape's identity: comparing two would cost as much as the fingerprint. The shape itself is kept too,
        so that no other one gets its identity."""

    def of(self, shape: ShapeOfWrite, sinks: Sinks) -> bytes:
        """Of a shape that is written into these sinks."""
        known = self._known.get(id(shape))
        if known is not None and known[1] == sinks:
            return known[2]
        found = fingerprinted(shape.sources, sinks, shape.columns, self._redactor)
        self._known[id(shape)] = (shape, sinks, found)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found
