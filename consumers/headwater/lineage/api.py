"""The store's interface, Paimon PIP-5's: what others can put in the place of the store that is here.

A factory is an entry point of the group `headwater.lineage_meta`, by its identifier; `jdbc` is the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from headwater.lineage.entities import DataLineage, TableLineage
from headwater.lineage.predicates import Predicate

LINEAGE_META: Final = "headwater.lineage_meta"
"""The group of entry points that names factories."""


@dataclass(frozen=True)
class LineageMetaContext:
    """What a factory makes a store of."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """As a catalog has them: `jdbc.url` and the like. They can hold secrets: never log them."""


@runtime_checkable
class LineageMeta(Protocol):
    """Table and data lineage of jobs. Whatever is stored is visible to everybody as soon as the call has come back.

    Storing what is there changes nothing; deleting what isn't there neither.
    """

    def store_source_table_lineage(self, entity: TableLineage) -> None:
        """A job reads a table."""
        ...

    def delete_source_table_lineage(self, job: str) -> None:
        """It reads none of those that were stored so far."""
        ...

    def source_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        """Those that a predicate holds of, or all, as they come."""
        ...

    def store_sink_table_lineage(self, entity: TableLineage) -> None:
        """A job writes a table."""
        ...

    def sink_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]: ...

    def delete_sink_table_lineage(self, job: str) -> None: ...

    def store_source_data_lineage(self, entity: DataLineage) -> None:
        """A barrier of a job read a snapshot."""
        ...

    def source_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]: ...

    def store_sink_data_lineage(self, entity: DataLineage) -> None:
        """A barrier of a job made a snapshot."""
        ...

    def sink_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]: ...

    def close(self) -> None:
        """Let go of everything."""
        ...


@runtime_checkable
class LineageMetaFactory(Protocol):
    def identifier(self) -> str:
        """The name that `lineage-meta` gives it."""
        ...

    def create(self, context: LineageMetaContext) -> LineageMeta: ...
