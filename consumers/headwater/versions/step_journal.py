"""Journals in the store of what takes several steps, as a correction or a roll-back does: its plan, state and steps.

A step is noted RUNNING before anything is done for it, and DONE after. Whoever finds it RUNNING asks the table's format
whether it was done. One process works on an entry: each write names the epoch that it took over with, and a process
with an older one is refused.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement
from typing_extensions import Self

from headwater.errors import ConfigurationError, TerminalError
from headwater.events.clock import moment_of, wall_micros
from headwater.lineage.rows.values import hash_key
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.sql.writer_tables import CORRECTION_STEPS, CORRECTIONS
from headwater.lineage.store import Store, translate_errors

_ENTRY: Final = CORRECTIONS.c
_STEP: Final = CORRECTION_STEPS.c
_WORD_LENGTH: Final = 24
ROLLBACK: Final = "rollback"
"""The mode of an entry that is a roll-back."""


class TakenOverError(TerminalError):
    """Another process works on the entry: this one must stop."""


class EntryState(str, Enum):
    """How far an entry is."""

    @property
    def is_over(self) -> bool:
        raise NotImplementedError


class StepKind(str, Enum):
    """What a step does with its subject."""

    MIRROR = "MIRROR"
    """Makes the mirror of a table."""
    CUT = "CUT"
    """Adds to a mirror that streams read what its table had up to a right snapshot."""
    FORK = "FORK"
    """Makes a stream's checkpoint for the mirrors."""
    TAKE_OVER = "TAKE_OVER"
    """Takes over what production has written to the source since."""
    RERUN = "RERUN"
    """Runs a job on the mirrors."""
    FENCE = "FENCE"
    """Stops a job of production between two barriers."""
    SWITCH = "SWITCH"
    """Puts a mirror in its table's place."""
    RESUME = "RESUME"
    """Lets a job of production go on."""
    MOVE_JOB = "MOVE_JOB"
    """Lets an aligned job go back to an earlier barrier."""
    MOVE_GROUP = "MOVE_GROUP"
    """Takes data versions out of a group."""
    ROLL_BACK = "ROLL_BACK"
    """Lets a table go back to one of its snapshots."""


class StepState(str, Enum):
    """How far a step is."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


NewStep = tuple[StepKind, str, Mapping[str, Any]]
"""The kind of a step, the table or the job that it is about, and its detail."""


@dataclass(frozen=True, kw_only=True)
class JournalStep:
    """A step of an entry."""

    number: int
    """From 1 on; steps are done in this order."""
    kind: StepKind
    subject: str
    """The table or the job that it is about."""
    state: StepState = StepState.PENDING
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What has to be known to do the step, or came out of it: values of JSON."""
    moved_at: datetime | None = None


class JournalPlan(Protocol):
    """What the journal asks of a plan."""

    @property
    def source(self) -> str: ...

    @property
    def snapshot(self) -> int: ...


StateT = TypeVar("StateT", bound=EntryState)
PlanT = TypeVar("PlanT", bound=JournalPlan)


@dataclass(frozen=True, kw_only=True)
class EntryStatus(Generic[StateT]):
    """An entry without its plan and steps."""

    name: str
    source: str
    snapshot: int
    mode: str
    """Of a correction, how much is read again; `rollback` of a roll-back."""
    state: StateT
    epoch: int
    made_at: datetime
    moved_at: datetime


@dataclass(frozen=True, kw_only=True)
class StepJournalEntry(Generic[PlanT, StateT]):
    """An entry, as the journal has it."""

    status: EntryStatus[StateT]
    plan: PlanT
    steps: tuple[JournalStep, ...]

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def state(self) -> StateT:
        return self.status.state

    def of(self, kind: StepKind) -> tuple[JournalStep, ...]:
        """Return the steps of a kind, in their order."""
        return tuple(step for step in self.steps if step.kind is kind)


