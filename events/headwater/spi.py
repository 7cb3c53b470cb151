"""The interfaces between the rooms: what a listener is, and what it is given.

A plain listener is told each event as it comes; if it can't keep up it misses some, and is told how many. A durable one
is handed batches out of the spool and says how far it got: it misses nothing, whatever happens to it in between.
Neither is ever called on a thread of the Spark job, and what it raises, or how long it takes, harms nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, NewType, Protocol, runtime_checkable

from headwater.events.envelope import Event

LISTENERS: Final = "headwater.listeners"
"""The group of entry points that names listener factories."""

RESERVED_NAMES: Final = frozenset(
    {"capture", "catalog", "enabled", "job", "lineage", "listeners", "namespaces", "parent", "spool", "store", "tags"}
)
"""Sections of the configuration: no factory can have such a name."""

Position = NewType("Position", int)
"""Where in the spool a listener is: positions grow with the order of events, and mean nothing else."""


@dataclass(frozen=True)
class Record:
    """An event in the spool, as a durable listener gets it. `data` is what goes over the wire, byte for byte."""

    position: Position
    event: Event
    data: bytes


@dataclass(frozen=True)
class Batch:
    """Records in order, never none."""

    records: Sequence[Record]

    @property
    def end(self) -> Position:
        """The position of the last record: return it when all of them are dealt with."""
        return self.records[-1].position


class Clock(Protocol):
    """The producer's clock."""

    def observe(self, micros: int) -> None:
        """The bus is at least this late: microseconds since the epoch out of an acknowledgement."""
        ...


@dataclass(frozen=True)
class Application:
    """The application that the listener sits in."""

    id: str
    name: str


class ListenerContext(Protocol):
    """What a factory is given to make its listener of."""

    @property
    def configuration(self) -> Mapping[str, str]:
        """What stands under the factory's own prefix, without it. It can hold secrets: never log it."""
        ...

    @property
    def executor(self) -> Executor:
        """For work that waits on something."""
        ...

    @property
    def application(self) -> Application: ...

    @property
    def clock(self) -> Clock: ...


@runtime_checkable
class Listener(Protocol):
    """Is told each event, in order."""

    def on_event(self, event: Event) -> None: ...

    def on_missed(self, count: int) -> None:
        """So many events before the next one were dropped, because this listener didn't keep up."""
        ...

    def flush(self, timeout: float) -> None:
        """Deal with everything that was told so far, within that many seconds."""
        ...

    def close(self, timeout: float) -> bool:
        """Let go of everything. True if all that was told is dealt with. Called once, and nothing after it."""
        ...


@runtime_checkable
class DurableListener(Protocol):
    """Is handed batches until it says that it is through with them."""

    def handle(self, batch: Batch) -> Position | None:
        """Up to where everything is dealt with: the cursor moves there. None, or a position behind the batch's end, is
        fine: later calls bring what comes after, not what was handed over already. What lies above the cursor is
        handed over again after a restart, and after this raises; a TerminalError sets the listener aside."""
        ...

    def flush(self, timeout: float) -> Position | None:
        """Wait, that many seconds at most, for what was handed over; answers like `handle`."""
        ...

    def close(self, timeout: float) -> bool:
        """Let go of everything. True if all that was handed over is dealt with. Called once, and nothing after it."""
        ...


@runtime_checkable
class ListenerFactory(Protocol):
    """What an entry point of the group `headwater.listeners` names, or a path in the configuration."""

    def create(self, context: ListenerContext) -> Listener | DurableListener:
        """A ConfigurationError says what is wrong with the configuration; the application goes on without it."""
        ...
