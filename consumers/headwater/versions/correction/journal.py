"""The journal of corrections and roll-backs, in the store: each one's plan and state, and its steps.

A step is noted RUNNING before anything is done for it, and DONE after. Whoever finds it RUNNING asks the table's format
whether it was done. One process works on a correction: each write names the epoch that it took over with, and a process
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
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, func, insert, select, update

from headwater.errors import ConfigurationError, TerminalError
from headwater.events.clock import moment_of, wall_micros
from headwater.lineage.rows.values import hash_key
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.sql.writer_tables import CORRECTION_STEPS, CORRECTIONS
from headwater.lineage.store import Store, translate_errors
from headwater.versions.correction.model import CorrectionMode, CorrectionPlan

_CORRECTION: Final = CORRECTIONS.c
_STEP: Final = CORRECTION_STEPS.c
_PLAN: Final[TypeAdapter[CorrectionPlan]] = TypeAdapter(CorrectionPlan)
_WORD_LENGTH: Final = 24
ROLLBACK: Final = "rollback"
"""The mode of an entry that is a roll-back."""


class CorrectionTakenOverError(TerminalError):
    """Another process works on the correction: this one must stop."""


class CorrectionState(str, Enum):
    """How far a correction is."""

    BEGINNING = "BEGINNING"
    """Its mirrors are being made."""
    OPEN = "OPEN"
    """Its mirrors are there: rows are corrected, and jobs run on them."""
    SWITCHING = "SWITCHING"
    SWITCHED = "SWITCHED"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"
    ROLLING_BACK = "ROLLING_BACK"
    """Of a roll-back: jobs and tables go back."""
    ROLLED_BACK = "ROLLED_BACK"
    UNDOING = "UNDOING"
    UNDONE = "UNDONE"

    @property
    def is_over(self) -> bool:
        return self in _OVER


_OVER: Final = frozenset(
    {
        *(CorrectionState.SWITCHED, CorrectionState.ABORTED),
        *(CorrectionState.ROLLED_BACK, CorrectionState.UNDONE),
    }
)


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


@dataclass(frozen=True, kw_only=True)
class CorrectionStep:
    """A step of a correction."""

    number: int
    """From 1 on; steps are done in this order."""
    kind: StepKind
    subject: str
    """The table or the job that it is about."""
    state: StepState = StepState.PENDING
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What has to be known to do the step, or came out of it: values of JSON."""
    moved_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class CorrectionStatus:
    """A correction without its plan and steps."""

    name: str
    source: str
    snapshot: int
    mode: CorrectionMode
    state: CorrectionState
    epoch: int
    made_at: datetime
    moved_at: datetime


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A correction, as the journal has it."""

    status: CorrectionStatus
    plan: CorrectionPlan
    steps: tuple[CorrectionStep, ...]

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def state(self) -> CorrectionState:
        return self.status.state

    def of(self, kind: StepKind) -> tuple[CorrectionStep, ...]:
        """Return the steps of a kind, in their order."""
        return tuple(step for step in self.steps if step.kind is kind)


class CorrectionEntry:
    """One entry of the journal, by its name: a correction, or a roll-back."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name: Final = name
        self._id: Final = _id_of(name)

    def note(
        self,
        fields: Mapping[str, Any],
        state: CorrectionState,
        steps: Sequence[tuple[StepKind, str, Mapping[str, Any]]],
    ) -> None:
        """Note a new entry with its first steps: source, snapshot, mode and plan are given."""
        now = wall_micros()
        own = {"id": self._id, "name": self.name, "state": state.value, "epoch": 0, "made_at": now, "moved_at": now}
        with self._transaction() as connection:
            connection.execute(insert(CORRECTIONS).values({**fields, **own}))
            self._insert(connection, 1, steps)

    def read(self, *, is_rollback: bool) -> tuple[Row[Any], tuple[CorrectionStep, ...]]:
        """Return the entry as it is now, and its steps. A ConfigurationError if the store knows none of this name."""
        with reading(self._store) as connection:
            row = connection.execute(select(CORRECTIONS).where(_CORRECTION.id == self._id)).first()
            query = select(CORRECTION_STEPS).where(_STEP.correction_id == self._id).order_by(_STEP.number)
            steps = connection.execute(query).all()
            query = select(_CORRECTION.name, _CORRECTION.state, _CORRECTION.mode)
            known = [
                each.name
                for each in connection.execute(query.order_by(_CORRECTION.made_at.desc()))
                if not CorrectionState(each.state).is_over and (each.mode == ROLLBACK) is is_rollback
            ]
        if row is None or (row.mode == ROLLBACK) is not is_rollback:
            what = "roll-back" if is_rollback else "correction"
            hint = f"{what}s that aren't over are {', '.join(known)}" if known else f"no {what} is under way"
            raise ConfigurationError(f"the store knows no {what} {self.name}: {hint}")
        return row, tuple(map(_step, steps))

    def epoch(self) -> int | None:
        """Return the epoch of the process that works on it now; None if there is no such entry."""
        with reading(self._store) as connection:
            return connection.execute(select(_CORRECTION.epoch).where(_CORRECTION.id == self._id)).scalar()

    def take_over(self) -> int:
        """Return a new epoch. Processes with an older one are refused from now on."""
        with self._transaction() as connection:
            own = _CORRECTION.id == self._id
            values = {"epoch": _CORRECTION.epoch + 1, "moved_at": wall_micros()}
            connection.execute(update(CORRECTIONS).where(own).values(values))
            found = connection.execute(select(_CORRECTION.epoch).where(own)).scalar()
        if found is None:
            raise ConfigurationError(f"the store knows no correction {self.name}")
        return int(found)

    def move(self, epoch: int, expected: Collection[CorrectionState], state: CorrectionState) -> None:
        """Move the correction from one of the states that are expected to another one."""
        with self._transaction() as connection:
            self._check_epoch(connection, epoch)
            found = CorrectionState(
                connection.execute(select(_CORRECTION.state).where(_CORRECTION.id == self._id)).scalar_one()
            )
            if found not in expected:
                raise ConfigurationError(
                    f"{self.name} is {found.value}, and only what is "
                    f"{' or '.join(each.value for each in expected)} can become {state.value}"
                )
            connection.execute(update(CORRECTIONS).where(_CORRECTION.id == self._id).values(state=state.value))

    def add(self, epoch: int, steps: Sequence[tuple[StepKind, str, Mapping[str, Any]]]) -> tuple[CorrectionStep, ...]:
        """Add steps behind all that there are, and return them."""
        with self._transaction() as connection:
            self._check_epoch(connection, epoch)
            newest = select(func.max(_STEP.number)).where(_STEP.correction_id == self._id)
            first = (connection.execute(newest).scalar() or 0) + 1
            self._insert(connection, first, steps)
        return tuple(
            CorrectionStep(number=number, kind=kind, subject=subject, detail=detail)
            for number, (kind, subject, detail) in enumerate(steps, first)
        )

    def move_step(
        self, epoch: int, step: CorrectionStep, state: StepState, detail: Mapping[str, Any] | None = None
    ) -> CorrectionStep:
        """Move a step on from the state that it is in, and return it as it is then. `detail` takes the place of its
        own."""
        kept = step.detail if detail is None else detail
        now = wall_micros()
        with self._transaction() as connection:
            self._check_epoch(connection, epoch)
            own = (_STEP.correction_id == self._id, _STEP.number == step.number, _STEP.state == step.state.value)
            values = {"state": state.value, "detail": _json(kept), "moved_at": now}
            if connection.execute(update(CORRECTION_STEPS).where(*own).values(values)).rowcount != 1:
                raise CorrectionTakenOverError(
                    f"step {step.number} of {self.name} isn't {step.state.value} any more: another process "
                    "has moved it, so this one stops"
                )
        return CorrectionStep(
            number=step.number,
            kind=step.kind,
            subject=step.subject,
            state=state,
            detail=dict(kept),
            moved_at=moment_of(now),
        )

    def note_detail(self, epoch: int, step: CorrectionStep, detail: Mapping[str, Any]) -> None:
        """Note something of a step that is RUNNING, before it is done."""
        self.move_step(epoch, step, StepState.RUNNING, detail)

    def _check_epoch(self, connection: Connection, epoch: int) -> None:
        """Take the row's lock, if the epoch is still that of the caller."""
        own = (_CORRECTION.id == self._id, _CORRECTION.epoch == epoch)
        if connection.execute(update(CORRECTIONS).where(*own).values(moved_at=wall_micros())).rowcount != 1:
            raise CorrectionTakenOverError(
                f"another process works on {self.name}: this one stops, and leaves the rest to that one"
            )

    def _insert(
        self, connection: Connection, first: int, steps: Sequence[tuple[StepKind, str, Mapping[str, Any]]]
    ) -> None:
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

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        with (
            translate_errors(self._store.target.words),
            self._store.engine.connect().execution_options(**{WRITES: True}) as connection,
            connection.begin(),
        ):
            yield connection


