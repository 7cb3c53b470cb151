"""What a process of the writer runs: it answers requests until the coordinator is gone.

python -m headwater.consumers.writer.processes.worker DESCRIPTOR
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from typing import Any

from headwater.consumers.tuning import tune_garbage_collection
from headwater.consumers.writer.processes.worker_process import LOGGER, WorkerReply, WorkerRole
from headwater.errors import HeadwaterError


def main(descriptor: int) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):  # the coordinator ends this process, after the work in hand
        signal.signal(each, signal.SIG_IGN)
    threading.Thread(target=_end_with_coordinator, daemon=True).start()
    pipe = Connection(descriptor)
    with suppress(EOFError, OSError):
        level, role = pipe.recv()
        logs = _collect_logs(level)
        tune_garbage_collection()
        _serve(pipe, role, logs)


def _serve(pipe: Connection, role: WorkerRole, logs: queue.SimpleQueue[logging.LogRecord]) -> None:
    work: Callable[[Any], Any] | None = None
    while True:
        request, result, error = pipe.recv(), None, None
        try:
            work = work or role.start()
            result = work(request)
        except BaseException as e:  # noqa: BLE001 - the coordinator raises it
            error = _portable(e)
        records = [logs.get() for _ in range(logs.qsize())]
        pipe.send(WorkerReply(result, error, records, time.process_time()))


def _portable(error: BaseException) -> BaseException:
    """Return an error that another process can read."""
    if isinstance(error, (HeadwaterError, MemoryError)):
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
            return error
    words = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return RuntimeError(f"in a process of the writer: {words}")


def _collect_logs(level: int) -> queue.SimpleQueue[logging.LogRecord]:
    """The coordinator logs what is logged here."""
    logs = queue.SimpleQueue[logging.LogRecord]()
    LOGGER.addHandler(QueueHandler(logs))
    LOGGER.setLevel(level)
    return logs


def _end_with_coordinator() -> None:
    """End when the coordinator is gone, whatever is under way: the database rolls back what wasn't committed."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
