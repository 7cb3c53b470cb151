"""What all stores have in common that keep rows: calls become events, events become rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from headwater.events.administration import LineageScope
from headwater.events.clock import moment_of
from headwater.events.envelope import Event
from headwater.events.producer import Producer
from headwater.lineage.entities import DataLineage, TableLineage
from headwater.lineage.law import changes
from headwater.lineage.law.commits import SINK, SOURCE
from headwater.lineage.meta import told
from headwater.lineage.predicates import Predicate
from headwater.lineage.rows import Row


class EventedLineageMeta(ABC):
    """A store of rows. For any thread where its subclass is."""

    def __init__(self, catalog: str = "") -> None:
        self._catalog = catalog
        self._producer = Producer()

    def store_source_table_lineage(self, entity: TableLineage) -> None:
        self._tell(told.source_table(entity, self._catalog))

    def delete_source_table_lineage(self, job: str) -> None:
        self._delete(job, LineageScope.SOURCE_TABLES)

    def source_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return self._tables(SOURCE, predicate)

    def store_sink_table_lineage(self, entity: TableLineage) -> None:
        self._tell(told.sink_table(entity, self._catalog))

    def delete_sink_table_lineage(self, job: str) -> None:
        self._delete(job, LineageScope.SINK_TABLES)

    def sink_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return self._tables(SINK, predicate)

    def store_source_data_lineage(self, entity: DataLineage) -> None:
        self._tell(told.source_data(entity, self._catalog))

    def source_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return self._data(SOURCE, predicate)

    def store_sink_data_lineage(self, entity: DataLineage) -> None:
        self._tell(told.sink_data(entity, self._catalog))

    def sink_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return self._data(SINK, predicate)

    def delete_data_lineage(self, job: str) -> None:
        """The proposal has this as an action only, and not in its interface."""
        self._delete(job, LineageScope.DATA)

    def _delete(self, job: str, scope: LineageScope) -> None:
        """All up to now; what is stored by the next call is dated after that, however quick it comes."""
        now = self._producer.clock.now()
        self._tell(told.deletion(job, scope, moment_of(now)))
        self._producer.clock.observe(now + 1)

    def _tell(self, draft: Event) -> None:
        self._producer.emit(draft, lambda event, _: self._merge(changes(event)))

    @abstractmethod
    def _merge(self, rows: Iterable[Row]) -> None:
        """All of them or none, visible when this comes back."""

    @abstractmethod
    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]: ...

    @abstractmethod
    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]: ...
