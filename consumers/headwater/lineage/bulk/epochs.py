"""What a writer knows to be in the store may be gone after a deletion, an expiry or a restore: they are counted.

Who takes something away counts before it does, in the same transaction, and waits for those that rely on what is there;
who relies on it looks at the count first, and nobody counts until that is committed.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select

from headwater.errors import HeadwaterError
from headwater.lineage.bulk.putting import nothing, put
from headwater.lineage.bulk.tables import EPOCHS

_ROW: Final = 1


class EpochMoved(HeadwaterError):  # noqa: N818 - no fault
    """Rows were left out that may be gone by now: they have to be told after all. Nothing was written."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the store is at epoch {epoch}: tell it all rows")
        self.epoch = epoch


def epoch(connection: Connection) -> int:
    return connection.execute(select(EPOCHS.c.epoch).where(EPOCHS.c.id == _ROW)).scalar() or 0


def hold_epoch(connection: Connection, expected: int, *, alone: bool = False) -> None:
    """Until the transaction ends the store stays at this epoch. `alone` for who counts in it: two that hold it together
    would wait for each other."""
    wanted = select(EPOCHS.c.epoch).where(EPOCHS.c.id == _ROW).with_for_update(read=not alone)
    found = connection.execute(wanted).scalar()
    if found is None:  # what isn't there can't be held
        put(connection, EPOCHS, [{"id": _ROW, "epoch": 0}], nothing)
        found = connection.execute(wanted).scalar_one()
    if found != expected:
        raise EpochMoved(found)


def bump_epoch(connection: Connection) -> None:
    """In the transaction that takes something away, before it does: others that do so wait for it."""
    put(connection, EPOCHS, [{"id": _ROW, "epoch": 1}], lambda held, _: [("epoch", held.epoch + 1)])
