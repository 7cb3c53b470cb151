"""Several servers at once, for a person at a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType

from typing_extensions import Self

from headwater.local.choice import ServerKind, service
from headwater.local.errors import StartError
from headwater.local.service import Service

_LOOK_EVERY_SECONDS = 0.5


class Stack:
    """The servers of the given kinds; all are started or, when one fails, none stays."""

    def __init__(
        self, kinds: Iterable[ServerKind] = tuple(ServerKind), make: Callable[[ServerKind], Service] = service
    ) -> None:
        self.services = {kind: make(kind) for kind in kinds}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variable → address: what another terminal sets to use these servers."""
        return {kind.variable: one.address for kind, one in self.services.items()}

    def start(self) -> Self:
        """Start all at the same time; the first failure stops the others and is raised."""
        try:
            with ThreadPoolExecutor(max(1, len(self.services))) as pool:
                for started in [pool.submit(one.start) for one in self.services.values()]:
                    started.result()
        except BaseException:
            self.stop()
            raise
        return self

    def wait(self, until: threading.Event) -> None:
        """Block until the event is set; StartError, with the end of its log, when a server ends by itself."""
        while not until.wait(_LOOK_EVERY_SECONDS):
            for one in self.services.values():
                if not one.running:
                    raise StartError(f"{one.name} ended by itself; the end of its log:\n{one.log_tail()}")

    def stop(self) -> None:
        """Stop all, in reverse; what one raises doesn't keep the others running."""
        with ExitStack() as stops:
            for one in self.services.values():
                stops.callback(one.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
