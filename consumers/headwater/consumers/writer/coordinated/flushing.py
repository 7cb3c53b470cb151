"""The writer of a bucket: a thread with a connection of its own.

What it flushes is cleared from the bucket when the store has acknowledged it. Where that fails, or takes too long, all
that is in the bucket by then is written by the next flush; the same rows twice are the same rows.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final

from headwater.consumers.writer.coordinated.buckets import Bucket
from headwater.consumers.writer.coordinated.lanes import Lane
from headwater.errors import TransientError
from headwater.lineage.bulk import Merged, Work
from headwater.lineage.rows import Row
from headwater.lineage.sql.troubles import StoreDataError

_SHORTEST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 15.0


class BucketWriter:
    """`told` is called whenever there is news, from the thread."""

    def __init__(self, number: int, bucket: Bucket, lane: Lane, told: Callable[[], None]) -> None:
        self.bucket = bucket
        self.lane = lane
        self.flushes: list[tuple[Merged, float]] = []
        """With their seconds, those that nobody has counted yet."""
        self.trouble: str | None = None
        """Why it waits, in the store's words."""
        self.failure: BaseException | None = None
        """Why it has ended."""
        self._told = told
        self._thread = threading.Thread(target=self._run, name=f"headwater-bucket-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout: float) -> None:
        """What is being flushed is given up, or finished, but not waited for any longer."""
        self.bucket.close()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._thread.is_alive():
            self.lane.cut()
            self._thread.join(timeout)
        self.lane.close()

    def _run(self) -> None:
        wait = _SHORTEST_WAIT
        while (rows := self.bucket.due()) is not None:
            try:
                self._flush(rows)
            except StoreDataError:
                self.bucket.hand_over(len(rows))
            except TransientError as e:
                self.trouble = str(e)
                self._told()
                self.bucket.rest(wait * random.uniform(0.5, 1))  # noqa: S311 - no secret
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            except BaseException as e:  # noqa: BLE001 - whoever waits for it raises it
                self.failure = e
                self._told()
                return
            wait, self.trouble = _SHORTEST_WAIT, None
            self._told()

    def _flush(self, rows: list[Row]) -> None:
        began = time.monotonic()
        merged = self.lane.merge(Work(rows))
        self.bucket.acknowledge(len(rows))
        self.flushes.append((merged, time.monotonic() - began))
