"""A data source by its format and options → its datasets: `spark.read.format(…)`, `CREATE TABLE/VIEW … USING …`.

A temporary view USING a source is the dataset that its options name, so it comes through here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from headwater.events.base import StringMap
from headwater.events.identity.environment import Environment
from headwater.events.identity.jdbc import JdbcTable, jdbc_table
from headwater.events.identity.kafka import kafka_read, kafka_write
from headwater.events.identity.paths import dataset_of_path, glob_root
from headwater.events.identity.text import IdentityError, Unknown, lower_keys, required
from headwater.events.names import DatasetId


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDatasets:
    """What a source names. Either datasets, or why none can be determined; the rest of its choice as attributes."""

    datasets: tuple[DatasetId, ...] = ()
    unknown: Unknown | None = None
    attributes: StringMap = field(default_factory=StringMap)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceOptions:
    """Everything a reader of one kind of source may look at; option names in lower case."""

    format: str
    options: Mapping[str, str]
    environment: Environment
    seen: tuple[str, ...] | None
    write: bool


_Reader: TypeAlias = Callable[[_SourceOptions], SourceDatasets]

_NO_DATA: Final = frozenset({"rate", "rate-micro-batch", "socket", "memory", "console", "noop", "foreachbatch"})
_NAMES: Final[Mapping[str, str]] = {
    "org.apache.spark.sql.kafka010.kafkasourceprovider": "kafka",
    "org.apache.spark.sql.execution.datasources.jdbc.jdbcrelationprovider": "jdbc",
    "com.microsoft.sqlserver.jdbc.spark": "jdbc",
    "net.snowflake.spark.snowflake": "snowflake",
    "com.google.cloud.spark.bigquery": "bigquery",
    "io.github.spark_redshift_community.spark.redshift": "redshift",
    "com.databricks.spark.redshift": "redshift",
    "org.apache.spark.sql.delta.sources.deltadatasource": "delta",
    "org.apache.iceberg.spark.source.icebergsource": "iceberg",
}
_SELECTORS: Final[Mapping[str, re.Pattern[str]]] = {
    "delta": re.compile(r"@(?:v[0-9]+|[0-9]{17})$"),
    "iceberg": re.compile(r"#[A-Za-z_0-9-]+$"),
}
_BIGQUERY_TABLE = re.compile(r"(?:(?:(?P<project>[\w:.-]+)[.:])?(?P<dataset>\w+)\.)?(?P<table>[\w-]+)(?:\$\w+)?")


def dataset_of_source(
    source_format: str,
    options: Mapping[str, str],
    environment: Environment,
    *,
    seen: Iterable[str] | None = None,
    write: bool = False,
) -> SourceDatasets:
    """The datasets that format and options name.

    `seen` is what the execution showed to be really read or written: the topics of a pattern, the paths of a glob.
    """
    name = required(source_format, "the source's format").lower()
    name = _NAMES.get(name, name)
    source = _SourceOptions(
        format=name,
        options=lower_keys(options),
        environment=environment,
        seen=None if seen is None else tuple(seen),
        write=write,
    )
    if name in _NO_DATA:
        return SourceDatasets(unknown=Unknown(reason=f"source {name} stores nothing that another run could meet"))
    return _READERS.get(name, _files)(source)


def _kafka(source: _SourceOptions) -> SourceDatasets:
    if source.write:
        written = kafka_write(source.options, source.environment, source.seen)
        return SourceDatasets(unknown=written) if isinstance(written, Unknown) else SourceDatasets(datasets=written)
    read = kafka_read(source.options, source.environment, source.seen)
    attributes = {"subscribePattern": read.pattern, "group.id": read.group_id}
    return SourceDatasets(
        datasets=read.datasets,
        unknown=read.unknown,
        attributes=StringMap({key: text for key, text in attributes.items() if text}),
    )


def _jdbc(source: _SourceOptions) -> SourceDatasets:
    options = source.options
    if options.get("query"):
        return _query()
    url = required(options.get("url"), "option url of a jdbc source")
    return _table(jdbc_table(url, options.get("dbtable", ""), source.environment, options))


def _snowflake(source: _SourceOptions) -> SourceDatasets:
    """The connector's own option names for what is a JDBC url elsewhere."""
    if source.options.get("query"):
        return _query()
    account = re.sub(r"^https?://", "", required(source.options.get("sfurl"), "option sfURL"))
    names = {"db": source.options.get("sfdatabase", ""), "schema": source.options.get("sfschema", "")}
    return _table(
        jdbc_table(f"jdbc:snowflake://{account}", source.options.get("dbtable", ""), source.environment, names)
    )


