"""What a listener is, and what its factory is given.

A plain listener gets each event as it comes; if it can't keep up it misses some, and is informed how many. A durable
one gets batches out of a spool and answers how far it got: it misses nothing, whatever happens to it in between.

Both are called by the listener bus, each on a thread of its own, never on one of the Spark job: what a listener raises,
or how long it takes, harms nobody else. All calls to one listener, and the `create` that made it, come on one and the
same thread, one after the other. A call that hasn't come back when the bus has to stop is abandoned: then nothing is
called any more, not even `close`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from headwater.events.envelope import Event
from headwater.spi.records import RecordBatch, SpoolPosition

CALL_SECONDS: Final = 10.0
"""`on_event` and `handle` come back within this, whatever their target does; at stop nobody waits that long."""

WRONG_KEY: Final = "configuration"
"""The cause of the problem that a key of a listener is wrong, and its default holds."""


@runtime_checkable
class Clock(Protocol):
    """The producer's clock, as a listener sees it.

    >>> class Stopped:
    ...     def observe(self, micros): ...
    >>> isinstance(Stopped(), Clock)
    True
    """

    def observe(self, micros: int) -> None:
        """The bus is at least this late: microseconds since the epoch out of an acknowledgement. From any thread."""
        ...


@dataclass(frozen=True)
class Application:
    """The application that the listener runs in; records out of a dead driver's spool are of another one.

    >>> Application(id="local-1700000000000", name="orders_etl").name
    'orders_etl'
    """

    id: str
    name: str


class ListenerContext(Protocol):
    """What a factory is given to create its listener from. `headwater.testing.memory` has one for tests.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from headwater.testing.memory import MemoryContext
    >>> MemoryContext("audit", {"file": "/tmp/audit.log"}, ThreadPoolExecutor(1)).configuration["file"]
    '/tmp/audit.log'
    """

    @property
    def name(self) -> str:
        """What the listener is called here: `kafka`, or what stands before the `=` in `spark.headwater.listeners`."""
        ...

    @property
    def prefix(self) -> str:
        """What stands before each key of the configuration, `spark.headwater.kafka.` say: for messages."""
        ...

    @property
    def configuration(self) -> Mapping[str, str]:
        """What stands under the prefix, without it. It can hold secrets: never log it."""
        ...

    @property
    def executor(self) -> Executor:
        """For work that waits on something."""
        ...

    @property
    def application(self) -> Application: ...

    @property
    def clock(self) -> Clock: ...

    def report_problem(self, cause: str, detail: str) -> None:
        """Tell that something is in the way which the listener goes on after by itself: a broker that is away, say.

        `cause` is one short word of few that there are (`transport`, `authentication`, `throttled`), by which it is
        counted; `detail` is for people, and holds no secret. It shows in the log, once for each thing that is new, in
        the metrics, and as the listener's last error, until the listener gets on. From any thread; raises nothing,
        waits for nothing. What a listener raises is counted without it.
        """
        ...


@runtime_checkable
class Listener(Protocol):
    """Base class of plain listeners, which get each event in order as it comes. Only `on_event` has to be written.

    What it raises is counted, and the event doesn't come again. After a TerminalError, or failure upon failure, the
    listener is suspended: closed, and created again later; `on_missed` then tells the new instance how many events came
    in between. An object that has `on_event`, and isn't of this class, is taken too: what it lacks is as here.

    >>> class Audit(Listener):
    ...     def on_event(self, event):
    ...         print(event.kind)
    >>> Audit().on_event(Heartbeat())
    Heartbeat
    """

    @abstractmethod
    def on_event(self, event: Event) -> None:
        """Deal with one event. Comes back within `CALL_SECONDS`."""
        ...

    def on_missed(self, count: int) -> None:  # noqa: ARG002 - for overriding
        """Called before the next event where so many were dropped for this listener. Does nothing unless overridden."""
        return

    def flush(self, timeout: float) -> None:  # noqa: ARG002 - for overriding
        """Deal with everything that came so far; come back within that many seconds, done or not."""
        return

    def close(self, timeout: float) -> bool | None:  # noqa: ARG002 - for overriding
        """Release everything within that many seconds. True if all that came is dealt with. The last call."""
        return None


@runtime_checkable
class DurableListener(Protocol):
    """Base class of listeners that miss nothing: each gets the records of one spool, in order, until it is through.

    >>> class Archive(DurableListener):
    ...     def handle(self, batch):
    ...         for record in batch:
    ...             print(record.kind)
    ...         return batch.end  # all of them are dealt with

    Only `handle` has to be written. One that deals with records before it comes back needs no `flush`: the bus repeats
    its last answer.

    **One instance, one spool.** The driver's own spool has an instance, and each dead driver's that is shipped has
    another, made by the same factory; several can be at work at once, and what is behind them may be one and the same
    topic or database. An instance begins knowing nothing: where the spool's cursor stands is the bus's business.

    **The answer** of `handle` and of `flush` is always the same thing: the highest position up to which every record
    that was handed over is dealt with, those acknowledged out of order beyond it not counted; None as long as there is
    no such position. It never goes back (None after a position would), and never runs ahead of what was handed over:
    a listener that does either is broken, and set aside. The cursor moves to the answer, and no record up to there is
    ever handed over again. "Dealt with" means that it can't be lost any more: acknowledged, committed, on disk.

    **Handing over.** `handle` takes a batch as a whole, whatever it answers: the next call brings later records only.
    Who has no room waits in `handle` for some, or raises a TransientError. Records that wait for an acknowledgement are
    the listener's to keep.

    **When there is nothing to hand over** and the last answer is behind it, the bus calls `flush` again and again, each
    time with a second or less: late acknowledgements move the cursor so, and only so. At stop it calls `flush` with the
    time that is left, and `close`.

    **What is raised,** by `handle` or `flush` (for a record that an earlier call took, say), means that the listener
    gives up on everything above its last answer. All of that is handed over again to the same instance, in the same
    order, perhaps cut into other batches, after a pause that grows,
    in which it is asked nothing:

    - a TransientError (a broker is away, a table is locked): again and again, for as long as it takes;
    - anything else: some times, and if the answer didn't move in between, the listener is set aside;
    - a RefusedRecordError (one record is too large for the target, for ever): that record goes to the listener's dead
      letters on the disk, a Gap says so, and all else is handed over again at once, without it;
    - a TerminalError (a right is missing, a topic isn't there): set aside at once.

    Set aside means closed, reported in the log, and made anew by its factory some minutes later, going on at the
    cursor. Nothing is lost by it unless the spool reaches its limit, which a Gap tells.

    **So everything can come twice**, and a copy has the `event_id` of the original. The first copies of the records of
    one key arrive in their order, if the target knows an order at all.

    **An event of a kind that isn't known here** (`EventRecord.event` is an UnknownEvent) is passed on, or kept,
    or skipped and counted; it never stops the events behind it.
    """

    @abstractmethod
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        """Take these records; the answer is described above. Comes back within `CALL_SECONDS`."""
        ...

    def flush(self, timeout: float) -> SpoolPosition | None:  # noqa: ARG002 - for overriding
        """Wait until all that was handed over is dealt with, for that many seconds at most; 0 only looks.

        The answer is described above: running out of time is no error. Where it isn't overridden the bus takes the last
        answer of `handle`, and doesn't call it.
        """
        return None

    def close(self, timeout: float) -> bool | None:  # noqa: ARG002 - for overriding
        """Release everything within that many seconds. The last call.

        True if all that was handed over is dealt with: the cursor moves to the end of it. False, or None, if not or not
        known: then the last answer counts, and the next instance gets what is above it.
        """
        return None


@runtime_checkable
class ListenerFactory(Protocol):
    """What an entry point of the group `headwater.listeners` names, or a path in the configuration.

    It is such an object, or a class of such objects that takes no arguments.

    >>> class AuditFactory:
    ...     def create(self, context):
    ...         return Audit(context.configuration["file"])
    >>> isinstance(AuditFactory(), ListenerFactory)
    True
    """

    def create(self, context: ListenerContext) -> Listener | DurableListener:
        """A ConfigurationError says what is wrong with the configuration; the application goes on without it. Doesn't
        wait for the target: a broker that is away now may come back."""
        ...
