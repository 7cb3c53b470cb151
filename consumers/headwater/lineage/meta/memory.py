"""`LineageMeta` in memory: for tests, and to compare databases with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headwater.events.clock import moment_of
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.mapping.commits import COMPACTED, SOURCE
from headwater.lineage.mapping.keys import qualified_job_name
from headwater.lineage.meta.event_based import EventBasedLineageMeta
from headwater.lineage.predicates import Predicate
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.catalogs import CatalogNames
from headwater.lineage.rows.switches import CatalogSwitches
from headwater.lineage.rows.tombstones import DATA, TABLES_OF, DeletionSubject, TombstoneIndex, deletion_subject


class MemoryLineageMeta(EventBasedLineageMeta):
    """A `LineageMeta` in memory, for any thread."""

    def __init__(self, catalog: str = "") -> None:
        super().__init__(catalog)
        self._state = RowSet()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _merge(self, rows: Iterable[Row]) -> None:
        with self._lock:
            self._state.merge(rows)

    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]:
        with self._lock:
            entities = list(self._table_entities(side))
        return (entity for entity in entities if predicate is None or predicate.holds(entity))

    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]:
        with self._lock:
            entities = list(self._data_entities(side))
        return (entity for entity in entities if predicate is None or predicate.holds(entity))

    def _table_entities(self, side: str) -> Iterator[TableLineage]:
        firsts: dict[tuple[Any, ...], int] = {}
        hides = self._hiding()
        for row in self._state.rows(t.TABLE_LINEAGE):
            values = row.as_dict
            if values["side"] != side or values["table_name"] is None or values["job"] is None:
                continue
            if not hides(deletion_subject(row, TABLES_OF[side])):
                key = (_job(values), values["catalog"] or None, values["database_name"], values["table_name"])
                firsts[key] = min(firsts.get(key, row.times.first), row.times.first)
        for (job, catalog, database, table), first in firsts.items():
            yield TableLineage(job=job, catalog=catalog, database=database, table=table, create_time=moment_of(first))

    def _data_entities(self, side: str) -> Iterator[DataLineage]:
        """Yield one snapshot for each job, barrier and table: new data before compactions, and later ones before
        earlier ones."""
        best: dict[tuple[Any, ...], tuple[tuple[Any, ...], Row]] = {}
        hides = self._hiding()
        commits = {row.id: row.as_dict for row in self._state.rows(t.COMMIT)}
        places = {row.id: row for row in self._state.rows(t.PLACE)}
        for row in self._state.rows(t.READ if side == SOURCE else t.WRITE):
            commit_id, place_id = (row.as_dict[name] for name in ("commit_id", "place_id"))
            commit, place = commits[bytes(commit_id)], places[bytes(place_id)]  # type: ignore[arg-type]  # of its event
            values = row.as_dict | place.as_dict
            if values["table_name"] is None or values["snapshot"] is None or commit["job"] is None:
                continue
            if not values["main"] or hides(deletion_subject(row, DATA, commit, place)):
                continue
            names = (values["catalog"] or None, values["database_name"], values["table_name"])
            key = (_job(commit), commit["barrier"], *names)
            rank = (values["commit_kind"] != COMPACTED, row.times.last, values["snapshot"], row.id)
            if key not in best or rank > best[key][0]:
                best[key] = (rank, row)
        for (job, barrier, catalog, database, table), (rank, row) in best.items():
            yield DataLineage(
                job=job,
                catalog=catalog,
                database=database,
                table=table,
                barrier_id=barrier,
                snapshot_id=rank[2],
                create_time=moment_of(row.times.first),
            )

    def _hiding(self) -> Callable[[DeletionSubject], bool]:
        datasets = {row.id: row for row in self._state.rows(t.DATASET)}
        catalogs = CatalogNames(self._state.rows(t.CATALOG), self._state.rows(t.CATALOG_NAME), datasets)
        stones = TombstoneIndex(self._state.rows(t.TOMBSTONE))
        switches = CatalogSwitches(self._state.rows(t.CATALOG_OPTION))
        return lambda subject: stones.hide(subject, catalogs) or switches.hide(subject, catalogs)


def _job(values: dict[str, Any]) -> str:
    return qualified_job_name(values["job_namespace"], values["job"])
