"""Wakes a continuous job as soon as the lineage store learns of a commit to one of its tables.

It asks the store a question that indexes answer, several times a second: nothing has to be set up in a database, as a
notification would need, and no topic is read. A commit that nobody reports, or that the store learns of late, is found
when the job looks at its tables the next time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from types import TracebackType
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, select

from headwater.errors import HeadwaterError
from headwater.lineage.questions.names import find_known
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import hash_key
from headwater.lineage.sql.alignment_tables import ALIGNMENT_GROUPS
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import Store, translate_errors
from headwater.versions.table_parts import split_branch

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
