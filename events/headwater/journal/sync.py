"""Group commit: those who wait for the disk at one time share one fsync.

Whoever finds nobody leading leads: the sync covers all that was written before it began, so everybody who wrote in the
meantime waits for the next one, of which again only one is needed.

The thread that does for a journal what its appenders shall not wait for.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from headwater.journal.appender import Appender
from headwater.journal.errors import SyncFailedError

_LOG = logging.getLogger(__name__)


class BackgroundWorker:
    """Calls `work` every `interval` seconds and whenever it is woken, until it is stopped."""

    def __init__(self, name: str, work: Callable[[], None], interval: float) -> None:
        self._work = work
        self._interval = interval
        self._woken = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self, timeout: float) -> bool:
        """Let it finish what it is at; False if it still hasn't."""
        self._stopped = True
        self._woken.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped:
            self._woken.wait(self._interval)
            self._woken.clear()
            if not self._stopped:
                try:
                    self._work()
                except Exception:  # noqa: BLE001 - logged; a round that fails must not be the last
                    _LOG.exception("%s", self._thread.name)


class Ticket:
    """Stands for all records written between two syncs; settled by the sync that covers them."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: SyncFailedError | None = None


class GroupCommit:
    """Brings waiting appenders together. `sync` does it and answers the tickets it settled, with errors set."""

    def __init__(self, sync: Callable[[], Iterable[Ticket]]) -> None:
        self._sync = sync
        self._changed = threading.Condition()
        self._leading = False

    def settle(self, ticket: Ticket) -> None:
        """Return when the ticket's records are on the disk, or raise that they may not be."""
        while not self._follow(ticket):
            self._lead()
        if ticket.error is not None:
            raise SyncFailedError(str(ticket.error), unknown=True) from ticket.error  # each waiter raises its own

    def wait(self, ticket: Ticket, timeout: float) -> bool:
        """Let others do it; False where nobody has within the time."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not ticket.done:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return ticket.done
        return True

    def _follow(self, ticket: Ticket) -> bool:
        """True once it is settled, False where the caller has become the leader."""
        with self._changed:
            while not ticket.done:
                if not self._leading:
                    self._leading = True
                    return False
                self._changed.wait()
        return True

    def _lead(self) -> None:
        settled: Iterable[Ticket] = ()
        try:
            settled = self._sync()
        finally:
            with self._changed:
                for each in settled:
                    each.done = True
                self._leading = False
                self._changed.notify_all()


class Syncer:
    """Brings a journal's records to the disk. `ticket` stands for those appended now; read it under the mutex."""

    def __init__(self, appender: Appender, mutex: threading.Lock) -> None:
        self.ticket = Ticket()
        self._appender = appender
        self._mutex = mutex
        self._group = GroupCommit(self._sync)
        self._failure: SyncFailedError | None = None
        self.settle = self._group.settle
        self.wait = self._group.wait

    def in_background(self) -> None:
        """Sync what nobody waits for; a failure is kept for `take_failure`."""
        try:
            self.settle(self.ticket)
        except SyncFailedError as error:
            self._failure = error
            _LOG.warning("%s", error)

    def take_failure(self) -> SyncFailedError | None:
        failure, self._failure = self._failure, None
        return failure

    def _sync(self) -> list[Ticket]:
        settled: list[Ticket] = []
        try:
            with self._mutex:
                settled.append(self._next_ticket())
                work = self._appender.begin_sync()
            if work is not None:
                work.run()
        except OSError as cause:
            with self._mutex:
                settled.append(self._next_ticket())  # written since, to the same file: as doubtful
                self._appender.sync_failed()
            self._fail(settled, cause)
        return settled

    def _next_ticket(self) -> Ticket:
        ticket, self.ticket = self.ticket, Ticket()
        return ticket

    def _fail(self, tickets: list[Ticket], cause: OSError) -> None:
        message = (
            f"fsync of journal {self._appender.directory} failed: {cause.strerror or cause}; what was appended since "
            "the last sync can be read but may not survive the machine: append it again if need be, check the device"
        )
        for ticket in tickets:
            ticket.error = SyncFailedError(message, unknown=True)
            ticket.error.__cause__ = cause
