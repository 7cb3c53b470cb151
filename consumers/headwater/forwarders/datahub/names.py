"""What a dataset is called in DataHub: platform, name, instance, as DataHub's own sources call what they read.

A table has one name, whichever event it stands in, or two entities would stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from datahub.emitter.mce_builder import (
    make_data_flow_urn,
    make_data_job_urn_with_flow,
    make_data_platform_urn,
    make_data_process_instance_urn,
    make_dataplatform_instance_urn,
    make_dataset_urn_with_platform_instance,
)
from datahub.emitter.mcp_builder import ContainerKey, DatabaseKey, NamespaceKey, SchemaKey

from headwater.events.catalog import CatalogContext, DatabaseName, TableModification
from headwater.events.jobs import DatasetRef
from headwater.events.names import DatasetId, JobName, TableName
from headwater.events.scalars import Format
from headwater.events.tables import ViewSource
from headwater.forwarders.datahub.options import DataHubNames
from headwater.forwarders.event_facts import catalog_format

ORCHESTRATOR: Final = "spark"

_FILES: Final = (
    *(Format.PARQUET, Format.ORC, Format.AVRO, Format.CSV, Format.JSON),
    *(Format.TEXT, Format.XML, Format.BINARY),
)
_BY_NAME: Final = {
    Format.ICEBERG: "iceberg",
    Format.PAIMON: "paimon",
    Format.HUDI: "hudi",
    **dict.fromkeys((Format.HIVE, *_FILES), "hive"),
}
"""The platform of a table that is called as its catalog calls it. A catalog's table of plain files is Hive's."""
_BY_PATH: Final = frozenset({"delta-lake", "s3", "gcs", "abs", "hdfs", "file", "dbfs"})
"""Platforms whose sources name a table by where it is."""
_THREE_LEVELS: Final = frozenset({"databricks", "presto", "snowflake", "trino"})
"""Platforms in which the catalog is a part of the name."""
_STORAGES: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "abs"),
    "gs": "gcs",
}
"""DataHub's platform of files, by the scheme of their namespace, where it isn't the scheme."""
_DATABASES: Final = frozenset(
    {
        *("postgres", "mysql", "mariadb", "mssql", "oracle", "redshift", "snowflake", "db2", "clickhouse"),
        *("trino", "teradata", "bigquery", "vertica", "sqlite"),
    }
)
"""The schemes of namespaces of tables behind JDBC: DataHub's platform has the same name."""
_SESSION_CATALOG: Final = "spark_catalog"
_QUOTED: Final = re.compile(r"`((?:[^`]|``)*)`")
_SCHEMA_AND_TABLE: Final = 3
"""So many parts has the name of a table that is in a schema of a database."""


@dataclass(frozen=True)
class DataHubDataset:
    """A dataset as DataHub knows it."""

    platform: str
    name: str
    instance: str | None
    env: str
    parents: tuple[str, ...] = ()
    """What contains it, the outermost first: database, or database and schema. None if it is named by its path."""

    @cached_property
    def urn(self) -> str:
        return make_dataset_urn_with_platform_instance(self.platform, self.name, self.instance, self.env)

    @property
    def platform_urn(self) -> str:
        return make_data_platform_urn(self.platform)

    @property
    def instance_urn(self) -> str | None:
        return make_dataplatform_instance_urn(self.platform, self.instance) if self.instance else None

    @property
    def display_name(self) -> str:
        """The last part of the name, for people."""
        separator = "/" if self.platform in _BY_PATH else "."
        return self.name.removeprefix(".".join((*self.parents, ""))).rpartition(separator)[2] or self.name

    @cached_property
    def containers(self) -> tuple[ContainerKey, ...]:
        """The keys of what contains it, the outermost first, as DataHub's own sources build them."""
        return container_keys(self.platform, self.parents, self.instance, self.env)


