"""The executor that listeners are given: unlike the standard one its threads never keep a process from ending."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(Executor):
    """Runs what is submitted on up to `workers` daemon threads, each started when it is needed."""

    def __init__(self, name: str, workers: int = 4) -> None:
        self._name = name
        self._workers = workers
        self._changed = threading.Condition()
        self._work: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_shut_down = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._changed:
            if self._is_shut_down:
                raise RuntimeError(f"the executor of {self._name} is shut down: its listener is closed")
            self._work.append((future, lambda: fn(*args, **kwargs)))
            if self._idle < len(self._work) and len(self._threads) < self._workers:
                self._start()
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more; with `wait`, come back when all that was taken is done."""
        with self._changed:
            self._is_shut_down = True
            waiting = list(self._work) if cancel_futures else []
            if cancel_futures:
                self._work.clear()
            self._changed.notify_all()
        for future, _ in waiting:
            future.cancel()
        for thread in self._threads if wait else ():
            thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"headwater-{self._name}-io", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            future, work = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as e:  # noqa: BLE001 - whoever waits for the result gets the error
                future.set_exception(e)
            else:
                future.set_result(result)

    def _take(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changed:
            self._idle += 1
            while not self._work and not self._is_shut_down:
                self._changed.wait()
            self._idle -= 1
            return self._work.popleft() if self._work else None
