"""What rules remember of earlier events: the last commits of tables, which columns jobs read, what changed lately."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from headwater.forwarders.alerts.columns import Alteration, TableAlteration, TableRead
from headwater.forwarders.alerts.store import AlertStore

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tables (
    rule TEXT NOT NULL, name TEXT NOT NULL, names TEXT NOT NULL, last REAL NOT NULL, has_commit INTEGER NOT NULL,
    was_on_time INTEGER NOT NULL DEFAULT 0, alerted REAL, PRIMARY KEY (rule, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tables_by_age ON tables (rule, last);
CREATE TABLE IF NOT EXISTS reads (
    job TEXT NOT NULL, fingerprint TEXT NOT NULL, place TEXT NOT NULL, dataset TEXT, name TEXT, body TEXT NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, PRIMARY KEY (job, fingerprint, place)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS reads_by_dataset ON reads (dataset);
CREATE INDEX IF NOT EXISTS reads_by_name ON reads (name);
CREATE INDEX IF NOT EXISTS reads_by_age ON reads (last);
CREATE TABLE IF NOT EXISTS alterations (
    event TEXT PRIMARY KEY, dataset TEXT, name TEXT NOT NULL, body TEXT NOT NULL, happened REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS alterations_by_age ON alterations (happened);
"""
_OF_TABLE: Final = "(dataset = ? OR ((dataset IS NULL OR ? IS NULL) AND name = ?))"
"""By where it is, which is certain; by name only where one of both isn't known."""


@dataclass(frozen=True)
class WatchedTable:
    """What a rule knows of a table."""

    name: str
    names: tuple[str, ...]
    last: float
    """The time of its last commit; since when it is watched, if it has none."""
    has_commit: bool
    was_on_time: bool


class RuleMemory:
    """The part of the database that rules remember things in. It writes within a transaction of the store."""

    def __init__(self, store: AlertStore) -> None:
        self._store = store
        store.create(SCHEMA)

    def record_commit(self, rule: str, name: str, names: Sequence[str], at: float) -> None:
        statement = (
            "INSERT INTO tables (rule, name, names, last, has_commit) VALUES (?, ?, ?, ?, 1) "
            "ON CONFLICT DO UPDATE SET "
            "last = CASE WHEN has_commit THEN max(last, excluded.last) ELSE excluded.last END, "
            "names = excluded.names, has_commit = 1"
        )
        self._store.execute(statement, (rule, name, json.dumps(names), at))

    def watch(self, rule: str, name: str, now: float) -> None:
        """Expect a commit of a table that isn't known, from now on."""
        statement = "INSERT OR IGNORE INTO tables (rule, name, names, last, has_commit) VALUES (?, ?, ?, ?, 0)"
        self._store.execute(statement, (rule, name, json.dumps([name]), now))

    def unwatch(self, rule: str, name: str) -> None:
        self._store.execute("DELETE FROM tables WHERE rule = ? AND name = ?", (rule, name))

    def tables(self, rule: str) -> list[WatchedTable]:
        return self._watched("SELECT {} FROM tables WHERE rule = ?", rule)

    def late_tables(self, rule: str, before: float) -> list[WatchedTable]:
        """Return the tables whose last commit is older, but for those that there was an alert of since."""
        where = "rule = ? AND last < ? AND (alerted IS NULL OR alerted < last)"
        return self._watched(f"SELECT {{}} FROM tables WHERE {where} ORDER BY last", rule, before)  # noqa: S608

    def record_on_time(self, rule: str, since: float) -> None:
        """Remember which tables aren't late."""
        statement = "UPDATE tables SET was_on_time = 1 WHERE rule = ? AND last >= ? AND was_on_time = 0"
        self._store.execute(statement, (rule, since))

    def record_late(self, rule: str, table: WatchedTable) -> None:
        statement = "UPDATE tables SET alerted = ? WHERE rule = ? AND name = ?"
        self._store.execute(statement, (table.last, rule, table.name))

    def _watched(self, statement: str, *values: Any) -> list[WatchedTable]:
        rows = self._store.select(statement.format("name, names, last, has_commit, was_on_time"), *values)
        return [
            WatchedTable(name, tuple(json.loads(names)), last, bool(has_commit), bool(on_time))
            for name, names, last, has_commit, on_time in rows
        ]

    def record_read(self, read: TableRead) -> None:
        body = json.dumps(
            {"job_names": read.job_names, "outputs": read.outputs, "columns": read.columns, "types": read.types}
        )
        self._store.execute(
            "INSERT INTO reads VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)",
            (
                *(read.job, read.fingerprint, f"{read.dataset}\0{read.table}", read.dataset, read.table, body),
                *(read.first, read.last),
            ),
        )

    def reads_of(self, altered: TableAlteration) -> list[TableRead]:
        rows = self._store.select(
            f"SELECT job, fingerprint, dataset, name, body, first, last FROM reads WHERE {_OF_TABLE}",  # noqa: S608
            *(altered.dataset, altered.dataset, altered.table),
        )
        return [_read(row) for row in rows]

    def record_alteration(self, altered: TableAlteration) -> None:
        statement = "INSERT OR IGNORE INTO alterations VALUES (?, ?, ?, ?, ?)"
        body = json.dumps(asdict(altered))
        self._store.execute(statement, (altered.event, altered.dataset, altered.table, body, altered.happened))

    def alterations_of(self, read: TableRead) -> Iterator[TableAlteration]:
        """Yield what is known to have changed a table since it was read."""
        rows = self._store.select(
            f"SELECT body FROM alterations WHERE {_OF_TABLE} AND happened >= ?",  # noqa: S608
            *(read.dataset, read.dataset, read.table, read.first),
        )
        for (body,) in rows:
            yield _alteration(json.loads(body))

    def prune(self, *, alterations: float, reads: float, tables: float) -> None:
        """Forget what is older."""
        with self._store.transaction():
            self._store.execute("DELETE FROM alterations WHERE happened < ?", (alterations,))
            self._store.execute("DELETE FROM reads WHERE last < ?", (reads,))
            self._store.execute("DELETE FROM tables WHERE last < ? AND has_commit", (tables,))


def _read(row: Sequence[Any]) -> TableRead:
    job, fingerprint, dataset, table, body, first, last = row
    fields: Mapping[str, Any] = json.loads(body)
    return TableRead(
        job=job,
        job_names=tuple(fields["job_names"]),
        fingerprint=fingerprint,
        outputs=fields["outputs"],
        dataset=dataset,
        table=table,
        columns=tuple(map(tuple, fields["columns"])),
        types=_pairs(fields["types"]),
        first=first,
        last=last,
    )


def _alteration(fields: dict[str, Any]) -> TableAlteration:
    read: dict[str, Any] = {
        **fields,
        "names": tuple(fields["names"]),
        "alterations": tuple(
            Alteration(alteration["change"], tuple(alteration["path"])) for alteration in fields["alterations"]
        ),
        "columns": None if fields["columns"] is None else _pairs(fields["columns"]),
    }
    return TableAlteration(**read)


def _pairs(values: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in values)
