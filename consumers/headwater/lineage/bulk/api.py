"""The second interface of a store: much at once, and what a writer keeps of itself.

A store that has only the first one (`lineage.api`) can be written to call by call; a writer then keeps its offsets in
Kafka, and has neither a timeline nor a table of dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from headwater.events.envelope import EventId
from headwater.lineage.rows import Row


class Partition(NamedTuple):
    """Of a bus. A topic that was made anew, or that another cluster has, is another one: ids, not names."""

    cluster: str
    topic: str
    number: int = 0


@dataclass(frozen=True)
class Offset:
    """What a consumer group reads next of a partition."""

    group: str
    partition: Partition
    next: int


@dataclass(frozen=True)
class Ingest:
    """Up to which time all of a partition is stored: its last record's append time, or when its end was seen."""

    source: str
    """`kafka`, `log`, or `jdbc` for what comes straight from a driver."""
    partition: Partition
    until: int
    """Microseconds."""
    topic_name: str = ""
    """What people call it: one that was made anew takes the place of the one before."""
    producer: UUID | None = None
    """Of what comes straight from a driver: then the time is the driver's own."""


class State(str, Enum):
    """How far an instant is."""

    REQUESTED = "REQUESTED"
    """Something is about to be written."""
    INFLIGHT = "INFLIGHT"
    GIVEN_UP = "GIVEN_UP"
    """Its writer went before it was completed. Offsets weren't moved, so what it was to write comes again."""
    COMPLETED = "COMPLETED"
    """All of it is there, and the offsets with it."""


@dataclass(frozen=True)
class Instant:
    """On the timeline of one writer process."""

    writer: UUID
    number: int
    state: State = State.REQUESTED
    detail: str | None = None
    """The writer's own words, about what it was going to write; None leaves those that are there."""


class Reason(str, Enum):
    """Why an event couldn't be stored."""

    UNDECODABLE = "UNDECODABLE"
    UNKNOWN = "UNKNOWN"
    """Of a kind that this version doesn't know."""
    INVALID = "INVALID"
    REFUSED = "REFUSED"
    """By the database, for its data."""


class LetterState(str, Enum):
    WAITING = "WAITING"
    STORED = "STORED"
    """Trying again succeeded."""
    DROPPED = "DROPPED"
    """By a person."""


@dataclass(frozen=True)
class DeadLetter:
    """An event that couldn't be stored, with all that it takes to try again."""

    reason: Reason
    words: str
    source: str
    partition: Partition
    position: int
    """In its partition, or in its producer's numbers."""
    data: bytes
    topic_name: str = ""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    event: EventId | None = None
    kind: str | None = None
    appended: int | None = None
    """The bus's append time, which the rows are made with."""
    state: LetterState = LetterState.WAITING
    attempts: int = 1


@dataclass(frozen=True)
class Work:
    """What goes into one transaction: all of it or nothing, visible to everybody at once."""

    rows: Sequence[Row] = ()
    letters: Sequence[DeadLetter] = ()
    ingests: Sequence[Ingest] = ()
    offsets: Sequence[Offset] = ()
    instants: Sequence[Instant] = ()
    epoch: int | None = None
    """The store's, at which all was there that was left out of the rows: at another one it is an EpochMoved."""


NOTHING = Work()


@dataclass(frozen=True)
class Told:
    """What one event tells, and what is kept of it if the database refuses that."""

    rows: Sequence[Row]
    letter: Callable[[str], DeadLetter]
    """Is given the database's words."""


@dataclass(frozen=True)
class Merged:
    """What became of it."""

    rows: int
    """Of different keys."""
    refused: tuple[DeadLetter, ...] = ()
    retries: int = 0
    """How often a transaction was begun again, because it met another one."""


@runtime_checkable
class BulkLineageMeta(Protocol):
    """For any thread. What is merged again changes nothing, so who doesn't know whether it is there merges it again.

    What is raised says whether waiting helps: a TransientError (the database is away, slow, full, locked), or a
    TerminalError (a right is missing, the store is another version's). Nothing is half-written after either.
    """

    def merge(self, work: Work) -> Merged:
        """In one transaction. A StoreDataError says that the database refuses something in the rows, an EpochMoved that
        some were left out that may not be there any more."""
        ...

    def merge_events(self, events: Sequence[Told], work: Work = NOTHING) -> Merged:
        """The same of events, of which some may be refused: those are looked for, and kept as dead letters; all others
        are stored. `work` goes with the last transaction, the dead letters too: an offset never passes what isn't here.
        """
        ...

    def offsets(self, group: str, cluster: str | None = None) -> Mapping[Partition, int]:
        """What a group reads next."""
        ...

    def instants(self, writer: UUID) -> Iterator[Instant]:
        """Those that are kept of a writer, the newest first."""
        ...

    def unfinished(self) -> Iterator[Instant]:
        """Those of all writers that are neither completed nor given up: begun now, or left behind."""
        ...

    def letters(self, state: LetterState | None = LetterState.WAITING) -> Generator[tuple[str, DeadLetter], None, None]:
        """With what each is called, in order of when they came."""
        ...

    def letter(self, name: str) -> DeadLetter | None: ...

    def mark_letter(self, name: str, state: LetterState, words: str | None = None) -> bool:
        """After it was tried again, or was dropped. WAITING counts an attempt. False if there is none."""
        ...

    def unsent_letters(self, cluster: str, topic_name: str, most: int) -> Sequence[tuple[str, DeadLetter]]:
        """The oldest of those that came from a topic and aren't on its dead-letter topic yet."""
        ...

    def letters_sent(self, names: Iterable[str]) -> None:
        """They are there now."""
        ...

    def epoch(self) -> int:
        """Grows with each deletion, expiry and restore: after one, what was known to be here may be gone."""
        ...

    def close(self) -> None: ...