@lru_cache(maxsize=256)
def container_keys(platform: str, parents: tuple[str, ...], instance: str | None, env: str) -> tuple[ContainerKey, ...]:
    if not parents:
        return ()
    if platform == "iceberg":
        return (NamespaceKey(platform=platform, instance=instance, env=env, namespace=".".join(parents)),)
    # DataHub's SQL sources take the environment for the instance where there is none, and so must we, for equal keys.
    database = DatabaseKey(
        platform=platform, instance=instance, env=env, backcompat_env_as_instance=True, database=parents[0]
    )
    if len(parents) == 1:
        return (database,)
    schema = SchemaKey(
        platform=platform,
        instance=instance,
        env=env,
        backcompat_env_as_instance=True,
        database=parents[0],
        schema=".".join(parents[1:]),
    )
    return (database, schema)


@dataclass(frozen=True)
class DataHubNamer:
    """Finds the names of datasets, databases and jobs. None is returned if what is known doesn't tell the name."""

    options: DataHubNames

    def of_ref(self, ref: DatasetRef) -> DataHubDataset | None:
        """Return the name of what a job reads or writes."""
        return None if ref.opaque is not None else self._name(ref.dataset, ref.table, ref.format)

    def of_modification(
        self, event: TableModification, table: TableName | None = None, dataset: DatasetId | None = None
    ) -> DataHubDataset | None:
        """Return the name of the table or view that is modified, or of what it is called and where it is afterwards."""
        return self._name(dataset or event.dataset, table or event.identifier, _format_of(event))

    def of_source(self, source: ViewSource, context: CatalogContext) -> DataHubDataset | None:
        """Return the name of what a view reads. The event doesn't tell its format: in a catalog with tables of several
        formats the name stays unknown."""
        table = source.table
        in_catalog = table is not None and table.catalog == context.name
        format_ = catalog_format(context) if in_catalog else None
        if format_ is None and not self._is_named_without_format(source):
            return None
        return self._name(source.dataset, table, format_ or Format.UNKNOWN)

    def of_database(self, context: CatalogContext, database: DatabaseName) -> tuple[ContainerKey, ...]:
        """Return the keys of a database and of what contains it; none if tables of several platforms are in it."""
        catalog = database.catalog or context.name
        format_ = catalog_format(context)
        platform = self._configured("platform", catalog) or _platform_by_name(format_ or Format.UNKNOWN, catalog)
        if platform is None or platform in _BY_PATH:
            return ()
        instance = self._configured("instance", catalog, platform)
        parents = self._parents(platform, TableName(catalog=catalog, database=database.database, table="-"))
        return container_keys(platform, parents, instance, self.options.env)

    def _is_named_without_format(self, source: ViewSource) -> bool:
        scheme = _scheme(source.dataset)
        return (
            scheme in _DATABASES
            or scheme in {"kafka", "hive"}
            or (source.table is not None and source.table.catalog in self.options.platform)
        )

    def _name(self, dataset: DatasetId | None, table: TableName | None, format_: Format) -> DataHubDataset | None:
        catalog = table.catalog if table else ""
        platform = self._configured("platform", catalog, format_.value)
        scheme = _scheme(dataset)
        if dataset is not None and (scheme in _DATABASES or scheme == "kafka"):
            return self._of_server(dataset, platform or scheme, catalog, format_)
        if platform is None and table is not None:
            platform = _platform_by_name(format_, catalog)
        if table is not None and platform is not None and platform not in _BY_PATH:
            parents = self._parents(platform, table)
            return self._dataset(platform, (*parents, _unquote(table.table)), parents, catalog, format_)
        if dataset is None:
            return None
        return self._of_path(dataset, platform, catalog, format_)

    def _of_server(self, dataset: DatasetId, platform: str, catalog: str, format_: Format) -> DataHubDataset:
        parts = tuple(dataset.name.split(".")) if platform != "kafka" else ()
        parents = parts[:-1] if 1 < len(parts) <= _SCHEMA_AND_TABLE and all(parts) else ()
        return self._dataset(platform, (dataset.name,), parents, catalog, format_)

    def _of_path(
        self, dataset: DatasetId, platform: str | None, catalog: str, format_: Format
    ) -> DataHubDataset | None:
        scheme = _scheme(dataset)
        name = _path_name(dataset)
        if scheme == "hive" and not dataset.name.startswith("/"):
            parents = tuple(dataset.name.split(".")[:-1])
            return self._dataset(platform or "hive", (dataset.name,), parents, catalog, format_)
        if scheme == "inmemory" or not name:
            return None
        if platform is None and format_ is Format.DELTA:
            platform = "delta-lake"
        if platform not in _BY_PATH:
            platform = _STORAGES.get(scheme, scheme)
        if platform == "file":
            name = f"{dataset.namespace.partition('://')[2]}/{name}".strip("/")
        return self._dataset(platform, (name,), (), catalog, format_)

    def _dataset(
        self, platform: str, name: tuple[str, ...], parents: tuple[str, ...], catalog: str, format_: Format
    ) -> DataHubDataset:
        instance = self._configured("instance", catalog, format_.value, platform)
        text = ".".join(name)
        if self.options.lowercase:
            text, parents = text.lower(), tuple(parent.lower() for parent in parents)
        return DataHubDataset(platform, text, instance, self.options.env, parents)

    def _parents(self, platform: str, table: TableName) -> tuple[str, ...]:
        """Return the namespaces of a table, as its platform has them."""
        database = tuple(_parts(table.database))
        if platform in _THREE_LEVELS:
            return (table.catalog, ".".join(database)) if table.catalog and database else ()
        return (".".join(database),) if database else ()

    def _configured(self, option: str, *words: str) -> str | None:
        values = self.options.platform if option == "platform" else self.options.instance
        found = (values.get(word) or values.get(word.lower()) for word in words if word)
        return next((each for each in found if each), None)


