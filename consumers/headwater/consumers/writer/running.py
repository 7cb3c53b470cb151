"""A writer's life: while one batch is merged the next is polled and prepared; where waiting helps it waits, and says
why; when it is told to stop it finishes what it has in its hands.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final, Protocol

from headwater.consumers.sources import Batch, Source
from headwater.consumers.writer.accounts import count, look
from headwater.consumers.writer.patience import Patience, Stopped
from headwater.consumers.writer.plain import Prepared, Written
from headwater.consumers.writer.vitals import Vitals

_LOOK_SECONDS: Final = 5.0
"""Between two looks at how much is still to be read: a broker is asked for it."""


class HasBatch(Protocol):
    """A batch on its way."""

    @property
    def batch(self) -> Batch: ...


class Pipeline(Protocol):
    """`prepare` is for one thread at a time, `store` for another, which is given what that one made."""

    def prepare(self, batch: Batch) -> Any: ...

    def store(self, prepared: Any) -> Written:
        """All of it is stored when this comes back. Where it raises, the same is stored again, or comes again."""
        ...


class Runner:
    """One writer. All calls of the source are made one after the other."""

    def __init__(
        self,
        source: Source,
        pipeline: Pipeline,
        *,
        most: int = 5_000,
        idle: float = 0.1,
        until_end: bool = False,
    ) -> None:
        self.vitals = Vitals()
        self._source = source
        self._pipeline = pipeline
        self._most = most
        self._idle = idle
        self._until_end = until_end
        self._stop = asyncio.Event()
        self._patience = Patience(self.vitals, self._stop)
        self._look_at = 0.0

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """From the loop's own thread: finish what was polled, and end."""
        self._stop.set()

    async def run(self) -> None:
        """Until it is stopped, or at the end of the bus where that was asked for. A TerminalError is raised: somebody
        has to change something first."""
        with suppress(Stopped):
            prepared = await self._prepared()
            while True:
                following = None if self._stop.is_set() else asyncio.create_task(self._prepared())
                try:
                    await self._store(prepared)
                except BaseException:
                    if following is not None:
                        await asyncio.wait([following])  # the source is for one thread at a time
                    raise
                if following is None:
                    await self._done(prepared.batch)
                    return
                coming = await following
                await self._done(prepared.batch, is_quiet=not coming.batch)
                if self._until_end and not prepared.batch and not coming.batch and await self._is_at_end():
                    return
                prepared = coming

    async def _is_at_end(self) -> bool:
        """Nothing is there that wasn't given."""
        return await asyncio.to_thread(self._source.behind) == 0

    async def _done(self, batch: Batch, *, is_quiet: bool = True) -> None:
        """A look at how much there is asks the broker for each partition: what came meanwhile isn't made to wait for
        it, as long as there are quiet moments."""
        if batch.next:
            await asyncio.to_thread(self._source.done, batch.next)
        if time.monotonic() >= self._look_at + (0 if is_quiet else _LOOK_SECONDS):
            await asyncio.to_thread(look, self.vitals, self._source)
            self._look_at = time.monotonic() + _LOOK_SECONDS

    async def _prepared(self) -> HasBatch:
        prepared: HasBatch = Prepared()
        batch = await self._patience.tried("the bus", lambda: self._source.poll(self._most, self._idle))
        self.vitals.has_polled = True
        self.vitals.away = getattr(self._source, "away", None)
        self.vitals.polled += len(batch.records)
        if batch:
            prepared = await asyncio.to_thread(self._pipeline.prepare, batch)
        return prepared

    async def _store(self, prepared: HasBatch) -> None:
        batch = prepared.batch
        if not batch:
            return
        began = time.monotonic()
        written = await self._patience.tried("the store", lambda: self._pipeline.store(prepared))
        count(self.vitals, written, time.monotonic() - began)
        times = [each.appended for each in batch.records if each.appended]
        self.vitals.stored_until = max(times, default=self.vitals.stored_until)