class CorrectionJournal(CorrectionEntry):
    """The journal of one correction, `c-20260301-orders-4f2a`."""

    @classmethod
    def create(
        cls,
        store: Store,
        plan: CorrectionPlan,
        steps: Sequence[tuple[StepKind, str]],
        more: Sequence[tuple[StepKind, str, Mapping[str, Any]]] = (),
    ) -> CorrectionJournal:
        """Note a new correction with its first steps, in the state BEGINNING; `more` have details."""
        journal = cls(store, new_name("c", plan.source))
        fields = {
            "source": plan.source,
            "snapshot": plan.snapshot,
            "mode": plan.mode.value,
            "plan": _PLAN.dump_json(plan).decode(),
        }
        journal.note(fields, CorrectionState.BEGINNING, [*((kind, subject, {}) for kind, subject in steps), *more])
        return journal

    def load(self) -> Correction:
        """Return the correction as it is now. A ConfigurationError if the store knows none of this name."""
        row, steps = self.read(is_rollback=False)
        return Correction(status=_status(row), plan=_PLAN.validate_json(row.plan), steps=steps)


def corrections_in(store: Store) -> list[CorrectionStatus]:
    """Return all corrections of a store, the newest first."""
    with reading(store) as connection:
        query = select(CORRECTIONS).where(_CORRECTION.mode != ROLLBACK)
        found = [_status(row) for row in connection.execute(query)]
    return sorted(found, key=lambda each: (each.made_at, each.name), reverse=True)