def _redshift(source: _SourceOptions) -> SourceDatasets:
    return _jdbc(source)


def _bigquery(source: _SourceOptions) -> SourceDatasets:
    options = source.options
    text = options.get("table") or options.get("path") or ""
    if options.get("query") or " " in text.strip():
        return _query()
    match = _BIGQUERY_TABLE.fullmatch(required(text, "option table of a bigquery source").strip())
    if match is None:
        msg = "option table of a bigquery source isn't project.dataset.table; give it in full"
        raise IdentityError(msg)
    project = match["project"] or options.get("project") or options.get("parentproject") or ""
    names = {"projectid": project, "defaultdataset": match["dataset"] or options.get("dataset", "")}
    return _table(jdbc_table("jdbc:bigquery://service", f"`{match['table']}`", source.environment, names))


def _files(source: _SourceOptions) -> SourceDatasets:
    """Everything that is kept under a path."""
    if source.seen is not None:
        return _paths(source, source.seen)
    given = _given_paths(source.options)
    if not given:
        reason = f"source {source.format} names no path; what it reads isn't known from its options"
        return SourceDatasets(unknown=Unknown(reason=reason))
    if source.format == "iceberg" and not source.write and any("/" not in path for path in given):
        return SourceDatasets(unknown=Unknown(reason="the path is a table's name in a catalog; ask the loaded table"))
    if any(path.endswith(".metadata.json") for path in given) and source.format == "iceberg":
        return SourceDatasets(unknown=Unknown(reason="the path is an Iceberg metadata file; ask the loaded table"))
    patterns = [] if source.write or source.format in _SELECTORS else [path for path in given if glob_root(path)[1]]
    if patterns:
        reason = "the path is a pattern; which paths are really read shows only in the plan"
        return SourceDatasets(unknown=Unknown(reason=reason), attributes=StringMap({"pattern": ",".join(patterns)}))
    return _paths(source, given)


def _paths(source: _SourceOptions, paths: Iterable[str]) -> SourceDatasets:
    selector = _SELECTORS.get(source.format)
    plain = [selector.sub("", path) if selector else path for path in paths]
    found = {dataset_of_path(path, source.environment): None for path in plain}
    return SourceDatasets(datasets=tuple(found))


def _given_paths(options: Mapping[str, str]) -> list[str]:
    """Option `path`, and `paths` as DataFrameReader.load(a, b) leaves it: a JSON list."""
    try:
        more: object = json.loads(options.get("paths") or "[]")
    except (ValueError, RecursionError):
        more = None
    if not isinstance(more, list) or not all(isinstance(path, str) for path in more):
        msg = "option paths isn't a JSON list of texts"
        raise IdentityError(msg)
    single = options.get("path")
    return [*([single] if single else []), *(str(path) for path in more)]


def _table(found: JdbcTable | Unknown) -> SourceDatasets:
    if isinstance(found, Unknown):
        return SourceDatasets(unknown=found)
    assumed = StringMap({"assumed": ", ".join(found.assumed)} if found.assumed else {})
    return SourceDatasets(datasets=(found.dataset,), attributes=assumed)


def _query() -> SourceDatasets:
    return SourceDatasets(
        unknown=Unknown(reason="option query: it may read several tables, so it isn't one", query=True)
    )


_READERS: Final[Mapping[str, _Reader]] = {
    "kafka": _kafka,
    "jdbc": _jdbc,
    "snowflake": _snowflake,
    "redshift": _redshift,
    "bigquery": _bigquery,
}
