"""What was deleted as a set: the tombstones that can concern what was found are looked up, for all of it at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import Connection, and_, select

from headwater.lineage.law.catalogs import Catalogs
from headwater.lineage.law.visible import Subject, is_hidden
from headwater.lineage.rows import Row
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import Value
from headwater.lineage.sql.among import among
from headwater.lineage.sql.stored import row_of, rows_in
from headwater.lineage.sql.tables import table_of

_FEW: Final = 500
"""So many tombstones are read at once, and none is looked for any more."""


class Hiding:
    """For one question."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stones: dict[tuple[str, Value], list[Row]] = {}
        self._asked: set[tuple[str, Value]] = set()
        table = table_of(t.TOMBSTONE)
        few = connection.execute(select(table).limit(_FEW + 1)).mappings().all()
        self._all_known = len(few) <= _FEW
        if self._all_known:
            self._keep(few)
        else:
            row = table.c
            of_none = and_(row.run.is_(None), row.job.is_(None), row.dataset.is_(None))
            self._keep(connection.execute(select(table).where(of_none)).mappings())

    @property
    def has_runs(self) -> bool:
        """Whether lineage of single runs was deleted, as policies do when they end."""
        if self._all_known:
            return any(name == "run" for name, _ in self._stones)
        return True

    @property
    def hides_nothing(self) -> bool:
        return self._all_known and not self._stones

    def hidden(self, subjects: Collection[Subject]) -> list[bool]:
        """Whether each is."""
        if not self._all_known:
            self._look("run", (each.run for each in subjects))
            self._look("job", (name for each in subjects for name in (each.job[1], each.parent[1])))
            self._look("dataset", (each.dataset for each in subjects))
        elif not self._stones:
            return [False] * len(subjects)
        catalogs = self._catalogs({each.dataset for each in subjects if isinstance(each.dataset, bytes)})
        return [is_hidden(each, self._about(each), catalogs) for each in subjects]

    @property
    def has_catalogs(self) -> bool:
        """Whether lineage of what is in a catalog was deleted: few ever do that."""
        return any(stone.named["catalog_id"] is not None for stones in self._stones.values() for stone in stones)

    def _catalogs(self, datasets: Collection[bytes]) -> Catalogs:
        """They are read only where a tombstone names one."""
        if not self.has_catalogs:
            return Catalogs((), (), {})
        rows = table_of(t.DATASET)
        found = among(self._connection, select(rows), rows.c.id, datasets)
        known = {bytes(each.id): row_of(t.DATASET, _mapping(each)) for each in found}
        return Catalogs(rows_in(self._connection, t.CATALOG), rows_in(self._connection, t.CATALOG_NAME), known)

    def _about(self, subject: Subject) -> Iterable[Row]:
        keys = (
            ("run", subject.run),
            ("job", subject.job[1]),
            ("job", subject.parent[1]),
            ("dataset", subject.dataset),
            ("", None),
        )
        return [stone for key in dict.fromkeys(keys) for stone in self._stones.get(key, ())]

    def _look(self, column: str, values: Iterable[Value]) -> None:
        """Each tombstone is kept by one thing that it names: by its run, else its job, else its dataset."""
        wanted = {value for value in values if value is not None and (column, value) not in self._asked}
        if not wanted:
            return
        self._asked |= {(column, value) for value in wanted}
        table = table_of(t.TOMBSTONE)
        narrower = {"run": (), "job": ("run",), "dataset": ("run", "job")}[column]
        chosen = select(table).where(*(table.c[name].is_(None) for name in narrower))
        self._keep(map(_mapping, among(self._connection, chosen, table.c[column], wanted)))

    def _keep(self, stones: Iterable[Any]) -> None:
        for each in stones:
            stone = row_of(t.TOMBSTONE, each)
            named = stone.named
            key = next(
                ((name, named[name]) for name in ("run", "job", "dataset") if named[name] is not None), ("", None)
            )
            self._stones.setdefault(key, []).append(stone)


def _mapping(row: Any) -> Any:
    return row._mapping  # noqa: SLF001 - SQLAlchemy's own public name
