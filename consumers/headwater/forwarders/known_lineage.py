"""The JobLineage events that a forwarder has seen: a Committed names one of them by its fingerprint."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from headwater.events.avro import Codec, DecodeError
from headwater.events.clock import wall_micros
from headwater.events.jobs import JobLineage
from headwater.forwarders.state import ForwarderState

MOST: Final = 10_000
"""So many are on disk; those that weren't repeated for longest go first."""
CACHE_BYTES: Final = 8 << 20
"""So many bytes of events are in memory, counted as they are on disk."""
_LARGEST: Final = 256 << 20


class LineageCache:
    """Keeps them on disk, and the newest in memory. Any thread may ask."""

    def __init__(self, state: ForwarderState, *, most: int = MOST, cache_bytes: int = CACHE_BYTES) -> None:
        self._state = state
        self._codec = Codec(max_bytes=_LARGEST)
        self._most = most
        self._cache_bytes = cache_bytes
        self._cache: OrderedDict[bytes, tuple[JobLineage, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def remember(self, events: Iterable[JobLineage]) -> None:
        """Keep events, each of them whole. They are on disk when this returns."""
        newest = {event.fingerprint: event for event in events}
        if not newest:
            return
        rows = [(fingerprint, self._codec.encode(each), wall_micros()) for fingerprint, each in newest.items()]
        with self._state.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO lineage VALUES (?, ?, ?)", rows)
            connection.execute(
                "DELETE FROM lineage WHERE seen < (SELECT seen FROM lineage ORDER BY seen DESC LIMIT 1 OFFSET ?)",
                (self._most - 1,),
            )
        for fingerprint, data, _ in rows:
            self._put(fingerprint, newest[fingerprint], len(data))

    def get(self, fingerprint: bytes) -> JobLineage | None:
        with self._lock:
            found = self._cache.get(fingerprint)
            if found is not None:
                self._cache.move_to_end(fingerprint)
                return found[0]
        return self._load(fingerprint)

    def _load(self, fingerprint: bytes) -> JobLineage | None:
        rows = self._state.select("SELECT event FROM lineage WHERE fingerprint = ?", fingerprint)
        if not rows:
            return None
        (data,) = rows[0]
        try:
            event = self._codec.decode(data)
        except DecodeError:
            return None
        if not isinstance(event, JobLineage):  # a newer headwater wrote it
            return None
        self._put(fingerprint, event, len(data))
        return event

    def _put(self, fingerprint: bytes, event: JobLineage, size: int) -> None:
        with self._lock:
            before = self._cache.pop(fingerprint, None)
            self._size += size - (before[1] if before else 0)
            self._cache[fingerprint] = (event, size)
            while self._size > self._cache_bytes and len(self._cache) > 1:
                self._size -= self._cache.popitem(last=False)[1][1]
