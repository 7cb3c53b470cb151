"""What the listener bus sees: records are taken, another thread writes them, and the answer follows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Final

from headwater.config import read_config
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.listener.writing import Writer
from headwater.lineage.store.engines import engine_for
from headwater.spi import Batch, Finding, ListenerContext, Position, Record

_ROOM_SECONDS: Final = 5.0
"""Who finds no room waits so long for some; the job may be ending."""
_ROOM_BATCHES: Final = 4
_ROOM_BYTES: Final = 32 << 20
_CLOSE_SHARE: Final = 0.7


class JdbcFactory:
    """The entry point `jdbc`."""

    def create(self, context: ListenerContext) -> JdbcListener:
        config = _read(context)
        try:
            options = config.store_options()
            engine_for(options.target).dispose()  # its client is there; nothing is connected
        except ConfigurationError as e:
            raise ConfigurationError(str(e).replace("jdbc.", context.prefix)) from e
        return JdbcListener(config, Writer(config, options, context.trouble), context)

    def examine(self, context: ListenerContext) -> Iterator[Finding]:
        """For `headwater doctor`."""
        from headwater.lineage.listener.examining import examine  # noqa: PLC0415 - no driver needs it

        return examine(_read(context), context)


def _read(context: ListenerContext) -> JdbcConfig:
    return read_config(JdbcConfig, context.configuration, shown=context.prefix)


class JdbcListener:
    """Use `JdbcFactory`."""

    def __init__(self, config: JdbcConfig, writer: Writer, context: ListenerContext) -> None:
        self._config = config
        self._writer = writer
        self._executor = context.executor
        self._waiting: list[Record] = []
        self._bytes = 0
        self._writing: Future[None] | None = None
        self._end: Position | None = None
        """Of what is being written."""
        self._handed: Position | None = None
        self._answer: Position | None = None

    def handle(self, batch: Batch) -> Position | None:
        self._handed = batch.end
        self._waiting.extend(batch)
        self._bytes += sum(len(each.data) for each in batch)
        deadline = time.monotonic() + _ROOM_SECONDS
        self._go_on(0)
        while self._is_full:
            if time.monotonic() >= deadline:
                self._give_up()
                raise TransientError("the store takes in less than is told: what waits is handed over again")
            self._go_on(deadline - time.monotonic())
        return self._answer

    def flush(self, timeout: float) -> Position | None:
        deadline = time.monotonic() + timeout
        self._go_on(timeout)
        while self._is_busy and time.monotonic() < deadline:
            self._go_on(deadline - time.monotonic())
        return self._answer

    def close(self, timeout: float) -> bool:
        with suppress(HeadwaterError):  # it was told as trouble; what isn't answered comes again
            self.flush(_CLOSE_SHARE * timeout)
        self._writer.close()
        return self._answer == self._handed

    @property
    def _is_busy(self) -> bool:
        return self._writing is not None or bool(self._waiting)

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) > _ROOM_BATCHES * self._config.batch_events or self._bytes > _ROOM_BYTES

    def _go_on(self, timeout: float) -> None:
        """Hear what became of what is being written, for so long, and have the next written."""
        if self._writing is not None:
            self._hear(self._writing, timeout)
        if self._writing is None and self._waiting:
            some = self._waiting[: self._config.batch_events]
            del self._waiting[: len(some)]
            self._bytes = sum(len(each.data) for each in self._waiting)
            self._end = some[-1].position
            self._writing = self._executor.submit(self._writer.write, some)

    def _hear(self, writing: Future[None], timeout: float) -> None:
        try:
            writing.result(max(0.0, timeout))
        except NotYet:
            if not writing.done():
                self._look_at_the_time()
                return
            self._give_up()
            raise
        except BaseException:
            self._give_up()
            raise
        self._writing, self._answer = None, self._end

    def _look_at_the_time(self) -> None:
        """The thread that writes raises then, and is heard the next time."""
        began = self._writer.began
        if began is not None and time.monotonic() - began > self._config.timeout:
            self._writer.cut()

    def _give_up(self) -> None:
        """All above the answer comes again."""
        self._waiting, self._bytes = [], 0
        self._end = self._answer  # what is still being written is no answer to what comes again
        if self._writing is not None and self._writing.done():
            self._writing = None
