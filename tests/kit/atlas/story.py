"""Three tables and a view in Atlas, told by events: made, filled by two jobs, renamed, dropped and made again."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from headwater.events import Event
from headwater.events.base import StringMap
from headwater.events.catalog import AlterTable, CreateDatabase, CreateTable, CreateView, DatabaseName, DropTable
from headwater.events.changes import AddColumn, RenameColumn, RenameTable
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.jobs import (
    CommitKind,
    Committed,
    Input,
    JobLineage,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    Output,
    ReadMode,
    SinkSchema,
    SourceSchema,
)
from headwater.events.names import DatasetId, JobName, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Column, Database, Table, View, ViewSource
from tests.kit.forwarders.datahub_cases import LAKE, iceberg, in_lake, stamped

ID: Final = Column(name="id", type='"long"', nullable=False)
AMOUNT: Final = Column(name="amount", type='"decimal(10,2)"', comment="with tax")
TOTAL: Final = Column(name="total", type='"decimal(20,2)"')
NOTE: Final = Column(name="note", type='"string"')
ETL: Final = JobName(name="orders_etl")
DAILY: Final = JobName(name="orders_etl.daily")
REPORT: Final = JobName(name="orders_etl.report")


def edge(source: str, target: str, derivation: Derivation, input_: int = 0) -> ColumnLineage:
    return ColumnLineage(output=0, input=input_, source=(source,), target=(target,), derivation=derivation)


def table(name: str, *columns: Column, **more: Any) -> CreateTable:
    return CreateTable(**in_lake(name), table=Table(columns=columns, **more))


def rename(name: str, to: str, *columns: Column) -> AlterTable:
    changes = (RenameTable(table=TableName(catalog="lake", database="sales", table=to)),)
    return AlterTable(**in_lake(name), changes=changes, table=Table(columns=columns), new_table=Table(columns=columns))


def lineage(job: JobName, source: str, sink: str, *columns: ColumnLineage) -> JobLineage:
    return JobLineage(
        job=job,
        parent_job=ETL,
        fingerprint=bytes(16),
        inputs=(SourceSchema(**iceberg(source), columns=(ID, AMOUNT if source == "orders" else TOTAL)),),
        outputs=(SinkSchema(**iceberg(sink), columns=(ID, TOTAL)),),
        columns=columns,
    )


_SAME: Final = edge("id", "id", Derivation.IDENTITY)
MAKING: Final = (
    CreateDatabase(
        context=LAKE, identifier=DatabaseName(catalog="lake", database="sales"), database=Database(comment="the shop's")
    ),
    table("orders", ID, AMOUNT, comment="what was bought", properties=StringMap({"tier": "gold"})),
    table("daily", ID, TOTAL),
    JobStarted(job=ETL, job_type=JobType.BATCH, user="etl"),
    lineage(DAILY, "orders", "daily", _SAME, edge("amount", "total", Derivation.AGGREGATION)),
    Committed(
        job=DAILY,
        parent_job=ETL,
        barrier=7,
        fingerprint=bytes(16),
        inputs=(Input(**iceberg("orders"), mode=ReadMode.STATE, snapshot=7),),
        outputs=(Output(**iceberg("daily"), snapshot=12, parent=11, commit_kind=CommitKind.APPEND, rows=3),),
    ),
    lineage(REPORT, "daily", "report", _SAME, edge("total", "total", Derivation.IDENTITY)),
    JobStatusChanged(job=ETL, status=JobStatus.FINISHED),
)
"""orders → daily → report; nobody told the DDL of report."""
CHANGING: Final = (
    CreateView(
        **{**in_lake("all_orders"), "dataset": None, "format": Format.VIEW},
        view=View(
            columns=(ID,),
            sql="SELECT id FROM lake.sales.orders",
            sources=(
                ViewSource(dataset=DatasetId(namespace="s3://lake", name="w/orders"), table=iceberg("orders")["table"]),
            ),
            lineage=(_SAME,),
        ),
    ),
    AlterTable(
        **in_lake("orders"),
        changes=(RenameColumn(path=("amount",), new_name="price"), AddColumn(path=("note",), type='"string"')),
        new_table=Table(columns=(ID, AMOUNT.model_copy(update={"name": "price"}), NOTE), comment="what was ordered"),
    ),
    rename("daily", "totals", ID, TOTAL),
    table("scratch", ID, NOTE),
    DropTable(**in_lake("scratch")),
    table("scratch", ID),
)


def told(*drafts: Event, first: int = 1) -> list[Event]:
    """The drafts as events, one second after the other."""
    return [stamped(draft, number) for number, draft in enumerate(drafts, first)]


STORY: Final = told(*MAKING, *CHANGING)
RUN: Final = UUID("01890a5d-ac96-7b4b-8cce-b302099a8058")
