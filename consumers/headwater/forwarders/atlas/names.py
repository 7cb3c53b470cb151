"""What a dataset is called in Atlas: type and qualifiedName, as Atlas's own hooks call what they have types for.

A table has one name, whichever event it stands in, or two entities would stand for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from headwater.events.catalog import CatalogContext, DatabaseName, TableModification
from headwater.events.jobs import DatasetRef
from headwater.events.names import DatasetId, JobName, TableName
from headwater.events.scalars import FieldPath, Format
from headwater.events.tables import ViewSource
from headwater.forwarders.atlas import types
from headwater.forwarders.atlas.entities import AtlasRef
from headwater.forwarders.atlas.options import AtlasNames
from headwater.forwarders.event_facts import catalog_format

HIVE_TABLE: Final = "hive_table"
HDFS_PATH: Final = "hdfs_path"
KAFKA_TOPIC: Final = "kafka_topic"
RDBMS_TABLE: Final = "rdbms_table"

_COLUMN_TYPES: Final = {
    types.DATASET: types.COLUMN,
    HIVE_TABLE: "hive_column",
    RDBMS_TABLE: "rdbms_column",
}
"""The type of a dataset's columns. Topics, and paths of HDFS, have none in Atlas."""
_SESSION_CATALOG: Final = "spark_catalog"
_HIVES: Final = frozenset(
    {Format.HIVE, Format.PARQUET, Format.ORC, Format.AVRO, Format.CSV, Format.JSON, Format.TEXT}
    | {Format.XML, Format.BINARY}
)
"""Formats of a table that is Hive's if it is in the catalog that Spark shares with Hive."""
_UNTOLD: Final = frozenset({Format.UNKNOWN, Format.OTHER})


@dataclass(frozen=True)
class AtlasDataset:
    """A dataset as Atlas knows it."""

    type_name: str
    base: str
    """The qualifiedName without its end."""
    namespace: str
    name: str
    format: Format = Format.UNKNOWN
    table: TableName | None = None
    dataset: DatasetId | None = None

    @property
    def ref(self) -> AtlasRef:
        return AtlasRef(self.type_name, f"{self.base}@{self.namespace}")

    @property
    def is_own(self) -> bool:
        """Whether nobody but headwater writes it."""
        return self.type_name == types.DATASET

    @property
    def column_type(self) -> str | None:
        return _COLUMN_TYPES.get(self.type_name)

    def column(self, path: FieldPath) -> AtlasRef | None:
        """Return the column that a path leads into: Atlas has no entities for what is nested in one, nor without a
        name."""
        if self.column_type is None or not path or not path[0]:
            return None
        name = path[0].lower() if self.type_name == HIVE_TABLE else path[0]
        return AtlasRef(self.column_type, f"{self.base}.{name}@{self.namespace}")


