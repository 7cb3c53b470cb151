"""The interface of a lineage store, as Paimon PIP-5 defines it. Others can implement it and replace our store.

A factory is an entry point of the group `headwater.lineage_meta`, named by its identifier. `jdbc` is the default.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from headwater.events.names import Name
from headwater.events.scalars import Long, Timestamp
from headwater.lineage.predicates import Predicate

LINEAGE_META: Final = "headwater.lineage_meta"
"""The group of entry points that names factories."""


class TableLineage(BaseModel):
    """A job reads or writes a table.

    >>> TableLineage(job="orders_etl", database="sales", table="orders").table
    'orders'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    job: Name
    database: str
    table: Name
    create_time: Timestamp | None = None
    """When the fact was stored first; the store sets it if the caller doesn't."""
    catalog: str | None = None
    """The catalog's name. PIP-5 has none, because each catalog has a store of its own there; where several share one, a
    table is `database.table` of one of them."""


class DataLineage(TableLineage):
    """A barrier of a job read or made a snapshot.

    >>> DataLineage(job="orders_etl", database="sales", table="orders", barrier_id=3, snapshot_id=17).snapshot_id
    17
    """

    barrier_id: Long
    snapshot_id: Long


@dataclass(frozen=True)
class LineageMetaContext:
    """What a factory needs to open a store.

    >>> LineageMetaContext({"path": "/var/lib/lineage"}).options["path"]
    '/var/lib/lineage'
    """

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The options of a catalog, `jdbc.url` and the like. They can contain secrets: never log them."""


@runtime_checkable
class LineageMeta(Protocol):
    """Table and data lineage of jobs. Everybody sees what was stored as soon as the call returns.

    Storing what is stored already changes nothing, nor does deleting what doesn't exist. A store of your own derives
    from this class, and writes every method but `close`.

    >>> class HalfStore(LineageMeta):
    ...     def store_source_table_lineage(self, entity):
    ...         print(entity.table)
    >>> HalfStore()
    Traceback (most recent call last):
    TypeError: Can't instantiate abstract class HalfStore ...
    """

    @abstractmethod
    def store_source_table_lineage(self, entity: TableLineage) -> None:
        """Store that a job reads a table."""
        ...

    @abstractmethod
    def delete_source_table_lineage(self, job: str) -> None:
        """Delete all tables that a job reads, as far as they were stored until now."""
        ...

    @abstractmethod
    def source_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        """Yield the entities that match a predicate, or all."""
        ...

    @abstractmethod
    def store_sink_table_lineage(self, entity: TableLineage) -> None:
        """Store that a job writes a table."""
        ...

    @abstractmethod
    def sink_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]: ...

    @abstractmethod
    def delete_sink_table_lineage(self, job: str) -> None: ...

    @abstractmethod
    def store_source_data_lineage(self, entity: DataLineage) -> None:
        """Store that a barrier of a job read a snapshot."""
        ...

    @abstractmethod
    def source_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]: ...

    @abstractmethod
    def store_sink_data_lineage(self, entity: DataLineage) -> None:
        """Store that a barrier of a job wrote a snapshot."""
        ...

    @abstractmethod
    def sink_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]: ...

    def close(self) -> None:
        """Release all resources. Does nothing unless overridden."""
        return


@runtime_checkable
class DeletesDataLineage(Protocol):
    """A store that can delete data lineage, which PIP-5 has as an action only: `headwater lineage delete --scope data`.

    >>> class Store:
    ...     def delete_data_lineage(self, job):
    ...         print(f"which snapshots {job} read and made is forgotten")
    >>> isinstance(Store(), DeletesDataLineage)
    True
    """

    def delete_data_lineage(self, job: str) -> None:
        """Delete which snapshots a job read and made, as far as they were stored until now. Its tables stay."""
        ...


@runtime_checkable
class LineageMetaFactory(Protocol):
    """Opens stores of one kind.

    >>> class DictStoreFactory:
    ...     def identifier(self):
    ...         return "dict"
    ...     def create(self, context):
    ...         return DictStore(context.options)
    >>> isinstance(DictStoreFactory(), LineageMetaFactory)
    True
    """

    def identifier(self) -> str:
        """Return the name that the option `lineage-meta` selects it by."""
        ...

    def create(self, context: LineageMetaContext) -> LineageMeta: ...
