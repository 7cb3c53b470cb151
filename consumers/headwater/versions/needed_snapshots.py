"""Which snapshots of a table corrections that are under way and aligned jobs still need, as the store knows them.

Nobody keeps a format from expiring them, so who runs an expiry has to be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection

from headwater.lineage.questions.names import UnknownNameError, find_dataset
from headwater.lineage.store import Store, translate_errors
from headwater.versions.aligned.claims import GroupClaims, groups_in
from headwater.versions.branches.model import NeededSnapshot
from headwater.versions.correction.journal import Correction, CorrectionJournal, corrections_in
from headwater.versions.correction.model import PlannedTable
from headwater.versions.cuts import GroupState


def needed_snapshots(store: Store, table: str) -> tuple[NeededSnapshot, ...]:
    """Return the snapshots of a table that somebody needs, each with who and what for. An UnknownNameError if the store
    has nothing by that name: it would know of no need either."""
    with translate_errors(store.target.words), store.engine.connect() as connection:
        names = _Names(connection, table)
        if not names.is_known and not any(table in group.tables for group in groups_in(store)):
            find_dataset(connection, table)
        found = [need for group in groups_in(store) for need in _of_group(store, group, names)]
        for status in corrections_in(store):
            if not status.state.is_over:
                found += _of_correction(CorrectionJournal(store, status.name).load(), names)
    return tuple(dict.fromkeys(found))


class _Names:
    """Which names mean the table: that of the question, and others that the store has for it."""

    def __init__(self, connection: Connection, table: str) -> None:
        self._connection: Final = connection
        self._table: Final = table
        self._key: Final = self._key_of(table)

    @property
    def is_known(self) -> bool:
        return self._key is not None

    def mean_it(self, name: str) -> bool:
        return name == self._table or (self._key is not None and self._key == self._key_of(name))

    def _key_of(self, name: str) -> bytes | None:
        try:
            return find_dataset(self._connection, name).key
        except UnknownNameError:
            return None


def _of_group(store: Store, group: GroupState, names: _Names) -> Iterator[NeededSnapshot]:
    """The next barrier of each job reads what came after the data version that it has committed last, and whoever
    starts in the group begins at the newest one."""
    table = next((name for name in group.tables if names.mean_it(name)), None)
    claims = GroupClaims(store, group.name)
    if table is None or group.newest == 0:
        return
    wanted = {group.newest: f"it is in the newest data version of the group {group.name}, {group.newest}"}
    for job in claims.jobs():
        number = job.done if job.done is not None else job.running
        if number is not None:
            goes_on = f"the aligned job {job.job} of the group {group.name} goes on behind it, data version {number}"
            wanted[number] = "; ".join(filter(None, (wanted.get(number), goes_on)))
    for number, consequence in sorted(wanted.items()):
        version = claims.version(number)
        if version is not None and table in version.cut.snapshots:
            yield NeededSnapshot(version.cut[table].snapshot, consequence)


def _of_correction(correction: Correction, names: _Names) -> Iterator[NeededSnapshot]:
    """A mirror begins at a snapshot, jobs read the wrong ones and what came after them, and going back takes the one
    that was right last."""
    for planned in correction.plan.tables:
        if planned.is_corrected and names.mean_it(planned.table):
            for snapshot, what in _snapshots_of(planned).items():
                yield NeededSnapshot(snapshot, f"the correction {correction.name} needs it: {what}")


def _snapshots_of(planned: PlannedTable) -> dict[int, str]:
    found = dict.fromkeys(planned.snapshots, "it is one of those that are corrected")
    if planned.last_right is not None:
        found[planned.last_right] = "it was right last"
    if planned.starts_at is not None:
        found[planned.starts_at] = "a mirror begins there"
    return found
