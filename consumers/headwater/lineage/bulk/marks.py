"""What tells a writer that the store may lack rows which it wrote: its marks, and the epochs of deletions.

A database can lose its newest rows: after a failover to an asynchronous replica, or a restore from a backup. Offsets
only increase, so a writer that goes on where it stood would skip the lost events for ever. Therefore each connection of
a writer counts its transactions in a row of its own, and each transaction checks all counters of its writer first.

A replay puts other tables in the place of a store's. Writers notice that in the same way, and read on from the offsets
of those tables. A row of its own counts such replacements, so that nobody takes one for a loss.

An epoch counts deletions, expiries and restores, so that writers notice when rows may be gone that they knew to be
stored. Whoever erases something increases it first, in the same transaction, and so waits for writers that rely on the
present rows. A writer that omits rows locks the epoch until its transaction ends.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, select, update

from headwater.errors import HeadwaterError
from headwater.events.clock import wall_micros
from headwater.lineage.sql.upsert import insert_or_update, keep_existing
from headwater.lineage.sql.writer_tables import EPOCHS, MARKS

_ROW: Final = 1


class EpochChanged(HeadwaterError):  # noqa: N818 - no fault
    """Rows were omitted that may be gone by now. Nothing was written; send all rows."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the store is at epoch {epoch}: merge all rows again")
        self.epoch = epoch


def read_epoch(connection: Connection) -> int:
    return connection.execute(select(EPOCHS.c.epoch).where(EPOCHS.c.id == _ROW)).scalar() or 0


def hold_epoch(connection: Connection, expected: int, *, alone: bool = False) -> None:
    """Lock the epoch until the transaction ends, and raise EpochChanged if it isn't the expected one. Set `alone` in a
    transaction that also increases the epoch: two that share the lock would wait for each other."""
    query = select(EPOCHS.c.epoch).where(EPOCHS.c.id == _ROW).with_for_update(read=not alone)
    found = connection.execute(query).scalar()
    if found is None:  # what isn't there can't be held
        insert_or_update(connection, EPOCHS, [{"id": _ROW, "epoch": 0}], keep_existing)
        found = connection.execute(query).scalar_one()
    if found != expected:
        raise EpochChanged(found)


def bump_epoch(connection: Connection) -> None:
    """Increase the epoch. Call it in the erasing transaction, before erasing."""
    insert_or_update(connection, EPOCHS, [{"id": _ROW, "epoch": 1}], lambda held, _: [("epoch", held.epoch + 1)])


_NOTHING: Final = 0
_LOST: Final = (
    "the store lost transactions that it had acknowledged: it was set back, by a failover to a replica that was behind "
    "or by a restore from a backup"
)
_REPLACED: Final = "a replay put other tables in the place of the store's"
REPLACEMENTS: Final = b"headwater replay"
"""The id of the row that counts replacements."""


class StoreSetBack(HeadwaterError):  # noqa: N818 - no fault of the transaction
    """The database lost transactions that it had acknowledged. Nothing was written: read again from its offsets."""

    def __init__(self, words: str = _LOST) -> None:
        super().__init__(words)


class WriterMark:
    """The counter of one connection. Several threads may use it; their transactions wait for each other."""

    def __init__(self, marks: WriterMarks, id: bytes | None = None, *, after: int = 0) -> None:  # noqa: A002 - it is its name
        """With `id` it is the mark that another process of the writer knows by this id, and expects numbers of. The
        numbers are greater than `after`, where several processes count it in turn."""
        self.id: Final = id or uuid4().bytes
        self.marks: Final = marks
        self.acknowledged = _NOTHING
        """The number that an acknowledged transaction left."""
        self._attempts = after

    def next_number(self) -> int:
        self._attempts += 1
        return self._attempts

    def acknowledge(self, number: int) -> None:
        self.acknowledged = max(self.acknowledged, number)


