"""Decides in the store which snapshots belong together: the first job that gets to a number claims its cut, by
compare-and-set on the group's newest number. Every other job takes that cut.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Row, delete, insert, select, update

from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events.clock import wall_micros
from headwater.lineage.rows.values import hash_key
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.sql.upsert import insert_or_update, keep_existing
from headwater.lineage.sql.writer_tables import ALIGNED_JOBS, ALIGNMENT_GROUPS, DATA_VERSIONS
from headwater.lineage.store import Store, translate_errors
from headwater.versions.aligned.fences import JobFence, find_fence
from headwater.versions.cuts import Cut, DataVersion, GroupState, JobProgress

_GROUP: Final = ALIGNMENT_GROUPS.c
_VERSION: Final = DATA_VERSIONS.c
_JOB: Final = ALIGNED_JOBS.c


class JobTakenOverError(TerminalError):
    """Another process has started the same job: this one must stop."""


class DataVersionConflictError(TerminalError):
    """The store says otherwise than a checkpoint which snapshots a data version has."""


class FencedGroupError(TransientError):
    """The jobs of a group stand still while a correction is switched."""


class GroupClaims:
    """One group's data versions in a store, for one job or for whoever looks."""

    def __init__(self, store: Store, group: str) -> None:
        self._store = store
        self.group: Final = group
        self._id: Final = hash_key(ALIGNMENT_GROUPS.name, [group])

    def enter(self, tables: Collection[str]) -> GroupState:
        """Return the group. The first job makes it; a job that reads other tables is refused."""
        row = {
            "id": self._id,
            "name": self.group,
            "tables": json.dumps(sorted(tables), ensure_ascii=False),
            "newest": 0,
            "created_at": wall_micros(),
        }
        with self._transaction() as connection:
            insert_or_update(connection, ALIGNMENT_GROUPS, [row], keep_existing)
        state = self.state()
        if state is None:
            raise TerminalError(f"the group {self.group} has vanished from the store while it was made: start again")
        if strange := sorted(set(tables) - set(state.tables)):
            raise ConfigurationError(
                f"the group {self.group} is of {', '.join(state.tables)}, and not of {', '.join(strange)}: the first "
                "job of a group decides which tables it aligns; read these in a group of another name"
            )
        return state

    def state(self) -> GroupState | None:
        """Return the group as it is now; None if there is none."""
        with self._reading() as connection:
            row = connection.execute(select(ALIGNMENT_GROUPS).where(_GROUP.id == self._id)).first()
        return None if row is None else _group_state(row)

    def version(self, number: int) -> DataVersion | None:
        """Return a data version; None if nobody has claimed that number."""
        found = self.versions_from(number, 1)
        return found[0] if found and found[0].number == number else None

    def versions_from(self, number: int, most: int) -> list[DataVersion]:
        """Return so many data versions from a number on, the oldest first."""
        query = select(DATA_VERSIONS).where(_VERSION.group_id == self._id, _VERSION.number >= number)
        with self._reading() as connection:
            return [_data_version(row) for row in connection.execute(query.order_by(_VERSION.number).limit(most))]

    def newest(self) -> DataVersion | None:
        """Return the newest data version."""
        found = self.versions(1)
        return found[0] if found else None

    def versions(self, most: int) -> list[DataVersion]:
        """Return so many data versions, newest first."""
        query = select(DATA_VERSIONS).where(_VERSION.group_id == self._id).order_by(_VERSION.number.desc()).limit(most)
        with self._reading() as connection:
            return [_data_version(row) for row in connection.execute(query)]

    def jobs(self) -> list[JobProgress]:
        """Return the jobs of the group, by name."""
        with self._reading() as connection:
            return load_jobs(connection, self.group)

    def fence(self) -> JobFence | None:
        """Return the fence at which the jobs of the group stop; None if none stands."""
        with self._reading() as connection:
            return find_fence(connection, self.group)

    def settled_newest(self) -> DataVersion | None:
        """Return the newest data version behind a fence of the caller: claims that were under way when it was set are
        in it."""
        with self._transaction() as connection:  # waits for who has the row's lock
            connection.execute(update(ALIGNMENT_GROUPS).where(_GROUP.id == self._id).values(newest=_GROUP.newest))
        return self.newest()

    def claim(self, number: int, cut: Cut, job: str, *, behind_fence: bool = False) -> DataVersion:
        """Claim a number for a cut that was made from the data version before. Return the data version that has the
        number now: another job's, if that was quicker. A FencedGroupError if a fence stands, unless it is of the
        caller."""
        with self._transaction() as connection:
            # The update takes the row's lock, so that of several jobs one finds the number that it expects.
            taken = connection.execute(
                update(ALIGNMENT_GROUPS).where(_GROUP.id == self._id, _GROUP.newest == number - 1).values(newest=number)
            )
            if taken.rowcount == 1:
                if not behind_fence and (fence := find_fence(connection, self.group)) is not None:
                    raise FencedGroupError(str(fence))
                values = {
                    "group_id": self._id,
                    "number": number,
                    "cut": cut.to_json(),
                    "claimed_by": job,
                    "claimed_at": wall_micros(),
                }
                connection.execute(insert(DATA_VERSIONS).values(values))
        found = self.version(number)
        if found is None:
            raise DataVersionConflictError(
                f"data version {number} of the group {self.group} can't be claimed, and nobody has claimed it: the "
                "store was set back. Start the job that is farthest first: it tells the store what its checkpoint has"
            )
        return found

    def confirm(self, number: int, cut: Cut, job: str) -> None:
        """Tell the store of a data version that a checkpoint has. A store that was set back takes it; one that has
        another cut by that number is an error, as two jobs would go apart."""
        with self._transaction() as connection:
            values = {
                "group_id": self._id,
                "number": number,
                "cut": cut.to_json(),
                "claimed_by": job,
                "claimed_at": wall_micros(),
            }
            insert_or_update(connection, DATA_VERSIONS, [values], keep_existing)
            connection.execute(
                update(ALIGNMENT_GROUPS).where(_GROUP.id == self._id, _GROUP.newest < number).values(newest=number)
            )
        found = self.version(number)
        if found is None or found.cut != cut:
            raise DataVersionConflictError(
                f"data version {number} of the group {self.group} is {found and found.cut} in the store, and {cut} in "
                f"the checkpoint of {job}: the store was set back, and another job has claimed the number anew. Start "
                "this job with a new checkpoint, or the group under another name"
            )

    def set_back(self, number: int) -> None:
        """Take all data versions behind a number out of the group. The next one is claimed anew."""
        with self._transaction() as connection:
            newest = update(ALIGNMENT_GROUPS).where(_GROUP.id == self._id, _GROUP.newest > number)
            connection.execute(newest.values(newest=number))
            connection.execute(delete(DATA_VERSIONS).where(_VERSION.group_id == self._id, _VERSION.number > number))

    def take_over(self, job: str, checkpoint: str) -> int:
        """Register a start of a job, and return its epoch. Older processes of the job are refused from now on."""
        row = {
            "group_id": self._id,
            "job_id": _job_id(job),
            "job": job,
            "checkpoint": checkpoint,
            "epoch": 0,
            "done": None,
            "running": None,
            "moved_at": wall_micros(),
        }
        own = (_JOB.group_id == self._id, _JOB.job_id == _job_id(job))
        with self._transaction() as connection:
            insert_or_update(connection, ALIGNED_JOBS, [row], keep_existing)
            values = {"epoch": _JOB.epoch + 1, "checkpoint": checkpoint, "moved_at": wall_micros()}
            connection.execute(update(ALIGNED_JOBS).where(*own).values(values))
            return int(connection.execute(select(_JOB.epoch).where(*own)).scalar_one())

    def move(self, job: str, epoch: int, *, done: int | None, running: int | None) -> None:
        """Note how far a job is. Raises a JobTakenOverError if another process has started it since."""
        own = (_JOB.group_id == self._id, _JOB.job_id == _job_id(job), _JOB.epoch == epoch)
        with self._transaction() as connection:
            values = {"done": done, "running": running, "moved_at": wall_micros()}
            is_ours = connection.execute(update(ALIGNED_JOBS).where(*own).values(values)).rowcount == 1
        if not is_ours:
            raise JobTakenOverError(
                f"another process has started the job {job} of the group {self.group}: this one stops, and leaves the "
                "rest to that one"
            )

    def is_current(self, job: str, epoch: int) -> bool:
        """Return whether no other process has started the job since."""
        own = (_JOB.group_id == self._id, _JOB.job_id == _job_id(job))
        with self._reading() as connection:
            return connection.execute(select(_JOB.epoch).where(*own)).scalar() == epoch

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        with (
            translate_errors(self._store.target.words),
            self._store.engine.connect().execution_options(**{WRITES: True}) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        with translate_errors(self._store.target.words), self._store.engine.connect() as connection:
            yield connection


def groups_in(store: Store) -> list[GroupState]:
    """Return all groups of a store, by name."""
    with translate_errors(store.target.words), store.engine.connect() as connection:
        return load_groups(connection)


def load_groups(connection: Connection) -> list[GroupState]:
    """Return all groups, by name."""
    found = [_group_state(row) for row in connection.execute(select(ALIGNMENT_GROUPS))]
    return sorted(found, key=lambda group: group.name)


def load_data_versions(connection: Connection, group: str) -> list[DataVersion]:
    """Return all data versions of a group, the newest first."""
    chosen = select(DATA_VERSIONS).where(_VERSION.group_id == hash_key(ALIGNMENT_GROUPS.name, [group]))
    return [_data_version(row) for row in connection.execute(chosen.order_by(_VERSION.number.desc()))]


def load_jobs(connection: Connection, group: str) -> list[JobProgress]:
    """Return the jobs of a group, by name."""
    chosen = select(ALIGNED_JOBS).where(_JOB.group_id == hash_key(ALIGNMENT_GROUPS.name, [group]))
    found = [
        JobProgress(row.job, row.checkpoint, row.epoch, row.done, row.running, row.moved_at)
        for row in connection.execute(chosen)
    ]
    return sorted(found, key=lambda job: job.job)


def checkpoints_of(connection: Connection, job: str) -> dict[str, str]:
    """Return where the checkpoints of the jobs with a name are, by their group."""
    return dict(groups_of(connection, [job]).get(job, ()))


def groups_of(connection: Connection, jobs: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the groups in which aligned jobs of these names run, each with where the job's checkpoint is."""
    chosen = select(_JOB.job, _GROUP.name, _JOB.checkpoint).where(_GROUP.id == _JOB.group_id)
    found: dict[str, list[tuple[str, str]]] = {}
    for row in select_by_keys(connection, chosen, _JOB.job_id, map(_job_id, jobs)):
        found.setdefault(row.job, []).append((row.name, row.checkpoint))
    return found


def _job_id(job: str) -> bytes:
    return hash_key(ALIGNED_JOBS.name, [job])


def _group_state(row: Row[tuple[object, ...]]) -> GroupState:
    return GroupState(row.name, tuple(json.loads(row.tables)), row.newest)


def _data_version(row: Row[tuple[object, ...]]) -> DataVersion:
    return DataVersion(row.number, Cut.from_json(row.cut), row.claimed_by, row.claimed_at)
