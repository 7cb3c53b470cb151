"""What alerts keep on disk: which were raised, which are to be delivered, and how many each rule sent.

It is a SQLite database in the forwarder's directory. What is written to it is on the disk before the offsets of the
events are committed, so that a crash loses no alert, and raises none twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.store.engines.sqlite import make_private_file

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS raised (id TEXT PRIMARY KEY, happened REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS raised_by_age ON raised (happened);
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL, body TEXT NOT NULL, created REAL NOT NULL,
    refused TEXT
);
CREATE INDEX IF NOT EXISTS outbox_by_destination ON outbox (destination, id);
CREATE TABLE IF NOT EXISTS windows (rule TEXT PRIMARY KEY, began REAL NOT NULL, sent INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS held (
    rule TEXT PRIMARY KEY, count INTEGER NOT NULL, first REAL NOT NULL, last REAL NOT NULL, subjects TEXT NOT NULL
);
"""
_SUBJECTS: Final = 10


@dataclass(frozen=True)
class OutboxMessage:
    """An alert that a destination is to get."""

    id: int
    body: str
    created: float


@dataclass(frozen=True)
class HeldAlerts:
    """Alerts of a rule that weren't sent, because it had sent enough."""

    count: int
    first: float
    last: float
    subjects: tuple[str, ...]
    """What some of them are about."""


class AlertStore:
    """The database of one forwarder of alerts, for one thread at a time."""

    def __init__(self, directory: Path | None) -> None:
        """Without a directory, everything is forgotten at the end."""
        self._path = ":memory:" if directory is None else str(directory / "alerts.db")
        try:
            if directory is not None:
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                make_private_file(Path(self._path))
            self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as e:
            raise ConfigurationError(
                f"{self._path} can't be used ({e}): mend the directory, or remove the file; then "
                "alerts of the last day may come again"
            ) from e

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Write within the block, all of it or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as e:
            raise TransientError(f"{self._path}: {e}") from e

    def close(self) -> None:
        self._connection.close()

    def add_raised(self, alert: str, happened: float) -> bool:
        """Remember an alert, and return whether it is new."""
        statement = "INSERT OR IGNORE INTO raised VALUES (?, ?)"
        return self._connection.execute(statement, (alert, happened)).rowcount == 1

    def add_message(self, destination: str, body: str, now: float) -> None:
        statement = "INSERT INTO outbox (destination, body, created) VALUES (?, ?, ?)"
        self._connection.execute(statement, (destination, body, now))

    def messages(self, destination: str, most: int = 20) -> list[OutboxMessage]:
        """Return the next alerts of a destination, in order."""
        rows = self.select(
            "SELECT id, body, created FROM outbox WHERE destination = ? AND refused IS NULL ORDER BY id LIMIT ?",
            *(destination, most),
        )
        return [OutboxMessage(*row) for row in rows]

    def settle_message(self, number: int, refused: str | None = None) -> None:
        """Remove an alert that was delivered; keep one that was refused, with the reason."""
        with self.transaction():
            if refused is None:
                self._connection.execute("DELETE FROM outbox WHERE id = ?", (number,))
            else:
                self._connection.execute("UPDATE outbox SET refused = ? WHERE id = ?", (refused, number))

    def refusals(self, destination: str) -> tuple[int, str]:
        """Return how many alerts a destination refused, and the last reason."""
        rows = self.select(
            "SELECT refused FROM outbox WHERE destination = ? AND refused IS NOT NULL ORDER BY id", destination
        )
        return len(rows), rows[-1][0] if rows else ""

    def waiting(self) -> int:
        return int(self.select("SELECT count(*) FROM outbox WHERE refused IS NULL")[0][0])

    def window(self, rule: str) -> tuple[float, int] | None:
        """Return when the time began that a rule's limit is for, and how many alerts it sent since."""
        rows = self.select("SELECT began, sent FROM windows WHERE rule = ?", rule)
        return None if not rows else (rows[0][0], rows[0][1])

    def put_window(self, rule: str, began: float, sent: int) -> None:
        self._connection.execute("INSERT OR REPLACE INTO windows VALUES (?, ?, ?)", (rule, began, sent))

    def hold(self, rule: str, subject: str, happened: float) -> None:
        """Count an alert that isn't sent, and remember some of what such alerts are about."""
        before = self.held(rule)
        subjects = () if before is None else before.subjects
        if subject not in subjects and len(subjects) < _SUBJECTS:
            subjects = (*subjects, subject)
        count, first, last = (
            (1, happened, happened) if before is None else (before.count + 1, before.first, before.last)
        )
        values = (rule, count, min(first, happened), max(last, happened), json.dumps(subjects))
        self._connection.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?, ?)", values)

    def held(self, rule: str) -> HeldAlerts | None:
        """Return what is held back of a rule."""
        rows = self.select("SELECT count, first, last, subjects FROM held WHERE rule = ?", rule)
        if not rows:
            return None
        count, first, last, subjects = rows[0]
        return HeldAlerts(count, first, last, tuple(json.loads(subjects)))

    def forget_held(self, rule: str) -> None:
        self._connection.execute("DELETE FROM held WHERE rule = ?", (rule,))

    def prune(self, *, raised: float, messages: float) -> list[tuple[str, int]]:
        """Forget what is older, and return how many alerts no destination took in time."""
        with self.transaction():
            self._connection.execute("DELETE FROM raised WHERE happened < ?", (raised,))
            lost = self.select(
                "SELECT destination, count(*) FROM outbox WHERE created < ? AND refused IS NULL GROUP BY 1", messages
            )
            self._connection.execute("DELETE FROM outbox WHERE created < ?", (messages,))
        return lost

    def count(self, table: str) -> int:
        return int(self.select(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608

    def create(self, schema: str) -> None:
        """Create tables that aren't there yet."""
        self._connection.executescript(schema)

    def execute(self, statement: str, values: Sequence[Any]) -> None:
        """Run a statement within a transaction."""
        self._connection.execute(statement, values)

    def select(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as e:
            raise TransientError(f"{self._path}: {e}") from e
