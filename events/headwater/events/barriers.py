"""Barrier ids: one LONG per commit of a job, growing, unique within its incarnation and over runs.

`(milliseconds << 20) + n`. A batch commit takes its own milliseconds, and for n 10 bits of the producer and a counter
of 10 bits. A micro-batch takes the milliseconds at which the incarnation began, the same after every restart, and for n
its batch id: re-run after a crash it is the same barrier. Batch ids above 20 bits carry over into the milliseconds,
which keeps the order within the incarnation.
"""

from __future__ import annotations

import threading
from typing import Final
from uuid import UUID

_N_BITS: Final = 20
_COUNTER_BITS: Final = 10
_COUNTERS: Final = 1 << _COUNTER_BITS
MAX_MILLIS: Final = (2**63 - 1) >> _N_BITS
"""Some day in 2248."""


def stream_barrier(began_millis: int, batch_id: int) -> int:
    """The barrier of a micro-batch of the incarnation that began then."""
    if batch_id < 0:
        raise ValueError(f"a batch id counts from 0, but this one is {batch_id}")
    barrier = (_check(began_millis) << _N_BITS) + batch_id
    _check(barrier >> _N_BITS)
    return barrier


def millis_of(barrier: int) -> int:
    """When a batch committed; for a stream, when its incarnation began (for its first million batches)."""
    return barrier >> _N_BITS


class BatchBarriers:
    """Hands out the barriers of one producer's batch commits. Thread-safe."""

    def __init__(self, producer: UUID) -> None:
        self._producer_bits = (producer.int & (_COUNTERS - 1)) << _COUNTER_BITS
        self._lock = threading.Lock()
        self._last = (-1, 0)

    def next(self, millis: int) -> int:
        """A barrier greater than all before it, at these milliseconds if they aren't used up or gone by."""
        with self._lock:
            self._last = self._next_after(_check(millis))
            at, counter = self._last
        return (at << _N_BITS) + self._producer_bits + counter

    def _next_after(self, millis: int) -> tuple[int, int]:
        last, counter = self._last
        if millis > last:
            return millis, 0
        if counter + 1 < _COUNTERS:
            return last, counter + 1
        return last + 1, 0


def _check(millis: int) -> int:
    if not 0 <= millis <= MAX_MILLIS:
        raise ValueError(f"milliseconds since 1970 must be from 0 to {MAX_MILLIS}, but these are {millis}")
    return millis
