"""Copies dead letters to a topic, where Kafka's tools can find them.

The store's table is authoritative; it is written in one transaction with the offsets. It records which letters were
sent. Letters that couldn't be sent, because a broker was unreachable or a writer was killed, are sent later, at least
once. This runs on its own thread, and nothing waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from typing_extensions import Self

from headwater.consumers.writer.metrics import WriterMetrics
from headwater.errors import HeadwaterError, TransientError
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter

_LOG: Final = logging.getLogger(__name__)
_AT_ONCE: Final = 20
"""How many letters are sent together; each can have a megabyte."""
_LOOK_SECONDS: Final = 1.0
"""How often the mirror checks whether this writer has new letters."""
_ALWAYS_SECONDS: Final = 60.0
"""How often it checks the table for letters of writers that were killed."""
_LONGEST_WAIT: Final = 60.0
_CLOSING_SECONDS: Final = 5.0


class DeadLetterSender(Protocol):
    """Sends dead letters."""

    def cluster(self) -> str:
        """Return the id of the cluster whose letters it sends."""
        ...

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """Send letters and wait for the acknowledgements. After a HeadwaterError some may have been sent."""
        ...

    def idle(self) -> None:
        """Serve callbacks. Called between sends."""
        ...

    def close(self) -> None: ...


class DeadLetterMirror:
    """Sends dead letters on a thread while its `with` block runs."""

    def __init__(
        self,
        store: BulkLineageMeta,
        topic: str,
        sender: Callable[[], DeadLetterSender],
        metrics: WriterMetrics,
        *,
        others: Iterable[BulkLineageMeta] = (),
    ) -> None:
        """`others` are stores of catalogs, which have tables of their own."""
        self._stores = (store, *others)
        self._topic = topic
        self._open = sender
        self._vitals = metrics
        self._sender: DeadLetterSender | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-mirror", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop. The next writer sends what remains."""
        self._stop.set()
        self._thread.join(_CLOSING_SECONDS)

    def send_pending(self) -> int:
        """Send what is pending and return the number."""
        if self._sender is None:
            self._sender = self._open()
        cluster, count = self._sender.cluster(), 0
        for store in self._stores:
            while some := store.unsent_dead_letters(cluster, self._topic, _AT_ONCE):
                self._sender.send([letter for _, letter in some])
                store.mark_dead_letters_sent(name for name, _ in some)
                self._vitals.mirrored += len(some)
                count += len(some)
        return count

    def _run(self) -> None:
        seen, idle, wait, before = -1, 0.0, _LOOK_SECONDS, ""
        while True:
            is_last, count_before = self._stop.is_set(), self._vitals.dead_letters
            if count_before != seen or idle >= _ALWAYS_SECONDS or is_last:
                words = self._try_to_send()
                if words and words != before:
                    _LOG.warning("dead letters wait in the store's table for their topic: %s", words)
                before = words
                seen, idle = (-1 if words else count_before), 0.0
                wait = min(2 * wait, _LONGEST_WAIT) if words else _LOOK_SECONDS
            if is_last:
                break
            if self._sender is not None:
                self._sender.idle()
            self._stop.wait(wait)
            idle += wait
        if self._sender is not None:
            self._sender.close()

    def _try_to_send(self) -> str:
        """Try to send, and return the error message if that fails. The writer goes on in any case."""
        try:
            self.send_pending()
        except HeadwaterError as e:
            self._vitals.mirror_errors += 1
            return f"{e}{'' if isinstance(e, TransientError) else ' (it is tried again)'}"
        return ""
