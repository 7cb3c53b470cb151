"""The next cut of a group: from the tables themselves, each a step farther, as far as the steps belong together.

Wakes a continuous job as soon as the lineage store learns of a commit to one of its tables.

It asks the store a question that indexes answer, several times a second: nothing has to be set up in a database, as a
notification would need, and no topic is read. A commit that nobody reports, or that the store learns of late, is found
when the job looks at its tables the next time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, select

from headwater.errors import ConfigurationError, HeadwaterError
from headwater.lineage.questions.names import find_known
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import hash_key
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.writer_tables import ALIGNMENT_GROUPS
from headwater.lineage.store import Store, translate_errors
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import (
    AlignableTable,
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
)
from headwater.versions.alignment import NoAlignmentError
from headwater.versions.cuts import Cut, TableSnapshot
from headwater.versions.questions import check, find_alignment
from headwater.versions.table_parts import split_branch
from headwater.versions.version_question import NamedVersion

_LOG: Final = logging.getLogger(__name__)
_SECONDS: Final = 0.25
_SECONDS_WHILE_AWAY: Final = 5.0

GroupNews = tuple[int | None, frozenset[tuple[bytes, int | None]]]
"""The newest data version of a group, and when each place of its tables was written last."""


class StoreWatch:
    """Sets an event when the store has something new for a group. It asks from a thread of its own, which nobody waits
    for: a store that doesn't answer delays nobody."""

    def __init__(
        self, store: Store, group: str, tables: Collection[str], woken: threading.Event, poll_seconds: float
    ) -> None:
        self._store: Final = store
        self._group: Final = hash_key(ALIGNMENT_GROUPS.name, [group])
        self._tables: Final = tables
        self._woken: Final = woken
        self._seconds_by_name: Final = poll_seconds
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, name="headwater-store-watch", daemon=True)

    def __enter__(self) -> StoreWatch:  # noqa: PYI034 - Self isn't in Python 3.10
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(_SECONDS)

    def _run(self) -> None:
        last: GroupNews | None = None
        datasets, waited, is_away = list[bytes](), self._seconds_by_name, False
        while not self._ended.is_set():
            try:
                with translate_errors(self._store.target.words), self._store.engine.connect() as connection:
                    if waited >= self._seconds_by_name:  # a table may have become known since
                        datasets, waited = _datasets(connection, self._tables), 0.0
                    found = ask(connection, self._group, datasets)
            except HeadwaterError as e:
                if not is_away and not self._ended.is_set():
                    _LOG.warning("the store doesn't say what is new, so tables are looked at now and then: %s", e)
                last, is_away = None, True
            else:
                is_away = False
                if found != last:  # also at first: what came before the first answer isn't in what was looked at
                    last = found
                    self._woken.set()
            seconds = _SECONDS_WHILE_AWAY if is_away else _SECONDS
            waited += seconds
            self._ended.wait(seconds)


def ask(connection: Connection, group: bytes, datasets: Collection[bytes]) -> GroupNews:
    """Return what changes whenever a commit to one of these datasets, or a data version of the group, gets into the
    store."""
    newest = connection.scalar(select(ALIGNMENT_GROUPS.c.newest).where(ALIGNMENT_GROUPS.c.id == group))
    rows = connection.execute(_QUESTION, {"datasets": list(datasets)}) if datasets else ()
    return newest, frozenset((bytes(row.id), row.newest) for row in rows)


def _question() -> Select[Any, Any]:
    """One entry of an index is read for each place, however much was written there."""
    place, write = table_of(t.PLACE).c, table_of(t.WRITE).c
    newest = select(write.first).where(write.place_id == place.id).order_by(write.first.desc()).limit(1)
    is_written = place.made_from.is_not(None)
    chosen = select(place.id, newest.scalar_subquery().label("newest"))
    return chosen.where(place.dataset.in_(bindparam("datasets", expanding=True)), is_written)


_QUESTION: Final = _question()


def _datasets(connection: Connection, tables: Collection[str]) -> list[bytes]:
    names = [split_branch(connection, table)[0] for table in tables]
    return [found.key for name in names if (found := find_known(connection, name)) is not None]


