"""Tables in databases, by their own names: read and written through a JDBC url, or as tables of a catalog that is one.

They have no versions: neither a read nor a write names one, and that is no gap.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from headwater.events import AlterTable, Format
from headwater.events.identity.catalogs import jdbc_catalog
from headwater.listeners.capture.context import CaptureContext, ExternalRows
from headwater.listeners.capture.formats.jdbc import sinks, table_refs
from headwater.listeners.capture.formats.jdbc.table_refs import dataset_of_table, reported_table_options
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import (
    RddSource,
    ReadVersion,
    SourceRelation,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact, Statement, StatementFacts


class JdbcFormat:
    @property
    def format(self) -> Format:
        return Format.JDBC

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        return table_refs.source(node, plan, context)

    def rdd_sources(self, fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
        return table_refs.sources_of_rdd(fact, context)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        return sinks.sink(node, plan, context)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        return (ReadVersion(),)

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        return sinks.write_result(target, statement)

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        return ()


PLUGIN: Final = FormatPlugin(
    name="jdbc",
    reader=JdbcFormat(),
    order=60,
    packages=(
        "org.apache.spark.sql.execution.datasources.jdbc.",
        "org.apache.spark.sql.execution.datasources.v2.jdbc.",
        "org.apache.spark.sql.jdbc.",
    ),
    java=JavaPart(
        probe="org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation",
        folder=files(__name__) / "java",
        extractor="JdbcExtractor",
    ),
    catalogs={"org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog": jdbc_catalog},
    providers=frozenset(
        {
            "jdbc",
            "org.apache.spark.sql.jdbc",
            "org.apache.spark.sql.execution.datasources.jdbc",
            "org.apache.spark.sql.execution.datasources.jdbc.jdbcrelationprovider",
        }
    ),
    external_rows=ExternalRows(dataset=dataset_of_table, reported_options=reported_table_options),
)
