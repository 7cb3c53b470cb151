"""Counts deletions, expiries and restores, so that writers notice when rows may be gone that they knew to be stored.

Whoever erases something increases the epoch first, in the same transaction, and so waits for writers that rely on the
present rows. A writer that omits rows locks the epoch until its transaction ends.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select

from headwater.errors import HeadwaterError
from headwater.lineage.bulk.insert_or_update import insert_or_update, keep_existing
from headwater.lineage.sql.writer_tables import EPOCHS

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
