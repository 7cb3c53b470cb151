"""`BulkLineageMeta`: the second interface of a store, for writers.

A store that implements only `lineage.api.LineageMeta` is written call by call. Its writer keeps offsets in Kafka, and
has no timeline and no table of dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from headwater.events.envelope import EventId
from headwater.lineage.bulk.marks import WriterMark
from headwater.lineage.bulk.packing import PackedRows
from headwater.lineage.rows import Row


class BusPartition(NamedTuple):
    """A partition of a bus, identified by ids: a recreated topic of the same name is another one."""

    cluster: str
    topic: str
    number: int = 0


@dataclass(frozen=True)
class ConsumerOffset:
    """The offset from which a consumer group continues in a partition."""

    group: str
    partition: BusPartition
    next: int


@dataclass(frozen=True)
class IngestProgress:
    """The time up to which a partition is completely stored: its last record's append time, or when its end was
    reached."""

    source: str
    """`kafka`, `log`, or `jdbc` for events that come directly from a driver."""
    partition: BusPartition
    until: int
    """Microseconds."""
    topic_name: str = ""
    """The topic's name. A recreated topic replaces the older one of this name."""
    producer: UUID | None = None
    """The producer, for events that come directly from a driver. `until` is the driver's own time then."""


class InstantState(str, Enum):
    """The state of an instant."""

    REQUESTED = "REQUESTED"
    """The writer is about to write."""
    GIVEN_UP = "GIVEN_UP"
    """Its writer ended before it completed the instant. Offsets weren't moved, so its events are read again."""
    COMPLETED = "COMPLETED"
    """All rows and the offsets are stored."""


@dataclass(frozen=True)
class WriterInstant:
    """One step on the timeline of a writer process."""

    writer: UUID
    number: int
    state: InstantState = InstantState.REQUESTED
    detail: str | None = None
    """What the writer was going to write, as JSON. None keeps the stored text."""


class DeadLetterReason(str, Enum):
    """Why an event couldn't be stored or sent."""

    UNDECODABLE = "UNDECODABLE"
    UNKNOWN = "UNKNOWN"
    """This version doesn't know the event's kind or schema."""
    INVALID = "INVALID"
    """It can't be mapped to rows."""
    REFUSED = "REFUSED"
    """The database refused a value, or the target the event."""
    FAULT = "FAULT"
    """The forwarder failed on it."""
    STUCK = "STUCK"
    """The target failed on it each time, and took others."""


class DeadLetterState(str, Enum):
    WAITING = "WAITING"
    RETRY = "RETRY"
    """Somebody asked the forwarder to send it again."""
    DROPPED = "DROPPED"
    """Somebody decided not to retry it."""


@dataclass(frozen=True)
class DeadLetter:
    """An event that couldn't be stored, with everything that a retry needs."""

    reason: DeadLetterReason
    error: str
    source: str
    partition: BusPartition
    position: int
    """The offset in its partition, or the producer's sequence number."""
    data: bytes
    topic_name: str = ""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    event: EventId | None = None
    kind: str | None = None
    append_time: int | None = None
    """The bus's append time in microseconds; rows depend on it."""
    state: DeadLetterState = DeadLetterState.WAITING
    attempts: int = 1


@dataclass(frozen=True)
class WriteBatch:
    """What one transaction writes: all of it or nothing, visible to everybody at once."""

    rows: Collection[Row] = ()
    dead_letters: Sequence[DeadLetter] = ()
    ingests: Sequence[IngestProgress] = ()
    offsets: Sequence[ConsumerOffset] = ()
    instants: Sequence[WriterInstant] = ()
    epoch: int | None = None
    """The store's epoch at which the omitted rows were known to be stored. At another epoch `merge` raises
    EpochChanged."""
    mark: WriterMark | None = None
    """The mark of this connection. If a mark of its writer is behind, `merge` raises StoreSetBack."""
    packed: Sequence[PackedRows] = ()
    """Rows of other keys than `rows`, from `pack_rows`."""


EMPTY_BATCH = WriteBatch()


@dataclass(frozen=True)
class EventRows:
    """The rows of one event, and how to make a dead letter of it."""

    rows: Sequence[Row]
    dead_letter: Callable[[str], DeadLetter]
    """Makes the dead letter from the database's error message."""


@dataclass(frozen=True)
class MergeResult:
    """The outcome of a merge."""

    rows: int
    """How many rows of different keys were merged."""
    refused: tuple[DeadLetter, ...] = ()
    """The events that the database refused."""
    retries: int = 0
    """How often the transaction was repeated because it conflicted with another one."""


@runtime_checkable
class BulkLineageMeta(Protocol):
    """Writes and reads in bulk, for any thread. Merging the same rows again changes nothing, so retries are safe.

    A TransientError means that waiting can help (the database is unreachable, slow, full, locked), a TerminalError that
    it can't (a right is missing, the store has another version). After either nothing is half-written.
    """

    def merge(self, work: WriteBatch) -> MergeResult:
        """Merge a batch in one transaction. Raises StoreDataError if the database refuses a value, and EpochChanged if
        rows were omitted that may be gone by now, and StoreSetBack if transactions of this writer are gone."""
        ...

    def merge_events(self, events: Sequence[EventRows], work: WriteBatch = EMPTY_BATCH) -> MergeResult:
        """Merge events, some of which the database may refuse. It finds those and keeps them as dead letters; all
        others are stored. `work` is written in the last transaction together with the dead letters, so an offset never
        passes an event that isn't stored."""
        ...

    def offsets(self, group: str, cluster: str | None = None) -> Mapping[BusPartition, int]:
        """Return the next offset of each partition that a group reads."""
        ...

    def instants(self, writer: UUID) -> Iterator[WriterInstant]:
        """Yield the stored instants of a writer, newest first."""
        ...

    def unfinished_instants(self) -> Iterator[WriterInstant]:
        """Yield the instants of all writers that are neither completed nor given up."""
        ...

    def dead_letters(
        self, state: DeadLetterState | None = DeadLetterState.WAITING
    ) -> Generator[tuple[str, DeadLetter], None, None]:
        """Yield dead letters with their ids, in the order of their arrival."""
        ...

    def dead_letter(self, name: str) -> DeadLetter | None: ...

    def mark_dead_letters(self, names: Iterable[str], state: DeadLetterState, error: str | None = None) -> None:
        """Set the state after a retry in vain, or a drop. WAITING counts an attempt."""
        ...

    def remove_dead_letters(self, names: Iterable[str]) -> None:
        """Remove letters of which a retry succeeded."""
        ...

    def epoch(self) -> int:
        """Return the store's epoch. Each deletion, expiry and restore increases it; rows that were known to be stored
        may be gone after that."""
        ...

    def close(self) -> None: ...
