"""A store that is open, whichever database or lake it is in."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from sqlalchemy import Engine
from typing_extensions import Self

from headwater.lineage.bulk import DatabaseBulkMeta, WriteBatch
from headwater.lineage.rows import Row
from headwater.lineage.store.options import StoreAddress


class Store:
    """An open store, for any thread."""

    def __init__(self, engine: Engine, target: StoreAddress) -> None:
        self.engine = engine
        self.target = target
        self.bulk = DatabaseBulkMeta(engine, target.words)

    def merge(self, rows: Iterable[Row]) -> int:
        """Merge all rows or none. They are visible to everybody when this returns. Return how many keys they have."""
        return self.bulk.merge(WriteBatch(tuple(rows))).rows

    def close(self) -> None:
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"Store({self.target.words})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


class BorrowedStore(Store):
    """An open store that somebody else closes: a server's, for one question."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine, store.target)

    def close(self) -> None:
        """Its owner closes it."""
