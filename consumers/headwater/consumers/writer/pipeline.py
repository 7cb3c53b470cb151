"""What becomes of a mini-batch: its events are mapped to rows, and these are merged with the offsets.

A `Pipeline` does that in one process or in several. The runner gives it mini-batches in the order of the bus; several
are under way at once, and they are stored in order.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from headwater.consumers.retrying import Retrier
from headwater.consumers.sources import SourceBatch
from headwater.lineage.bulk import DeadLetter

STORE: Final = "the store"
"""What a pipeline waits for, as logs and metrics call it."""


class Transaction(NamedTuple):
    """A transaction that merged rows."""

    seconds: float
    rows: int


@dataclass(frozen=True)
class BatchResult:
    """The outcome of a mini-batch."""

    rows: int = 0
    retries: int = 0
    dead_letters: tuple[DeadLetter, ...] = ()
    left_out: int = 0
    """How many rows were omitted because the store has them."""
    transactions: Sequence[Transaction] = ()
    cpu_seconds: Mapping[str, float] | None = None
    """The processor time of each process so far, where there are several."""


class Pipeline(ABC):
    """Processes mini-batches. All methods are called on the event loop's thread."""

    readers = 1
    """So many processes map."""
    most_in_flight = 2
    """So many mini-batches are under way: one is stored while the next one is mapped."""
    most_bytes = 16 << 20
    """With so many bytes of events a mini-batch is full."""
    threads = 8
    """How many threads it needs, the source's among them."""

    async def begin(self, retrier: Retrier) -> None:
        """Begin a round, which ends with the first failure. `retrier` waits for the store until the round ends."""
        self._retrier = retrier

    @property
    @abstractmethod
    def can_map(self) -> bool:
        """Whether a mini-batch would be mapped at once."""

    @abstractmethod
    async def process(self, batch: SourceBatch, previous: asyncio.Task[Any] | None) -> BatchResult:
        """Store a mini-batch behind the previous one. After an error it has to be polled again."""

    def halt(self) -> None:  # noqa: B027 - threads of this process can't be ended
        """Let what is under way fail soon, where that is possible."""

    async def end(self) -> None:  # noqa: B027 - nothing is left of them
        """End the round, once nothing is under way any more."""

    @abstractmethod
    def start_over(self) -> None:
        """Forget what the store had: it was set back, and the bus is read again from its offsets."""


class OneProcess(Pipeline):
    """Maps in `prepare` on one thread and merges in `store` on another: they overlap."""

    async def begin(self, retrier: Retrier) -> None:
        await super().begin(retrier)
        self._mapping = asyncio.Lock()

    @property
    def can_map(self) -> bool:
        return not self._mapping.locked()

    async def process(self, batch: SourceBatch, previous: asyncio.Task[Any] | None) -> BatchResult:
        async with self._mapping:
            prepared = await asyncio.to_thread(self.prepare, batch)
        if previous is not None:
            await previous
        began = time.monotonic()
        result = await self._retrier.run(STORE, lambda: self.store(prepared))
        return replace(result, transactions=[Transaction(time.monotonic() - began, result.rows)])

    @abstractmethod
    def prepare(self, batch: SourceBatch) -> Any:
        """Map the events, and return what `store` needs."""

    @abstractmethod
    def store(self, prepared: Any) -> BatchResult:
        """Store what was prepared. If it raises an error, nothing is lost; storing it again is safe. After
        StoreSetBack it has to be polled again."""