class CutProposer:
    """Finds the next cut of a group of tables."""

    def __init__(self, looker: TableLooker, store: Store, tables: Sequence[str], most: int) -> None:
        self._looker: Final = looker
        self._agreement: Final = StoreAgreement(store)
        self._tables: Final = tables
        self._most: Final = most

    def first(self) -> Cut | None:
        """Return the newest cut of the tables as they are; None if they don't have one that belongs together."""
        tables = self._look()
        newest = {name: found for name, table in tables.items() if (found := table.newest()) is not None}
        agreed = self._agreement.agreed(newest, newest) if len(newest) == len(tables) else None
        return None if agreed is None else _cut(tables, agreed)

    def after(self, before: Cut) -> Cut | None:
        """Return the cut after another one; None while there is nothing new that belongs together."""
        tables = self._look()
        lines = {name: _line(table, before[name]) for name, table in tables.items()}
        steps = {table: _step(before[table].snapshot, line, self._most) for table, line in lines.items()}
        if all(steps[table] == before[table].snapshot for table in self._tables):
            return None
        newest = {name: found for name, table in tables.items() if (found := table.newest()) is not None}
        agreed = self._agreement.agreed(steps, newest)
        if agreed is None or agreed == {table: before[table].snapshot for table in self._tables}:
            return None
        for table in self._tables:  # a cut never goes back
            reachable = {before[table].snapshot, *(commit.snapshot for commit in lines[table])}
            if agreed[table] not in reachable:
                self._agreement.report(f"{table}@{agreed[table]} belongs to the others, and is behind data versions")
                return None
        return _cut(tables, agreed)

    def _look(self) -> dict[str, AlignableTable]:
        return {name: self._looker.source(name, anew=True) for name in self._tables}


def _cut(tables: Mapping[str, AlignableTable], snapshots: Mapping[str, int]) -> Cut:
    """Return a cut of tables as they were looked at, so that one that is made again since doesn't get into it."""
    return Cut({name: tables[name].at(number) for name, number in snapshots.items()})


def _line(table: AlignableTable, before: TableSnapshot) -> Sequence[SourceCommit]:
    found = table.commits_after(before)
    if found is None:
        raise UnalignableTableError(
            f"{table.name} isn't made from snapshot {before.snapshot} any more, which the newest data version has: it "
            "was rolled back, or its snapshots have expired. Data versions never go back: align it in a group of "
            "another name"
        )
    return found


def _step(before: int, line: Sequence[SourceCommit], most: int) -> int:
    """Return the snapshot after so many commits that change rows. Those behind it that don't change any go with it."""
    at, count = before, 0
    for commit in line:
        if commit.effect is not CommitEffect.KEEPS:
            count += 1
        if count > most:
            break
        at = commit.snapshot
    return at if count else before


class StoreAgreement:
    """Asks the lineage store whether snapshots belong together."""

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._reported: str | None = None

    def report(self, why: str) -> None:
        """Say once why the group waits."""
        if why != self._reported:
            self._reported = why
            _LOG.warning("there is no next data version yet: %s", why)

    def agreed(self, snapshots: Mapping[str, int], newest: Mapping[str, int]) -> dict[str, int] | None:
        """Return these snapshots if they belong together, else the newest ones that do; None if there are none yet.
        A branch that nothing was written to yet has a newest one, too, which the tables say.

        A table that the store doesn't know is where lineage begins: it goes with any other. A snapshot that the store
        hasn't heard of yet is waited for, if any job is known to write that table.
        """
        if len(snapshots) < 2:
            return dict(snapshots)
        with translate_errors(self._store.target.words), self._store.engine.connect() as connection:
            known = {
                table: named
                for table, number in snapshots.items()
                if (named := _named_version(connection, table, number)) is not None
            }
            if len(known) < 2 or check(connection, [*known.values()], allow_unseen=True).is_consistent:
                return dict(snapshots)
            ends = [
                row._replace(snapshot=None if row.branch is None else newest[table]) for table, row in known.items()
            ]
            try:
                found = find_alignment(connection, ends)
            except (NoAlignmentError, ConfigurationError) as e:  # also of a table of which no version is known yet
                self.report(str(e))
                return None
        aligned = {
            table: row.table.snapshot
            for table, row in zip(known, found.rows, strict=True)
            if row.table.snapshot is not None
        }
        return {**snapshots, **aligned} if len(aligned) == len(known) else None


def _named_version(connection: Connection, table: str, number: int) -> NamedVersion | None:
    """Return a snapshot of a table as the store names it; None if it doesn't know the table."""
    name, branch = split_branch(connection, table)
    return None if find_known(connection, name) is None else NamedVersion(name, number, branch)
