"""Runs several forwarders in one process: each on a thread and an event loop of its own, with a source of its own.

So one that hangs, also one that blocks its loop, is away or fails delays none of the others. One that fails is started
again after a while, with a new source.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from headwater.consumers.sources import EventSource
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.api import ClosableForwarder, Forwarder
from headwater.forwarders.configuration import ForwarderSettings
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.metrics import ForwarderMetrics, ForwardersHealth
from headwater.forwarders.runner import ForwarderRunner
from headwater.forwarders.starting import FROM_BEGINNING, ForwarderBus, ForwarderStart
from headwater.forwarders.state import ForwarderLock, ForwarderState
from headwater.forwarders.status import ForwarderProgress, write_status
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
_AGAIN_SECONDS: Final = 30.0
_BUS_AGAIN_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 10.0
_STATUS_SECONDS: Final = 2.0
_LOCK_SECONDS: Final = 2.0
"""Who asks for the status holds the lock for a moment."""


class HostedForwarder:
    """One forwarder with its state and its lock. `run` is for a thread of its own."""

    def __init__(
        self,
        settings: ForwarderSettings,
        directory: Path,
        bus: ForwarderBus,
        *,
        start: ForwarderStart = FROM_BEGINNING,
        until_end: bool = False,
    ) -> None:
        """Raises a ConfigurationError or PluginError if it can't be created, or runs elsewhere. `start` counts only
        where it has never read this bus."""
        self.settings: Final = settings
        self.metrics: Final = ForwarderMetrics(settings.name)
        self.error: Exception | None = None
        """Why it ended, where it wasn't stopped."""
        self._bus = bus
        self._start = start
        self._until_end = until_end
        self._lock = ForwarderLock(directory, settings.name)
        if not self._lock.acquire(_LOCK_SECONDS):
            raise ConfigurationError(
                f"forwarder {settings.name} runs already with {directory}: stop it, or name another one by --state"
            )
        try:
            self._state = ForwarderState(directory, settings.name)
            self._progress = ForwarderProgress(self._state)
            self._lineage = LineageCache(self._state)
            self._forwarder = settings.create(self._lineage, directory / settings.name)
        except BaseException:
            self._lock.release()
            raise
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: ForwarderRunner | None = None

    def stop(self) -> None:
        """Ask it to finish what it sends, and to end. Any thread may call it."""
        self._stop.set()
        loop, runner = self._loop, self._runner
        if loop is not None and runner is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(runner.stop)

    def discard(self) -> None:
        """Release the state of one that never ran."""
        self._state.close()
        self._lock.release()

    def run(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as e:  # noqa: BLE001 - the others go on
            self.error = e
            _LOG.exception("forwarder %s ended", self.settings.name)
        finally:
            self.metrics.has_ended = True
            self._state.close()
            self._lock.release()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            while not self._stop.is_set() and (error := await self._try_to_run()) is not None:
                await self._wait_after(error)
        finally:
            if isinstance(self._forwarder, ClosableForwarder):
                await _close(self._forwarder, self._forwarder, self.settings.name)

    async def _try_to_run(self) -> Exception | None:
        """Run until stopped, and return None, or return why it failed."""
        try:
            await self._run_once()
        except ConfigurationError:
            raise
        except Exception as e:  # noqa: BLE001 - whatever it is, the next attempt may go better
            return e
        return None

    async def _run_once(self) -> None:
        group = self.settings.group
        if self._progress.has_begun(self._bus.name):
            await asyncio.to_thread(self._bus.begin, group, None, self._progress.positions())
        elif not await self._begin(group):
            return
        await self._forward(await asyncio.to_thread(self._bus.open, group), until_end=self._until_end)

    async def _begin(self, group: str) -> bool:
        """Begin to read the bus. Return False if the process was stopped before the initial events were sent."""
        offsets: Mapping[BusPartition, int] = {}
        if not await asyncio.to_thread(self._bus.has_begun, group):
            if self._start.initial is not None:
                initial = await asyncio.to_thread(self._start.initial)
                offsets = initial.offsets
                await self._forward(await asyncio.to_thread(initial.open), until_end=True)
                if self._stop.is_set():
                    return False
            await asyncio.to_thread(self._bus.begin, group, self._start.partitions, offsets)
            self._progress.begin(self._bus.name, self._start.name)
        else:
            self._report_begun(group)
            self._progress.begin(self._bus.name, "group")
        return True

    def _report_begun(self, group: str) -> None:
        """Say that this state is new and the group isn't: else a run that sends nothing again would say nothing."""
        _LOG.warning(
            "forwarder %s goes on where its group %s is on %s: its state is new, but with another one it has read this "
            "bus; to send everything, run it by another name: forwarders.NEW.type = %s",
            *(self.settings.name, group, self._bus.name, self.settings.config.type),
        )

    async def _forward(self, source: EventSource, *, until_end: bool) -> None:
        with closing(source):
            self._runner = ForwarderRunner(
                self._forwarder,
                source,
                self._state,
                self.settings,
                lineage=self._lineage,
                metrics=self.metrics,
                until_end=until_end,
            )
            self.metrics.waiting_for = None
            if not self._stop.is_set():
                await self._runner.run()

    async def _wait_after(self, error: Exception) -> None:
        """Wait before the next start: a short time for a bus that is away, a long one after an error of ours."""
        is_expected, is_away = isinstance(error, HeadwaterError), isinstance(error, TransientError)
        words = str(redact(str(error) if is_expected else f"{type(error).__name__}: {error}"))
        self.metrics.record_wait("the bus" if is_away else "itself", words)
        _LOG.warning("forwarder %s starts again soon: %s", self.settings.name, words, exc_info=not is_expected)
        end = time.monotonic() + (_BUS_AGAIN_SECONDS if is_away else _AGAIN_SECONDS)
        while not self._stop.is_set() and time.monotonic() < end:
            self.metrics.beat()
            await asyncio.sleep(0.2)


async def _close(forwarder: Forwarder, closable: ClosableForwarder, name: str) -> None:
    try:
        await asyncio.wait_for(closable.close(), _CLOSE_SECONDS)
    except Exception:  # noqa: BLE001 - it is a plug-in
        _LOG.exception("forwarder %s could not be closed (%s)", name, type(forwarder).__name__)


class ForwarderProcess:
    """Runs forwarders until they are stopped, and writes their status beside their state."""

    def __init__(self, hosted: Sequence[HostedForwarder], directory: Path) -> None:
        self.health: Final = ForwardersHealth([each.metrics for each in hosted])
        self._hosted = hosted
        self._directory = directory
        self._threads = [
            threading.Thread(target=each.run, name=f"headwater-forward-{each.settings.name}", daemon=True)
            for each in hosted
        ]
        self._began = time.time()
        self._status_failed = False

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for each in self._hosted:
            each.stop()

    @property
    def is_running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait(self) -> None:
        """Return when all have ended. Writes the status meanwhile."""
        write_at = 0.0
        while self.is_running:
            if time.monotonic() >= write_at:
                self.write_status()
                write_at = time.monotonic() + _STATUS_SECONDS
            for thread in self._threads:
                thread.join(0.05)
        self.write_status()
        failed = next((each.error for each in self._hosted if each.error is not None), None)
        if failed is not None:
            raise failed

    def write_status(self) -> None:
        """Write what people see. A disk that is full for that keeps no event from its target."""
        try:
            for each in self._hosted:
                write_status(self._directory, each.settings, each.metrics, self._began)
        except OSError as e:
            if not self._status_failed:
                _LOG.warning("the status of forwarders can't be written: %s", e)
            self._status_failed = True
        else:
            self._status_failed = False
