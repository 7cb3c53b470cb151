"""The next cut of a group: from the tables themselves, each a step farther, as far as the steps belong together."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.questions.names import find_known
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
