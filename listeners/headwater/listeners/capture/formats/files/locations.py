"""Where files are: in a directory, as a table of Spark's own catalog or by path alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, TableName
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.names import DatasetId
from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.context import CaptureContext, KnownFormats
from headwater.listeners.capture.plan.tree import Plan

FORMATS: Final[Mapping[str, Format]] = {
    "parquet": Format.PARQUET,
    "orc": Format.ORC,
    "csv": Format.CSV,
    "json": Format.JSON,
    "text": Format.TEXT,
    "avro": Format.AVRO,
    "xml": Format.XML,
    "binaryfile": Format.BINARY,
    "hive": Format.HIVE,
}


def format_of(word: str | None, formats: KnownFormats) -> Format:
    """By a provider's name, or the class of a file format: `org.apache…parquet.ParquetFileFormat`."""
    if not word:
        return Format.UNKNOWN
    short = word.rpartition(".")[2].lower().removesuffix("fileformat").removesuffix("datasource").removesuffix("v2")
    if (owner := formats.of_provider(word)) is not None:
        return owner.format
    if short in FORMATS:
        return FORMATS[short]
    owner = formats.of_provider(short)
    return Format.OTHER if owner is None else owner.format


def location_of_table(table: Mapping[str, Any] | None) -> str | None:
    """Where the catalog says that a table is."""
    return None if table is None else table.get("storage", {}).get("location")


def columns_of_table(plan: Plan, table: Mapping[str, Any] | None) -> tuple[Column, ...]:
    return () if table is None else columns_from_schema_json(plan.types[table["schema"]])


def dataset_of(context: CaptureContext, name: TableName | None, location: str | None) -> DatasetId | None:
    if name is not None:
        return context.dataset(context.session_catalog(), name, location)
    try:
        return None if location is None else dataset_of_path(location, context.environment)
    except IdentityError:
        return None
