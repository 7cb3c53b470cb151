"""The interface of a forwarder: what brings events to another system.

    class Printer:
        def __init__(self, context: ForwarderContext) -> None:
            self._prefix = context.options.get("prefix", "")

        async def handle(self, batch: Sequence[BusEvent]) -> None:
            for each in batch:
                print(self._prefix, each.event.kind)

A class, or a function of the context, is found by an entry point of `headwater.forwarders` or as `package.module:Name`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from headwater.consumers.sources import BusRecord
from headwater.errors import TerminalError
from headwater.events import Event
from headwater.events.jobs import JobLineage
from headwater.spi import CheckResult

GROUP: Final = "headwater.forwarders"
"""The group of entry points."""


class BusEvent(NamedTuple):
    """An event of the bus, with its record."""

    event: Event
    record: BusRecord


class RefusedEventsError(TerminalError):
    """The target refuses events for what is in them. They become dead letters; the rest of the batch was sent."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        """`reasons` are by the event's index in the batch."""
        self.reasons: Final = dict(reasons)
        super().__init__("; ".join(self.reasons.values()))


class KnownLineage(Protocol):
    """The JobLineage events that were seen, of which a Committed names one by its fingerprint."""

    def get(self, fingerprint: bytes) -> JobLineage | None:
        """Return the whole event; None if it never came, or so many came after it that it is forgotten."""
        ...


class NoLineage:
    """Knows none."""

    def get(self, fingerprint: bytes) -> JobLineage | None:  # noqa: ARG002 - as the interface says
        return None


@dataclass(frozen=True)
class ForwarderContext:
    """What a forwarder is created with."""

    name: str
    """Its name in the configuration: two of one kind have two names."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Its own options. An option that it doesn't know has to be a ConfigurationError."""
    lineage: KnownLineage = field(default_factory=NoLineage)
    """A JobLineage is known before the batch with it, or with a Committed of it, is handled."""
    directory: Path | None = None
    """A directory for files of its own, which it creates when it needs it; the runner's lock guards it. None where the
    forwarder is created only to check its target or to preview."""


class Forwarder(Protocol):
    """Sends events to one system. Its methods are called on one event loop, one batch at a time."""

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        """Send the events of a batch, in order. Events of one key come in their order on the bus.

        Return when the target has all of them; then their offsets are committed. A batch can come again, after an error
        or a crash, so that sending it twice must not change anything in the target.

        Raises TransientError (or an OSError, as sockets do) if the target is away or busy: the same batch comes again,
        after a wait; `retry_after`, an attribute with a number of seconds, says how long. A call that takes longer than
        the forwarder's `timeout` is cancelled, and counts as such an error.

        Raises RefusedEventsError for events that the target will never accept. Any other TerminalError means that
        somebody must change something, such as a right; it is tried again at long intervals. Any other exception is a
        fault of the forwarder: the events are handled one by one, and those that raise it become dead letters.
        """
        ...


@runtime_checkable
class ClosableForwarder(Protocol):
    """A forwarder that has connections to close."""

    async def close(self) -> None: ...


@runtime_checkable
class PeriodicForwarder(Protocol):
    """A forwarder that acts as time passes, also when no events come."""

    async def tick(self, caught_up_at: datetime | None) -> None:
        """Do what is due. Called about once a second, between the calls of `handle`, not while one of them is retried.

        `caught_up_at` is the last moment at which the bus was reachable and had no unread events; None while there are
        some, or while that isn't known. Any error is logged and shown as the forwarder's; the next tick comes all the
        same, so wait in a task of your own for what is slow.
        """
        ...


@runtime_checkable
class CheckableForwarder(Protocol):
    """A forwarder that can check its target."""

    def check(self) -> AsyncIterator[CheckResult]:
        """Check the target, and yield each result as soon as it is known: is it there, which version, has this user the
        rights. Nothing is written to the target."""
        ...


@runtime_checkable
class PreviewableForwarder(Protocol):
    """A forwarder that can show what it would send."""

    def preview(self, event: Event) -> Iterator[str]:
        """Yield each message as text, for people. Nothing is sent."""
        ...


ForwarderFactory: TypeAlias = Callable[[ForwarderContext], Forwarder]
"""What an entry point is."""
