"""The dead-letter topic: what couldn't be stored is also where tools for Kafka look for it.

The store's table is the truth, which was written in one transaction with the offsets. Each letter says there whether
it was sent. One that wasn't, because a broker was away or somebody was killed, is sent when that is possible: at least
once. All of this has its own thread, and nothing waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from typing_extensions import Self

from headwater.consumers.writer.vitals import Vitals
from headwater.errors import HeadwaterError, TransientError
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter

_LOG: Final = logging.getLogger(__name__)
_AT_ONCE: Final = 20
"""Each may have a megabyte."""
_LOOK_SECONDS: Final = 1.0
"""Between two looks at whether this writer has told new letters."""
_ALWAYS_SECONDS: Final = 60.0
"""Between two looks into the table, for those of others that were killed."""
_LONGEST_WAIT: Final = 60.0
_CLOSING_SECONDS: Final = 5.0


class Sender(Protocol):
    """Where letters are sent."""

    def cluster(self) -> str:
        """Whose letters they are."""
        ...

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """All of them are there when this comes back. A HeadwaterError otherwise: none of them has to be."""
        ...

    def idle(self) -> None:
        """Now and then, between two sendings."""
        ...

    def close(self) -> None: ...


class Mirror:
    """From `with` to its end."""

    def __init__(
        self,
        store: BulkLineageMeta,
        topic: str,
        sender: Callable[[], Sender],
        vitals: Vitals,
        *,
        others: Iterable[BulkLineageMeta] = (),
    ) -> None:
        """`others` are stores of catalogs: what one of them refused is in its own table."""
        self._stores = (store, *others)
        self._topic = topic
        self._open = sender
        self._vitals = vitals
        self._sender: Sender | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-mirror", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """What isn't there by then, the next writer sends."""
        self._stop.set()
        self._thread.join(_CLOSING_SECONDS)

    def step(self) -> int:
        """Send what waits; how many."""
        if self._sender is None:
            self._sender = self._open()
        cluster, count = self._sender.cluster(), 0
        for store in self._stores:
            while some := store.unsent_letters(cluster, self._topic, _AT_ONCE):
                self._sender.send([letter for _, letter in some])
                store.letters_sent(name for name, _ in some)
                self._vitals.mirrored += len(some)
                count += len(some)
        return count

    def _run(self) -> None:
        seen, idle, wait, before = -1, 0.0, _LOOK_SECONDS, ""
        while True:
            is_last, told = self._stop.is_set(), self._vitals.letters
            if told != seen or idle >= _ALWAYS_SECONDS or is_last:
                words = self._tried()
                if words and words != before:
                    _LOG.warning("dead letters wait in the store's table for their topic: %s", words)
                before = words
                seen, idle = (-1 if words else told), 0.0
                wait = min(2 * wait, _LONGEST_WAIT) if words else _LOOK_SECONDS
            if is_last:
                break
            if self._sender is not None:
                self._sender.idle()
            self._stop.wait(wait)
            idle += wait
        if self._sender is not None:
            self._sender.close()

    def _tried(self) -> str:
        """Why it can't be done now. Whatever it is, the writer goes on."""
        try:
            self.step()
        except HeadwaterError as e:
            self._vitals.mirror_troubles += 1
            return f"{e}{'' if isinstance(e, TransientError) else ' (it is tried again)'}"
        return ""
