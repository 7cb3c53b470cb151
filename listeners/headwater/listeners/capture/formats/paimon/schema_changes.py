"""How a write changed a table's schema: the schema that was made while the statement ran, beside the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, Table, TableName
from headwater.events.base import StringMap
from headwater.events.catalog import CatalogContext, ModificationCause
from headwater.listeners.capture.formats.paimon.tables import complete_sink, parse_columns
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.schema_diff import SchemaDiff, fields_of
from headwater.listeners.capture.statements import Statement

_BY_PATH: Final = CatalogContext(name="paimon", class_name="org.apache.paimon.spark.SparkSource", factory="paimon")


def schema_changes(target: WriteTarget, statement: Statement) -> tuple[AlterTable, ...]:
    if "made" in target.hints and "by path" not in target.hints:
        return ()  # CREATE TABLE AS SELECT tells the schema with the table
    for writer in statement.facts.looked_up.get("paimon", {}).get("writers", ()):
        if "evolved" in writer:
            return (_alter_event(target, writer, writer["evolved"]),)
    return ()


def _alter_event(target: WriteTarget, writer: Mapping[str, Any], fields: Mapping[str, Any]) -> AlterTable:
    sink = complete_sink(target.sink, writer, target.hints["environment"]) if "made" in target.hints else target.sink
    before, after = parse_columns(fields["columnsBefore"]), parse_columns(fields["columns"])
    table = Table(
        columns=before,
        partitioning=sink.partitioning,
        primary_key=sink.primary_key,
        properties=StringMap(sink.options),
        location=writer["location"],
        provider="paimon",
    )
    return AlterTable(
        context=_BY_PATH if target.catalog is None else target.catalog.context,
        cause=ModificationCause.WRITE,
        identifier=sink.table or TableName(catalog="", database="paimon", table=writer["location"]),
        dataset=sink.dataset,
        generation=sink.generation,
        format=sink.format,
        on_branch=sink.branch,
        schema_id=fields["schema"],
        changes=tuple(SchemaDiff().of(fields_of(before), fields_of(after))),
        table=table,
        new_table=table.model_copy(update={"columns": after}),
    )
