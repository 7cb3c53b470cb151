"""The interface of every server, wherever it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from types import TracebackType
from typing import Protocol

from typing_extensions import Self

from headwater.local.errors import NotOursError


class ServerOrigin(Enum):
    """Where a server comes from, in the order of preference."""

    ENVIRONMENT = "environment"
    CONTAINER = "container"
    LOCAL = "local"


class Service(Protocol):
    """A real server. Whoever starts it, with `start` or `with`, stops it.

    `address` is what a client needs: `host:port` for Kafka, a SQLAlchemy URL (with its password) for a database.
    It is valid between `start` and `stop`, and stays the same over `kill` and `restart`.
    """

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> ServerOrigin: ...

    @property
    def address(self) -> str: ...

    @property
    def running(self) -> bool: ...

    def start(self) -> Self:
        """Return once the server answers a real request; raise StartError or AddressError otherwise."""
        ...

    def kill(self) -> None:
        """End it as a crash would (SIGKILL), keeping its data; NotOursError where that can't be done."""
        ...

    def restart(self) -> None:
        """Start it again on the same address and data, after `kill` or while it runs."""
        ...

    def stop(self) -> None:
        """End it and release everything `start` took; stopping twice is no error."""
        ...

    def log_tail(self, lines: int = 40) -> str:
        """Return the end of the server's own log, or nothing where it can't be seen."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ForeignService(ABC):
    """A server that is no process of ours, so that it can't be killed or restarted from here. See Service."""

    def __init__(self, name: str, origin: ServerOrigin) -> None:
        self.name = name
        self.origin = origin

    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def refusal(self, what: str) -> str:
        """Return why the server can't be `what`, killed say, and what to do."""

    def kill(self) -> None:
        raise NotOursError(self.refusal("killed"))

    def restart(self) -> None:
        raise NotOursError(self.refusal("restarted"))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