class StepJournal(Generic[PlanT, StateT]):
    """The journal of one entry, by its name such as `c-20260301-orders-4f2a`. Each kind has a class of its own."""

    what: ClassVar[str]
    prefix: ClassVar[str]
    """What names begin with."""
    is_rollback: ClassVar[bool]
    plans: TypeAdapter[PlanT]
    states: type[StateT]

    def __init__(self, store: Store, name: str) -> None:
        self._store: Final = store
        self.name: Final = name
        self._id: Final = entry_id(name)

    @classmethod
    def create(cls, store: Store, plan: PlanT, steps: Sequence[NewStep]) -> Self:
        """Note a new entry with its first steps, in the first one of its states."""
        journal, now = cls(store, _new_name(store, cls.prefix, plan.source)), wall_micros()
        values = {
            "id": journal._id,
            "name": journal.name,
            "source": plan.source,
            "snapshot": plan.snapshot,
            "mode": journal.mode_of(plan),
            "plan": journal.plans.dump_json(plan).decode(),
            "state": next(iter(journal.states)).value,
            "epoch": 0,
            "made_at": now,
            "moved_at": now,
        }
        with journal._transaction() as connection:
            connection.execute(insert(CORRECTIONS).values(values))
            journal._insert(connection, 1, steps)
        return journal

    def mode_of(self, plan: PlanT) -> str:
        """Return the mode of a new entry."""
        raise NotImplementedError

    def load(self) -> StepJournalEntry[PlanT, StateT]:
        """Return the entry as it is now. A ConfigurationError if the store knows none of this name and kind."""
        with _reading(self._store) as connection:
            own = select(CORRECTIONS).where(_ENTRY.id == self._id, is_entry_of(is_rollback=self.is_rollback))
            row = connection.execute(own).first()
            query = select(CORRECTION_STEPS).where(_STEP.correction_id == self._id).order_by(_STEP.number)
            steps = connection.execute(query).all()
        if row is None:
            raise ConfigurationError(self._unknown())
        return StepJournalEntry(
            status=_status(row, self.states), plan=self.plans.validate_json(row.plan), steps=tuple(map(_step, steps))
        )

    def epoch(self) -> int | None:
        """Return the epoch of the process that works on it now; None if there is no such entry."""
        with _reading(self._store) as connection:
            return connection.execute(select(_ENTRY.epoch).where(_ENTRY.id == self._id)).scalar()

    def take_over(self) -> int:
        """Return a new epoch. Processes with an older one are refused from now on."""
        with self._transaction() as connection:
            own = _ENTRY.id == self._id
            values = {"epoch": _ENTRY.epoch + 1, "moved_at": wall_micros()}
            connection.execute(update(CORRECTIONS).where(own).values(values))
            found = connection.execute(select(_ENTRY.epoch).where(own)).scalar()
        if found is None:
            raise ConfigurationError(f"the store knows no {self.what} {self.name}")
        return int(found)

    def move(self, epoch: int, expected: Collection[StateT], state: StateT) -> None:
        """Move the entry from one of the states that are expected to another one."""
        with self._transaction() as connection:
            self._check_epoch(connection, epoch)
            found = self.states(connection.execute(select(_ENTRY.state).where(_ENTRY.id == self._id)).scalar_one())
            if found not in expected:
                raise ConfigurationError(
                    f"{self.name} is {found.value}, and only what is "
                    f"{' or '.join(each.value for each in expected)} can become {state.value}"
                )
            connection.execute(update(CORRECTIONS).where(_ENTRY.id == self._id).values(state=state.value))

    def add(self, epoch: int, steps: Sequence[NewStep]) -> tuple[JournalStep, ...]:
        """Add steps behind all that there are, and return them."""
        with self._transaction() as connection:
            self._check_epoch(connection, epoch)
            newest = select(func.max(_STEP.number)).where(_STEP.correction_id == self._id)
            first = (connection.execute(newest).scalar() or 0) + 1
            self._insert(connection, first, steps)
        return tuple(
            JournalStep(number=number, kind=kind, subject=subject, detail=detail)
            for number, (kind, subject, detail) in enumerate(steps, first)
        )

    def move_step(
        self, epoch: int, step: JournalStep, state: StepState, detail: Mapping[str, Any] | None = None
    ) -> JournalStep:
        """Move a step on from the state that it is in, and return it as it is then. `detail` takes the place of its
        own."""
        new_detail = step.detail if detail is None else detail
        now = wall_micros()
        with self._transaction() as connection:
            self._check_epoch(connection, epoch)
            own = (_STEP.correction_id == self._id, _STEP.number == step.number, _STEP.state == step.state.value)
            values = {"state": state.value, "detail": _json(new_detail), "moved_at": now}
            if connection.execute(update(CORRECTION_STEPS).where(*own).values(values)).rowcount != 1:
                raise TakenOverError(
                    f"step {step.number} of {self.name} isn't {step.state.value} any more: another process "
                    "has moved it, so this one stops"
                )
        return JournalStep(
            number=step.number,
            kind=step.kind,
            subject=step.subject,
            state=state,
            detail=dict(new_detail),
            moved_at=moment_of(now),
        )

    def note_detail(self, epoch: int, step: JournalStep, detail: Mapping[str, Any]) -> None:
        """Note something of a step that is RUNNING, before it is done."""
        self.move_step(epoch, step, StepState.RUNNING, detail)

    def _check_epoch(self, connection: Connection, epoch: int) -> None:
        """Take the row's lock, if the epoch is still that of the caller."""
        own = (_ENTRY.id == self._id, _ENTRY.epoch == epoch)
        if connection.execute(update(CORRECTIONS).where(*own).values(moved_at=wall_micros())).rowcount != 1:
            raise TakenOverError(
                f"another process works on {self.name}: this one stops, and leaves the rest to that one"
            )

    def _insert(self, connection: Connection, first: int, steps: Sequence[NewStep]) -> None:
        now = wall_micros()
        rows = [
            {
                "correction_id": self._id,
                "number": number,
                "kind": kind.value,
                "subject": subject,
                "state": StepState.PENDING.value,
                "detail": _json(detail),
                "moved_at": now,
            }
            for number, (kind, subject, detail) in enumerate(steps, first)
        ]
        if rows:
            connection.execute(insert(CORRECTION_STEPS), rows)

    def _unknown(self) -> str:
        """Return what to say where the store has no such entry."""
        found = statuses_in(self._store, self.states, is_rollback=self.is_rollback)
        names = [each.name for each in found if not each.state.is_over]
        others = f"{self.what}s that aren't over are {', '.join(names)}" if names else f"no {self.what} is under way"
        return f"the store knows no {self.what} {self.name}: {others}"

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        with (
            translate_errors(self._store.target.words),
            self._store.engine.connect().execution_options(**{WRITES: True}) as connection,
            connection.begin(),
        ):
            yield connection


