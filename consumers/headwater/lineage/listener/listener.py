"""The listener `jdbc`. It accepts records at once, writes them on another thread, and acknowledges them afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from functools import partial
from typing import Final

from headwater.config import read_config, read_usable_config
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.listener.store_writer import StoreWriter
from headwater.lineage.store.engines import engine_for
from headwater.spi import WRONG_KEY, CheckResult, EventRecord, ListenerContext, RecordBatch, SpoolPosition

_FULL_WAIT_SECONDS: Final = 5.0
"""How long `handle` waits while the buffer is full. It is short because the job may be ending."""
_MAX_BATCHES: Final = 4
_MAX_BYTES: Final = 32 << 20
_CLOSE_SHARE: Final = 0.7


class JdbcFactory:
    """The entry point `jdbc`."""

    def create(self, context: ListenerContext) -> JdbcListener:
        report = partial(context.report_problem, WRONG_KEY)
        config = read_usable_config(JdbcConfig, context.configuration, report, shown=context.prefix)
        try:
            options = config.store_options()
            engine_for(options.target).dispose()  # its client is there; nothing is connected
        except ConfigurationError as e:
            raise ConfigurationError(str(e).replace("jdbc.", context.prefix)) from e
        return JdbcListener(config, StoreWriter(config, options, context.report_problem), context)

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        """For `headwater doctor`."""
        from headwater.lineage.listener.diagnosis import diagnose  # noqa: PLC0415 - no driver needs it

        return diagnose(_read(context), context)


def _read(context: ListenerContext) -> JdbcConfig:
    return read_config(JdbcConfig, context.configuration, shown=context.prefix)


class JdbcListener:
    """Buffers records and writes them in batches. Create it with `JdbcFactory`."""

    def __init__(self, config: JdbcConfig, writer: StoreWriter, context: ListenerContext) -> None:
        self._config = config
        self._writer = writer
        self._executor = context.executor
        self._waiting: list[EventRecord] = []
        self._bytes = 0
        self._writing: Future[None] | None = None
        self._end: SpoolPosition | None = None
        """The end of the batch that is being written."""
        self._received_end: SpoolPosition | None = None
        self._acknowledged: SpoolPosition | None = None

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self._received_end = batch.end
        self._waiting.extend(batch)
        self._bytes += sum(len(event.data) for event in batch)
        deadline = time.monotonic() + _FULL_WAIT_SECONDS
        self._advance(0)
        while self._is_full:
            if time.monotonic() >= deadline:
                self._reset()
                raise TransientError(
                    "the store is slower than the events arrive: the records that wait are delivered again"
                )
            self._advance(deadline - time.monotonic())
        return self._acknowledged

    def flush(self, timeout: float) -> SpoolPosition | None:
        deadline = time.monotonic() + timeout
        self._advance(timeout)
        while self._is_busy and time.monotonic() < deadline:
            self._advance(deadline - time.monotonic())
        return self._acknowledged

    def close(self, timeout: float) -> bool:
        with suppress(HeadwaterError):  # it was reported; unacknowledged records come again
            self.flush(_CLOSE_SHARE * timeout)
        self._writer.close()
        return self._acknowledged == self._received_end

    @property
    def _is_busy(self) -> bool:
        return self._writing is not None or bool(self._waiting)

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) > _MAX_BATCHES * self._config.batch_events or self._bytes > _MAX_BYTES

    def _advance(self, timeout: float) -> None:
        """Collect the result of the running batch, waiting at most `timeout` seconds, and start the next one."""
        if self._writing is not None:
            self._collect(self._writing, timeout)
        if self._writing is None and self._waiting:
            some = self._waiting[: self._config.batch_events]
            del self._waiting[: len(some)]
            self._bytes = sum(len(event.data) for event in self._waiting)
            self._end = some[-1].position
            self._writing = self._executor.submit(self._writer.write, some)

    def _collect(self, writing: Future[None], timeout: float) -> None:
        try:
            writing.result(max(0.0, timeout))
        except NotYet:
            if not writing.done():
                self._check_timeout()
                return
            self._reset()
            raise
        except BaseException:
            self._reset()
            raise
        self._writing, self._acknowledged = None, self._end

    def _check_timeout(self) -> None:
        """Abort a batch that takes too long. Its thread then raises an error, which the next call collects."""
        began = self._writer.began
        if began is not None and time.monotonic() - began > self._config.timeout:
            self._writer.abort()

    def _reset(self) -> None:
        """Discard the buffer. Everything after the acknowledged position comes again."""
        self._waiting, self._bytes = [], 0
        self._end = self._acknowledged  # a batch that is still running doesn't acknowledge repeated records
        if self._writing is not None and self._writing.done():
            self._writing = None
