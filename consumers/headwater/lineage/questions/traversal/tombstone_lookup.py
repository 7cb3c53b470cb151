"""Finds which rows are hidden: by deletions, or by options of their catalogs. Only the tombstones that can concern the
given rows are loaded, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, func, select, true

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.rows import Row
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import OFF, SWITCHES, CatalogNames, CatalogSwitches, DeletionSubject, is_hidden
from headwater.lineage.rows.values import Value
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import decode_row, select_rows, table_of

_FEW: Final = 500
"""Up to this many tombstones are loaded completely."""


class TombstoneLookup:
    """Looks up tombstones for one question."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stones: dict[tuple[str, Value], list[Row]] = {}
        self._asked: set[tuple[str, Value]] = set()
        table = table_of(t.TOMBSTONE)
        found = connection.execute(_some_stones(), {"number": _FEW + 1}).mappings().all()
        self._switches = CatalogSwitches(_load_switches(connection) if found[0]["switched_off"] else ())
        few = [row for row in found if row["id"] is not None]
        self._all_known = len(few) <= _FEW
        if self._all_known:
            self._keep(few)
        else:
            row = table.c
            of_none = and_(row.run.is_(None), row.job.is_(None), row.dataset.is_(None))
            self._keep(connection.execute(select(table).where(of_none)).mappings())

    @property
    def has_runs(self) -> bool:
        """Whether lineage of single runs was deleted, as policies do when a run ends."""
        if self._all_known:
            return any(name == "run" for name, _ in self._stones)
        return True

    @property
    def hides_nothing(self) -> bool:
        return self._all_known and not self._stones and not self._switches

    def are_hidden(self, subjects: Collection[DeletionSubject]) -> list[LimitReason | None]:
        """Return for each subject why it is hidden: DELETED, OMITTED, or None for what is visible."""
        if not self._all_known:
            self._look("run", (subject.run for subject in subjects))
            self._look("job", (name for subject in subjects for name in (subject.job[1], subject.parent[1])))
            self._look("dataset", (subject.dataset for subject in subjects))
        elif self.hides_nothing:
            return [None] * len(subjects)
        catalogs = self._catalogs({subject.dataset for subject in subjects if isinstance(subject.dataset, bytes)})
        return [self._why_hidden(subject, catalogs) for subject in subjects]

    def _why_hidden(self, subject: DeletionSubject, catalogs: CatalogNames) -> LimitReason | None:
        if is_hidden(subject, self._about(subject), catalogs):
            return LimitReason.DELETED
        return LimitReason.OMITTED if self._switches.hide(subject, catalogs) else None

    @property
    def has_catalogs(self) -> bool:
        """Whether the lineage of a catalog was deleted or is switched off."""
        return bool(self._switches) or any(
            stone.as_dict["catalog_id"] is not None for stones in self._stones.values() for stone in stones
        )

    def _catalogs(self, datasets: Collection[bytes]) -> CatalogNames:
        """Load catalogs only if one is needed."""
        if not self.has_catalogs:
            return CatalogNames((), (), {})
        rows = table_of(t.DATASET)
        found = select_by_keys(self._connection, select(rows), rows.c.id, datasets)
        known = {bytes(row.id): decode_row(t.DATASET, _mapping(row)) for row in found}
        return CatalogNames(
            select_rows(self._connection, t.CATALOG), select_rows(self._connection, t.CATALOG_NAME), known
        )

    def _about(self, subject: DeletionSubject) -> Iterable[Row]:
        keys = (
            ("run", subject.run),
            ("job", subject.job[1]),
            ("job", subject.parent[1]),
            ("dataset", subject.dataset),
            ("", None),
        )
        return [stone for key in dict.fromkeys(keys) for stone in self._stones.get(key, ())]

    def _look(self, column: str, values: Iterable[Value]) -> None:
        """Load tombstones by run, else by job, else by dataset: each is indexed by the most specific thing that it
        names."""
        wanted = {value for value in values if value is not None and (column, value) not in self._asked}
        if not wanted:
            return
        self._asked |= {(column, value) for value in wanted}
        table = table_of(t.TOMBSTONE)
        narrower = {"run": (), "job": ("run",), "dataset": ("run", "job")}[column]
        chosen = select(table).where(*(table.c[name].is_(None) for name in narrower))
        self._keep(map(_mapping, select_by_keys(self._connection, chosen, table.c[column], wanted)))

    def _keep(self, stones: Iterable[Any]) -> None:
        for row in stones:
            stone = decode_row(t.TOMBSTONE, row)
            named = stone.as_dict
            key = next(
                ((name, named[name]) for name in ("run", "job", "dataset") if named[name] is not None), ("", None)
            )
            self._stones.setdefault(key, []).append(stone)


def hidden_text(why: LimitReason, what: str = "its lineage") -> str:
    """Say why something is hidden."""
    deleted = why is LimitReason.DELETED
    return f"{what} {'was deleted or has expired' if deleted else 'is switched off by an option of its catalog'}"


def _load_switches(connection: Connection) -> list[Row]:
    option = table_of(t.CATALOG_OPTION)
    found = connection.execute(select(option).where(option.c.name.in_(SWITCHES))).mappings()
    return [decode_row(t.CATALOG_OPTION, row) for row in found]


@cache
def _some_stones() -> Any:
    """Select how many options switch lineage off, beside each of some tombstones, or alone."""
    option, stone = table_of(t.CATALOG_OPTION).c, table_of(t.TOMBSTONE)
    off = select(func.count().label("switched_off")).where(option.name.in_(SWITCHES), option.value == OFF).subquery()
    return select(off.c.switched_off, *stone.c).select_from(off.outerjoin(stone, true())).limit(bindparam("number"))


def _mapping(row: Any) -> Any:
    return row._mapping  # noqa: SLF001 - SQLAlchemy's own public name