def corrections_of(connection: Connection, names: Collection[str]) -> dict[str, CorrectionState]:
    """Return the states of the corrections with these names, as far as there are such."""
    chosen = select(_CORRECTION.name, _CORRECTION.state)
    rows = select_by_keys(connection, chosen, _CORRECTION.id, map(_id_of, names))
    return {row.name: CorrectionState(row.state) for row in rows}


@contextmanager
def reading(store: Store) -> Generator[Connection]:
    with translate_errors(store.target.words), store.engine.connect() as connection:
        yield connection


def _id_of(name: str) -> bytes:
    return hash_key(CORRECTIONS.name, [name])


def new_name(prefix: str, source: str) -> str:
    """Return a name that can be a part of a table's name in each format once its hyphens are underscores."""
    now = moment_of(wall_micros())
    word = re.sub(r"\W+", "", source.rpartition(".")[2], flags=re.ASCII).lower()[:_WORD_LENGTH] or "table"
    return f"{prefix}-{now:%Y%m%d}-{word}-{secrets.token_hex(2)}"


def _json(detail: Mapping[str, Any]) -> str:
    return json.dumps(dict(detail), ensure_ascii=False, sort_keys=True)


def _status(row: Row[Any]) -> CorrectionStatus:
    return CorrectionStatus(
        name=row.name,
        source=row.source,
        snapshot=row.snapshot,
        mode=CorrectionMode(row.mode),
        state=CorrectionState(row.state),
        epoch=row.epoch,
        made_at=moment_of(row.made_at),
        moved_at=moment_of(row.moved_at),
    )


def _step(row: Row[Any]) -> CorrectionStep:
    return CorrectionStep(
        number=row.number,
        kind=StepKind(row.kind),
        subject=row.subject,
        state=StepState(row.state),
        detail=json.loads(row.detail),
        moved_at=moment_of(row.moved_at),
    )