def flow_urn(names: DataHubNames, job: JobName) -> str:
    """Return the urn of the data flow of an application, or of another job that has steps."""
    return make_data_flow_urn(ORCHESTRATOR, str(job), names.cluster)


def job_urn(names: DataHubNames, job: JobName, parent: JobName | None) -> str:
    """Return the urn of a step's data job. A job without a parent is the only one of its flow."""
    return make_data_job_urn_with_flow(flow_urn(names, parent or job), str(job))


def process_urn(identity: str) -> str:
    return make_data_process_instance_urn(identity)


def _format_of(event: TableModification) -> Format:
    """Return the format of what is modified; for a view, that of the catalog that holds it."""
    if event.format not in {Format.UNKNOWN, Format.OTHER, Format.VIEW}:
        return event.format
    return catalog_format(event.context) or event.format


def _platform_by_name(format_: Format, catalog: str) -> str | None:
    """Return the platform of a table by its catalog's name. The session's own catalog keeps views as Hive does."""
    return "hive" if format_ is Format.VIEW and catalog == _SESSION_CATALOG else _BY_NAME.get(format_)


def _scheme(dataset: DatasetId | None) -> str:
    return dataset.namespace.partition(":")[0].lower() if dataset else ""


def _path_name(dataset: DatasetId) -> str:
    """Return the path of files as DataHub's sources write it: bucket and key, without scheme and outer slashes.

    Of Azure it is the container and the path, without the account; of a file on a host, the path alone.
    """
    authority = dataset.namespace.partition("://")[2]
    scheme = _scheme(dataset)
    if scheme == "file":
        authority = ""
    elif _STORAGES.get(scheme) == "abs":
        authority = authority.partition("@")[0]
    return "/".join(part for part in (authority.strip("/"), dataset.name.strip("/")) if part)


def _parts(name: str) -> Iterator[str]:
    """Split a name at its dots, but not inside quotes, and yield the parts without their quotes."""
    for match in re.finditer(r"`(?:[^`]|``)*`|[^.]+", name):
        yield _unquote(match[0])


def _unquote(name: str) -> str:
    quoted = _QUOTED.fullmatch(name)
    return quoted[1].replace("``", "`") if quoted and quoted[1] else name
