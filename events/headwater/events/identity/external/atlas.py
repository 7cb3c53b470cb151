"""Apache Atlas: the type of an entity and its qualifiedName."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headwater.events.identity.external.plain import DATABASES, plain_name, scheme_of
from headwater.events.identity.paths import location_of
from headwater.events.names import DatasetId, TableName

DEFAULT_NAMESPACE: Final = "primary"
"""Atlas' own default of `atlas.metadata.namespace`."""

_DIRECTORIES: Final = {
    "s3": ("aws_s3_v2_bucket", "aws_s3_v2_directory"),
    "gs": ("gcp_storage_bucket", "gcp_storage_virtual_directory"),
}
_AZURE_ACCOUNT: Final = ".dfs.core.windows.net"


@dataclass(frozen=True, slots=True)
class AtlasName:
    type_name: str
    qualified_name: str


def atlas_name(dataset: DatasetId, namespace: str = DEFAULT_NAMESPACE, *, s3_scheme: str = "s3") -> AtlasName:
    """The entity that a dataset is. `s3_scheme` is `s3a` where Atlas' Hive hook sees such locations."""
    scheme = scheme_of(dataset)
    if scheme in _DIRECTORIES:
        return _directory(dataset, scheme, s3_scheme if scheme == "s3" else scheme, namespace)
    named = _rdbms if scheme in DATABASES else _NAMED.get(scheme, _path)
    return named(dataset, namespace)


def hive_database(database: str, namespace: str = DEFAULT_NAMESPACE) -> AtlasName:
    return AtlasName("hive_db", f"{database.lower()}@{namespace}")


def hive_table(
    database: str, table: str, namespace: str = DEFAULT_NAMESPACE, *, temporary_in: str | None = None
) -> AtlasName:
    """`temporary_in`: the session of a temporary table."""
    suffix = f"_temp-{temporary_in}" if temporary_in else ""
    return AtlasName("hive_table", f"{database}.{table}".lower() + f"{suffix}@{namespace}")


def hive_column(database: str, table: str, column: str, namespace: str = DEFAULT_NAMESPACE) -> AtlasName:
    return AtlasName("hive_column", f"{database}.{table}.{column}".lower() + f"@{namespace}")


def hive_storage(database: str, table: str, namespace: str = DEFAULT_NAMESPACE) -> AtlasName:
    return AtlasName("hive_storagedesc", f"{hive_table(database, table, namespace).qualified_name}_storage")


def catalog_table(type_name: str, table: TableName, namespace: str = DEFAULT_NAMESPACE) -> AtlasName:
    """Of a V2 catalog, for which Atlas ships no type: `type_name` is one registered with supertype DataSet."""
    return AtlasName(type_name, f"{table}@{namespace}")


def spark_application(application_id: str) -> AtlasName:
    return AtlasName("spark_application", application_id)


def spark_process(application_id: str, execution: int) -> AtlasName:
    """One per execution; the application's id alone would make all its statements one process."""
    return AtlasName("spark_process", f"{application_id}-execution-{execution}")


def spark_column_lineage(process: AtlasName, output_column: AtlasName) -> AtlasName:
    return AtlasName("spark_column_lineage", f"{process.qualified_name}:{output_column.qualified_name}")


def _directory(dataset: DatasetId, scheme: str, written: str, namespace: str) -> AtlasName:
    bucket_type, directory_type = _DIRECTORIES[scheme]
    bucket = f"{written}://{dataset.namespace.partition('://')[2].lower()}"
    if dataset.name == "/":
        return AtlasName(bucket_type, f"{bucket}@{namespace}")
    return AtlasName(directory_type, f"{bucket}/{dataset.name}/@{namespace}")


def _azure(dataset: DatasetId, namespace: str) -> AtlasName:
    """The account without its domain, as Atlas' extractor writes it."""
    container = dataset.namespace.lower().removesuffix(_AZURE_ACCOUNT)
    if dataset.name == "/":
        return AtlasName("adls_gen2_container", f"{container}@{namespace}")
    return AtlasName("adls_gen2_directory", f"{container}/{dataset.name}@{namespace}")


def _ozone(dataset: DatasetId, namespace: str) -> AtlasName:
    steps = dataset.name.strip("/").split("/")
    if len(steps) > 2:
        return AtlasName("ozone_key", f"{location_of(dataset)}@{namespace}")
    return AtlasName("ozone_bucket" if len(steps) == 2 else "ozone_volume", f"ofs://{'.'.join(steps)}@{namespace}")


def _kafka(dataset: DatasetId, namespace: str) -> AtlasName:
    return AtlasName("kafka_topic", f"{dataset.name}@{namespace}")


def _hive(dataset: DatasetId, namespace: str) -> AtlasName:
    database, _, table = plain_name(dataset).partition(".")
    return hive_table(database, table, namespace)


def _rdbms(dataset: DatasetId, namespace: str) -> AtlasName:
    return AtlasName("rdbms_table", f"{dataset.namespace}/{plain_name(dataset)}@{namespace}")


def _path(dataset: DatasetId, namespace: str) -> AtlasName:
    return AtlasName("hdfs_path", f"{location_of(dataset)}@{namespace}")


_NAMED: Final[dict[str, Callable[[DatasetId, str], AtlasName]]] = {
    "kafka": _kafka,
    "hive": _hive,
    "abfss": _azure,
    "ofs": _ozone,
}
