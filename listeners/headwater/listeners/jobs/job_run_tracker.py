"""The jobs of one SparkContext: blocks are entered and left by the user's threads, and reported by a thread of ours."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final

from headwater.events.base import CountMap
from headwater.events.jobs import LineageRetention, StartPosition
from headwater.listeners.jobs.run_end import RunEnd
from headwater.listeners.jobs.runs import ApplicationRuns, BlockRun
from headwater.listeners.threads import DaemonThread

_LOG = logging.getLogger(__name__)
_NEVER_SECONDS: Final = 3600.0


class CompletionFlag:
    """Whether something has been done. Waiting for it takes no lock that a signal handler could find taken."""

    def __init__(self) -> None:
        self._pending = threading.Lock()
        self._pending.acquire()

    def set(self) -> None:
        self._pending.release()

    def wait(self, timeout: float) -> bool:
        """True once it is done; False if it isn't after that many seconds."""
        if not self._pending.acquire(timeout=max(0.0, timeout)):
            return False
        self._pending.release()
        return True


class DaemonWorker:
    """A daemon thread with a queue.

    It is started when it is made, because no thread can be started any more while the interpreter ends. What is handed
    to it may fail: that is logged. `tick` is called every so many seconds, if nothing else keeps the thread busy.
    """

    def __init__(self, name: str, *, tick: Callable[[], None] | None = None, every: float = _NEVER_SECONDS) -> None:
        self._name = name
        self._tick = tick
        self._every = every
        self._queue: SimpleQueue[tuple[Callable[[], object], CompletionFlag] | None] = SimpleQueue()
        DaemonThread(name, self._run).start()

    def submit(self, work: Callable[[], object]) -> CompletionFlag:
        """Have it done some time; never waits."""
        done = CompletionFlag()
        self._queue.put((work, done))
        return done

    def call(self, work: Callable[[], object], timeout: float) -> bool:
        """Have it done and wait so long for it; True if it was done by then, failed or not."""
        return self.submit(work).wait(timeout)

    def close(self) -> None:
        """The thread ends behind what it has been handed so far."""
        self._queue.put(None)

    def _run(self) -> None:
        due = time.monotonic() + self._every
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, due - time.monotonic()))
            except Empty:
                due = time.monotonic() + self._every
                self._do(self._tick or (lambda: None))
                continue
            if item is None:
                return
            self._do(item[0])
            item[1].set()

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as e:  # noqa: BLE001 - the next thing may go well
            _LOG.warning("%s: %s: %s", self._name, type(e).__name__, e)


_TAGS_PROPERTY: Final = "spark.job.tags"
"""The local property that job tags are kept in, with commas."""
_DRAIN_SECONDS: Final = 30.0
_DRAIN_SLICE_SECONDS: Final = 1.0


class JobRunTracker:
    """From `open` to `close`."""

    def __init__(
        self,
        context: Any,
        jobs: ApplicationRuns,
        drain: Callable[[float], bool],
        dropped: Callable[[], CountMap],
        *,
        heartbeat: float,
    ) -> None:
        self._context = context
        self._jobs = jobs
        self._drain = drain
        self._dropped = dropped
        self._interval = heartbeat
        self._is_closing = False
        self._has_warned = False
        self._worker = DaemonWorker("headwater-jobs", tick=self._emit_heartbeat, every=heartbeat)

    def enter(
        self,
        name: str,
        namespace: str | None,
        tags: Mapping[str, str],
        on_end: LineageRetention | None = None,
        starts_at: tuple[StartPosition, ...] = (),
    ) -> BlockRun | None:
        """Begin a block in this thread: what it starts from now on carries its tag. None where that can't be."""
        if self._is_closing or not self._has_pinned_threads():
            return None
        running = (self._context.getLocalProperty(_TAGS_PROPERTY) or "").split(",")
        block = self._jobs.open_block(name, namespace, tags, running, on_end, starts_at=starts_at)
        self._context.addJobTag(block.tag)
        self._worker.submit(lambda: self._jobs.emit_start(block))
        return block

    def leave(self, block: BlockRun, end: RunEnd) -> None:
        """The block was left, by the thread that had entered it. Its end is reported when all that started in it is."""
        self._jobs.end_block(block, end)
        self._worker.submit(self._emit_ends)
        if not self._is_closing:
            self._context.removeJobTag(block.tag)

    def emit_all(self, timeout: float) -> bool:
        """Have all reported that has happened so far, by our own thread; False if it wasn't done in that many
        seconds."""
        deadline = time.monotonic() + timeout
        answers: list[bool] = []
        is_done = self._worker.call(lambda: answers.append(self._drain_and_emit(deadline)), timeout)
        return is_done and answers == [True]

    def begin_closing(self) -> None:
        """The end is near: nothing new begins, and nobody waits long for what is on its way."""
        self._is_closing = True

    def call(self, work: Callable[[], object], timeout: float) -> bool:
        """Have something done by our own thread; whether it came back in time."""
        return self._worker.call(work, timeout)

    def close(self) -> None:
        self._is_closing = True
        self._worker.close()

    def _drain_and_emit(self, deadline: float) -> bool:
        left = self._jobs.unreported_ends()
        is_drained = self._drain(max(0.0, deadline - time.monotonic()))
        self._jobs.emit_ends(left)
        return is_drained

    def _emit_ends(self) -> None:
        left = self._jobs.unreported_ends()  # of several that ended meanwhile, the first call tells all
        if not left:
            return
        deadline = time.monotonic() + _DRAIN_SECONDS
        while not self._is_closing and not self._drain(_DRAIN_SLICE_SECONDS) and time.monotonic() < deadline:
            pass
        if not self._is_closing:
            self._jobs.emit_ends(left)

    def _emit_heartbeat(self) -> None:
        self._jobs.emit_heartbeat(max(1, round(self._interval)), self._dropped())

    def _has_pinned_threads(self) -> bool:
        """Without them a tag would be on any thread of the JVM, and so on anybody's statements."""
        if type(self._context._gateway).__name__ == "ClientServer":
            return True
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "PYSPARK_PIN_THREAD is false, so with-blocks can't be distinguished: what is in them is recorded as "
                "the application's"
            )
        return False
