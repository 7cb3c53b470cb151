"""Starts a process of the writer, and calls it: one request, one reply.

A process is a new interpreter, because a fork would share the threads of the Kafka client. It has nothing that is lost
with it, so it is killed when it isn't needed any more, and ends by itself when this process is gone.
"""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, Protocol

from headwater.errors import TerminalError

_MODULE: Final = "headwater.consumers.writer.processes.worker"
LOGGER: Final = logging.getLogger("headwater")


class WorkerDiedError(TerminalError):
    """A process of the writer ended, and nobody had asked it to. What it had is still on the bus."""


class WorkerRole(Protocol):
    """What a process does. It is pickled, and so are requests, results and errors."""

    def start(self) -> Callable[[Any], Any]:
        """Return the function that is called with each request."""
        ...


class WorkerReply(NamedTuple):
    """What a process answers."""

    result: Any
    error: BaseException | None
    logs: Sequence[logging.LogRecord]
    cpu_seconds: float


class WorkerProcess:
    """A process, for one thread at a time."""

    def __init__(self, name: str, role: WorkerRole) -> None:
        self.name: Final = name
        self.cpu_seconds = 0.0
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", _MODULE, str(theirs.fileno())]
            # A session of its own: a Ctrl-C is for the coordinator, which ends in order.
            self._process = subprocess.Popen(  # noqa: S603 - our own
                command, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._pipe = Connection(ours.detach())
        self._pipe.send((LOGGER.getEffectiveLevel(), role))

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, request: Any) -> Any:
        """Send a request, and return the result or raise the error."""
        try:
            self._pipe.send(request)
            reply: WorkerReply = self._pipe.recv()
        except (EOFError, OSError) as e:
            raise WorkerDiedError(self._last_words()) from e
        self.cpu_seconds = reply.cpu_seconds
        for record in reply.logs:
            logging.getLogger(record.name).handle(record)
        if reply.error is not None:
            raise reply.error
        return reply.result

    def kill(self) -> None:
        """End the process. A call that waits for it raises WorkerDiedError."""
        self._process.kill()

    def close(self) -> None:
        """Remove what is left of a killed process. No call may wait for it."""
        self._process.wait()
        self._pipe.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _last_words(self) -> str:
        status = self._process.wait()
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return (
            f"the process {self.name} ({self.pid}) ended with {how}: if it was killed for its memory, give the writer "
            "more, or smaller batches by --batch"
        )
