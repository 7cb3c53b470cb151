"""Flushes a bucket on a thread with a connection of its own.

Rows stay in the bucket until the store acknowledges them. After a failure or a timeout the next flush writes everything
that is in the bucket by then; writing rows twice changes nothing.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final

from headwater.consumers.writer.coordinated.buckets import Bucket
from headwater.consumers.writer.coordinated.connections import StoreConnection
from headwater.errors import TransientError
from headwater.lineage.bulk import MergeResult, WriteBatch
from headwater.lineage.rows import Row
from headwater.lineage.sql.errors import StoreDataError

_SHORTEST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 15.0


class BucketWriter:
    """Writes one bucket. Its thread calls `notify` when something has changed."""

    def __init__(self, number: int, bucket: Bucket, connection: StoreConnection, notify: Callable[[], None]) -> None:
        self.bucket = bucket
        self.connection = connection
        self.flushes: list[tuple[MergeResult, float]] = []
        """With their seconds, those that nobody has counted yet."""
        self.trouble: str | None = None
        """Why it waits, in the store's words."""
        self.failure: BaseException | None = None
        """Why it has ended."""
        self._notify = notify
        self._thread = threading.Thread(target=self._run, name=f"headwater-bucket-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout: float) -> None:
        """Stop the thread. A running flush is aborted if it doesn't end in time."""
        self.bucket.close()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._thread.is_alive():
            self.connection.abort()
            self._thread.join(timeout)
        self.connection.close()

    def _run(self) -> None:
        wait = _SHORTEST_WAIT
        while (rows := self.bucket.wait_until_due()) is not None:
            try:
                self._flush(rows)
            except StoreDataError:
                self.bucket.mark_refused(len(rows))
            except TransientError as e:
                self.trouble = str(e)
                self._notify()
                self.bucket.pause(wait * random.uniform(0.5, 1))  # noqa: S311 - no secret
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            except BaseException as e:  # noqa: BLE001 - whoever waits for it raises it
                self.failure = e
                self._notify()
                return
            wait, self.trouble = _SHORTEST_WAIT, None
            self._notify()

    def _flush(self, rows: list[Row]) -> None:
        began = time.monotonic()
        merged = self.connection.merge(WriteBatch(rows))
        self.bucket.acknowledge(len(rows))
        self.flushes.append((merged, time.monotonic() - began))