@dataclass(frozen=True)
class AtlasNamer:
    """Finds the names of datasets, databases and jobs. None is returned if what is known doesn't tell the name."""

    options: AtlasNames

    def of_ref(self, ref: DatasetRef) -> AtlasDataset | None:
        """Return the name of what a job reads or writes."""
        return None if ref.opaque is not None else self._name(ref.dataset, ref.table, ref.format)

    def of_modification(
        self, event: TableModification, table: TableName | None = None, dataset: DatasetId | None = None
    ) -> AtlasDataset | None:
        """Return the name of the table or view that is modified, or of what it is called and where it is afterwards."""
        return self._name(dataset or event.dataset, table or event.identifier, _format_of(event))

    def of_source(self, source: ViewSource, context: CatalogContext) -> AtlasDataset | None:
        """Return the name of what a view reads. The event doesn't tell its format, nor whether it is a view itself."""
        in_catalog = source.table is not None and source.table.catalog == context.name
        format_ = (catalog_format(context) if in_catalog else None) or Format.UNKNOWN
        found = self._name(source.dataset, source.table, format_)
        return replace(found, format=Format.UNKNOWN) if found is not None else None

    def database(self, database: DatabaseName) -> AtlasRef:
        return AtlasRef(types.DATABASE, self._qualified(f"{database.catalog}.{database.database}"))

    def database_of(self, dataset: AtlasDataset) -> DatabaseName | None:
        """Return the database of a table of ours."""
        table = dataset.table
        if not dataset.is_own or table is None or not table.catalog or not table.database:
            return None
        return DatabaseName(catalog=table.catalog, database=table.database)

    def job(self, job: JobName) -> AtlasRef:
        return AtlasRef(types.JOB, self._qualified(str(job)))

    def view_query(self, view: AtlasDataset) -> AtlasRef:
        """Return the name of what makes a view from what it reads."""
        return AtlasRef(types.JOB, self._qualified(f"{view.base}:query"))

    def column_lineage(self, job: AtlasRef, target: AtlasRef) -> AtlasRef:
        return AtlasRef(types.COLUMN_LINEAGE, self._qualified(f"{self._base(job)}:{self._base(target)}"))

    def run(self, run: object) -> AtlasRef:
        return AtlasRef(types.RUN, self._qualified(str(run)))

    def execution(self, job: JobName, *identity: object) -> AtlasRef:
        return AtlasRef(types.EXECUTION, self._qualified(":".join(map(str, (job, *identity)))))

    def _name(self, dataset: DatasetId | None, table: TableName | None, format_: Format) -> AtlasDataset | None:
        if dataset is not None and _scheme(dataset) == "kafka":
            return self._dataset(KAFKA_TOPIC, dataset.name, dataset.name, format_, dataset=dataset)
        if dataset is not None and format_ is Format.JDBC:
            name = dataset.name.rpartition(".")[2]
            return self._dataset(RDBMS_TABLE, str(dataset), name, format_, dataset=dataset)
        if table is not None:
            return self._of_table(table, dataset, format_)
        return None if dataset is None else self._of_place(dataset, format_)

    def _of_table(self, table: TableName, dataset: DatasetId | None, format_: Format) -> AtlasDataset | None:
        is_shared = table.catalog in {"", _SESSION_CATALOG}
        if format_ is Format.HIVE or (is_shared and format_ in _HIVES):
            return self._hive(table, dataset, format_)
        if is_shared and format_ in _UNTOLD:
            return None
        return self._dataset(types.DATASET, str(table), table.table, format_, table=table, dataset=dataset)

    def _of_place(self, dataset: DatasetId, format_: Format) -> AtlasDataset | None:
        scheme = _scheme(dataset)
        if scheme == "inmemory":
            return None
        if scheme == "hive" and dataset.name.count(".") == 1:
            database, _, name = dataset.name.partition(".")
            return self._hive(TableName(catalog=_SESSION_CATALOG, database=database, table=name), dataset, format_)
        if scheme == "hdfs" and (format_ in _HIVES or format_ in _UNTOLD):
            return self._dataset(HDFS_PATH, str(dataset), dataset.name, format_, dataset=dataset)
        return self._dataset(types.DATASET, str(dataset), _last_step(dataset.name), format_, dataset=dataset)

    def _hive(self, table: TableName, dataset: DatasetId | None, format_: Format) -> AtlasDataset:
        base = f"{table.database or 'default'}.{table.table}".lower()
        return self._dataset(HIVE_TABLE, base, table.table.lower(), format_, table=table, dataset=dataset)

    def _dataset(
        self,
        type_name: str,
        base: str,
        name: str,
        format_: Format,
        *,
        dataset: DatasetId | None,
        table: TableName | None = None,
    ) -> AtlasDataset:
        return AtlasDataset(type_name, base, self.options.namespace, name, format_, table, dataset)

    def _qualified(self, base: str) -> str:
        return f"{base}@{self.options.namespace}"

    def _base(self, ref: AtlasRef) -> str:
        return ref.qualified_name.removesuffix(f"@{self.options.namespace}")


def _format_of(event: TableModification) -> Format:
    if event.format not in _UNTOLD:
        return event.format
    return catalog_format(event.context) or event.format


def _scheme(dataset: DatasetId) -> str:
    return dataset.namespace.partition(":")[0].lower()


def _last_step(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