class WriterMarks:
    """All marks of a writer in one store."""

    def __init__(self) -> None:
        self._marks: list[WriterMark] = []
        self.is_set_back = False
        """Whether a connection noticed that the store was set back. Until `start_over` none may write."""
        self.set_back_at: int | None = None
        """When a loss was last noticed, in microseconds."""
        self.replacements: int | None = None
        """How often a replay had replaced the store's tables when this writer began to write; None before that."""
        self._is_replaced = False

    def new(self) -> WriterMark:
        mark = WriterMark(self)
        self._marks.append(mark)
        return mark

    def start_over(self) -> None:
        """Expect nothing of the store any more: the writer reads again from the store's offsets."""
        for mark in self._marks:
            mark.acknowledged = _NOTHING
        self.is_set_back = False
        if not self._is_replaced:
            self.set_back_at = wall_micros()
        self.replacements = None

    def set_back(self, replacements: int) -> StoreSetBack:
        """Let no connection write until `start_over`, and return the error that says why. `replacements` is how often
        the store's tables have been replaced now."""
        self.is_set_back = True
        self._is_replaced = self.replacements is not None and replacements != self.replacements
        return StoreSetBack(_REPLACED if self._is_replaced else _LOST)

    def expected(self) -> dict[bytes, int]:
        """Return the number that each mark has at least."""
        return {mark.id: mark.acknowledged for mark in self._marks if mark.acknowledged != _NOTHING}


def advance_mark(connection: Connection, mark: WriterMark) -> int:
    """Check all marks of the writer, and count this transaction. Return its number, to be acknowledged after the
    commit. Raises StoreSetBack if a mark is missing or behind."""
    if mark.marks.is_set_back:
        raise StoreSetBack
    if mark.marks.replacements is None:
        mark.marks.replacements = read_replacements(connection)
    expected, number = mark.marks.expected(), mark.next_number()
    least = expected.pop(mark.id, None)
    if least is None:
        row = {"id": mark.id, "number": number, "moved_at": wall_micros(), "set_back_at": mark.marks.set_back_at}
        insert_or_update(connection, MARKS, [row], _changes)
    else:
        column = MARKS.c
        moved = {"number": _greatest(column.number, number), "moved_at": wall_micros()}
        changed = update(MARKS).where(column.id == mark.id, column.number >= least).values(moved)
        if not connection.execute(changed).rowcount:
            raise mark.marks.set_back(read_replacements(connection))
    if expected and not _are_there(connection, expected):
        raise mark.marks.set_back(read_replacements(connection))
    return number


def read_replacements(connection: Connection) -> int:
    """Return how often a replay has put other tables in the place of the store's."""
    return connection.execute(select(MARKS.c.number).where(MARKS.c.id == REPLACEMENTS)).scalar() or 0


def last_set_back(connection: Connection) -> int | None:
    """Return when a writer last noticed that this store was set back, in microseconds."""
    return connection.execute(select(func.max(MARKS.c.set_back_at))).scalar()


def delete_marks_before(connection: Connection, micros: int) -> int:
    """Delete the marks of writers that stored nothing since this time."""
    is_old = and_(MARKS.c.moved_at < micros, MARKS.c.id != REPLACEMENTS)
    return connection.execute(delete(MARKS).where(is_old)).rowcount


def _are_there(connection: Connection, expected: dict[bytes, int]) -> bool:
    query = select(MARKS.c.id, MARKS.c.number).where(MARKS.c.id.in_(list(expected)))
    found = {bytes(key): number for key, number in connection.execute(query)}
    return all(found.get(key, _NOTHING) >= number for key, number in expected.items())


def _changes(held: Any, new: Any) -> list[tuple[str, ColumnElement[Any]]]:
    return [
        ("moved_at", new.moved_at),
        ("set_back_at", func.coalesce(new.set_back_at, held.set_back_at)),
        ("number", _greatest(held.number, new.number)),
    ]


def _greatest(one: ColumnElement[Any], other: Any) -> ColumnElement[Any]:
    return case((one > other, one), else_=other)
