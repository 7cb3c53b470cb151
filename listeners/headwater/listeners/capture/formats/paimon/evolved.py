"""How a write changed a table's schema: the schema that was made while the statement ran, beside the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, CatalogContext, Cause, Table, TableName, Texts
from headwater.listeners.capture.formats.paimon.tables import columns_told, made
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.schemas import Differences, fields_of
from headwater.listeners.capture.statements import Statement

_BY_PATH: Final = CatalogContext(name="paimon", class_name="org.apache.paimon.spark.SparkSource", factory="paimon")


def evolved(target: Target, statement: Statement) -> tuple[AlterTable, ...]:
    if "made" in target.hints and "by path" not in target.hints:
        return ()  # CREATE TABLE AS SELECT tells the schema with the table
    for writer in statement.facts.looked_up.get("paimon", {}).get("writers", ()):
        if "evolved" in writer:
            return (_altered(target, writer, writer["evolved"]),)
    return ()


def _altered(target: Target, writer: Mapping[str, Any], told: Mapping[str, Any]) -> AlterTable:
    sink = made(target.sink, writer, target.hints["site"]) if "made" in target.hints else target.sink
    before, after = columns_told(told["columnsBefore"]), columns_told(told["columns"])
    table = Table(
        columns=before,
        partitioning=sink.partitioning,
        primary_key=sink.primary_key,
        properties=Texts(sink.options),
        location=writer["location"],
        provider="paimon",
    )
    return AlterTable(
        context=_BY_PATH if target.catalog is None else target.catalog.context,
        cause=Cause.WRITE,
        identifier=sink.table or TableName(catalog="", database="paimon", table=writer["location"]),
        dataset=sink.dataset,
        life=sink.life,
        format=sink.format,
        on_branch=sink.branch,
        schema_id=told["schema"],
        changes=tuple(Differences().of(fields_of(before), fields_of(after))),
        table=table,
        new_table=table.model_copy(update={"columns": after}),
    )