def statuses_in(store: Store, states: type[StateT], *, is_rollback: bool) -> list[EntryStatus[StateT]]:
    """Return all entries of a kind, the newest first."""
    with _reading(store) as connection:
        rows = connection.execute(select(CORRECTIONS).where(is_entry_of(is_rollback=is_rollback)))
        found = [_status(row, states) for row in rows]
    return sorted(found, key=lambda each: (each.made_at, each.name), reverse=True)


def is_entry_of(*, is_rollback: bool) -> ColumnElement[bool]:
    """Return the condition for the entries of a kind."""
    return (_ENTRY.mode == ROLLBACK) if is_rollback else (_ENTRY.mode != ROLLBACK)


def entry_id(name: str) -> bytes:
    return hash_key(CORRECTIONS.name, [name])


@contextmanager
def _reading(store: Store) -> Generator[Connection]:
    with translate_errors(store.target.words), store.engine.connect() as connection:
        yield connection


def _new_name(store: Store, prefix: str, source: str) -> str:
    """Return a name that no entry has. It can be a part of a table's name in each format once its hyphens are
    underscores."""
    now = moment_of(wall_micros())
    word = re.sub(r"\W+", "", source.rpartition(".")[2], flags=re.ASCII).lower()[:_WORD_LENGTH] or "table"
    with _reading(store) as connection:
        while True:
            name = f"{prefix}-{now:%Y%m%d}-{word}-{secrets.token_hex(2)}"
            if connection.execute(select(_ENTRY.id).where(_ENTRY.id == entry_id(name))).first() is None:
                return name


def _json(detail: Mapping[str, Any]) -> str:
    return json.dumps(dict(detail), ensure_ascii=False, sort_keys=True)


def _status(row: Row[Any], states: type[StateT]) -> EntryStatus[StateT]:
    return EntryStatus(
        name=row.name,
        source=row.source,
        snapshot=row.snapshot,
        mode=row.mode,
        state=states(row.state),
        epoch=row.epoch,
        made_at=moment_of(row.made_at),
        moved_at=moment_of(row.moved_at),
    )


def _step(row: Row[Any]) -> JournalStep:
    return JournalStep(
        number=row.number,
        kind=StepKind(row.kind),
        subject=row.subject,
        state=StepState(row.state),
        detail=json.loads(row.detail),
        moved_at=moment_of(row.moved_at),
    )
