"""What DataHub is told of an event, case by case, for a reviewer to read: an event, and the proposals it becomes.

    python -m tests.kit.forwarders.datahub_cases

writes the files anew. Read what changed before it is committed.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from headwater.events import Event
from headwater.events.base import StringMap
from headwater.events.catalog import (
    AlterDatabase,
    AlterTable,
    AlterView,
    BranchMerged,
    CatalogContext,
    CorrectionSwitched,
    CreateBranch,
    CreateDatabase,
    CreateTable,
    CreateTag,
    CreateView,
    DatabaseName,
    DropBranch,
    DropDatabase,
    DropTable,
    DropTag,
    DropView,
    MainReplaced,
    ModificationEffect,
    Truncate,
)
from headwater.events.changes import AddColumn, RemoveProperty, RenameTable, SetComment, SetProperty
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.health import Gap, GapReason
from headwater.events.jobs import (
    CommitKind,
    Committed,
    ErrorDetails,
    Input,
    JobLineage,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    Output,
    OverwriteScope,
    RangeStart,
    ReadMode,
    RunScope,
    SinkSchema,
    Source,
    SourceSchema,
    SparkDetails,
    StatementFailed,
    StreamDetails,
)
from headwater.events.names import DatasetId, JobName, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Column, Database, Table, TableKind, Transform, View, ViewSource, Watermark
from headwater.forwarders.datahub.forwarder import datahub_proposals
from headwater.forwarders.datahub.options import DataHubNames
from headwater.forwarders.datahub.proposals import Proposal

FOLDER: Final = Path(__file__).parents[2] / "golden/forwarders/datahub"
PRODUCER: Final = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
RUN: Final = UUID("01890a5d-ac96-7b4b-8cce-b302099a8058")
QUERY: Final = UUID("6f9619ff-8b86-4011-b42d-00c04fc964ff")
NOON: Final = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
"""1772366400000 milliseconds since 1970."""
ETL: Final = JobName(name="orders_etl")
STEP: Final = JobName(name="orders_etl.lake.sales.daily")
CLICKS: Final = JobName(name="clicks")

LAKE: Final = CatalogContext(name="lake", class_name="org.apache.iceberg.spark.SparkCatalog", factory="iceberg")
SESSION: Final = CatalogContext(name="spark_catalog", class_name="DeltaCatalog", factory="delta")
HIVE: Final = CatalogContext(name="spark_catalog", class_name="V2SessionCatalog", factory="hive")


def iceberg(table: str) -> dict[str, Any]:
    """How a job names a table of the lake."""
    return {
        "dataset": DatasetId(namespace="s3://lake", name=f"warehouse/sales/{table}"),
        "table": TableName(catalog="lake", database="sales", table=table),
        "format": Format.ICEBERG,
    }


def in_lake(table: str) -> dict[str, Any]:
    """How DDL names it."""
    names = iceberg(table)
    return {"context": LAKE, "identifier": names.pop("table"), **names}


ID: Final = Column(name="id", type='"long"', nullable=False, comment="the shop's own number")
AMOUNT: Final = Column(name="amount", type='"decimal(10,2)"')
DAY: Final = Column(name="day", type='"date"')
LINES: Final = Column(
    name="lines",
    type='{"type":"array","elementType":{"type":"struct","fields":'
    '[{"name":"sku","type":"string","nullable":false,"metadata":{"comment":"as on the label"}}]},"containsNull":true}',
)
ORDERS: Final = Table(
    columns=(ID, AMOUNT, DAY, LINES),
    partitioning=(Transform(name="days", columns=(("day",),)), Transform(columns=(("id",),))),
    primary_key=(("id",),),
    watermarks=(Watermark(column=("day",), delay="1 hour"),),
    properties=StringMap({"write.format.default": "parquet"}),
    comment="what was bought",
    location="s3://lake/warehouse/sales/orders",
    provider="iceberg",
    table_kind=TableKind.MANAGED,
    owner="etl",
)
TOTALS: Final = View(
    columns=(Column(name="total", type='"decimal(20,2)"'),),
    sql="SELECT sum(amount) AS total FROM lake.sales.orders WHERE day = ?",
    sources=(ViewSource(dataset=iceberg("orders")["dataset"], table=iceberg("orders")["table"]),),
    lineage=(
        ColumnLineage(output=0, input=0, source=("amount",), target=("total",), derivation=Derivation.AGGREGATION),
        ColumnLineage(output=0, input=0, source=("day",), derivation=Derivation.FILTER),
    ),
    comment="of all days",
)
LINEAGE: Final = JobLineage(
    job=STEP,
    parent_job=ETL,
    fingerprint=bytes(16),
    inputs=(
        SourceSchema(**iceberg("orders"), columns=(ID, AMOUNT, DAY)),
        SourceSchema(
            dataset=DatasetId(namespace="postgres://db:5432", name="shop.public.rates"),
            format=Format.JDBC,
            columns=(Column(name="rate", type='"double"'),),
        ),
        SourceSchema(dataset=None, opaque="an RDD"),
    ),
    outputs=(SinkSchema(**iceberg("daily"), columns=(DAY, Column(name="total", type='"decimal(20,2)"'))),),
    columns=(
        ColumnLineage(
            output=0,
            input=0,
            source=("amount",),
            target=("total",),
            derivation=Derivation.AGGREGATION,
            expression="sum(amount / rate)",
        ),
        ColumnLineage(output=0, input=1, source=("rate",), target=("total",), derivation=Derivation.AGGREGATION),
        ColumnLineage(output=0, input=0, source=("day",), target=("day",), derivation=Derivation.IDENTITY),
        ColumnLineage(output=0, input=0, source=("id",), derivation=Derivation.FILTER),
    ),
)
COMMIT: Final = Committed(
    job=STEP,
    parent_job=ETL,
    barrier=1_858_460_870_375_463_936,
    fingerprint=bytes(16),
    statement=214,
    user="anna",
    inputs=(
        Input(**iceberg("orders"), mode=ReadMode.STATE, snapshot=7, rows=1000),
        Input(**iceberg("customers"), mode=ReadMode.CHANGES, snapshot=9, since=RangeStart(snapshot=5)),
    ),
    outputs=(
        Output(
            **iceberg("daily"),
            snapshot=12,
            parent=11,
            commit_kind=CommitKind.OVERWRITE,
            replaced=OverwriteScope.ALL,
            made_from=(0, 1),
            rows=31337,
        ),
    ),
)
STREAM: Final = Committed(
    job=CLICKS,
    parent_job=ETL,
    barrier=(1_772_366_400_000 << 20) + 41,
    incarnation=QUERY,
    batch_id=41,
    inputs=(
        Input(
            dataset=DatasetId(namespace="kafka://broker:9092", name="clicks"),
            format=Format.KAFKA,
            mode=ReadMode.CHANGES,
            since=RangeStart(version='{"0":100}'),
            version='{"0":140}',
        ),
    ),
    outputs=(Output(**iceberg("daily"), commit_kind=CommitKind.APPEND, candidates=(11, 12)),),
)
DRAFTS: Final[dict[str, Event]] = {
    "database_created": CreateDatabase(
        context=LAKE,
        identifier=DatabaseName(catalog="lake", database="sales"),
        database=Database(comment="what the shop sells", owner="etl", properties=StringMap({"tier": "gold"})),
    ),
    "database_altered": AlterDatabase(
        context=LAKE,
        identifier=DatabaseName(catalog="lake", database="sales"),
        new_database=Database(comment="what the shops sell"),
    ),
    "database_dropped": DropDatabase(context=LAKE, identifier=DatabaseName(catalog="lake", database="sales")),
    "table_created": CreateTable(**in_lake("orders"), generation=UUID(int=1), produced=7, table=ORDERS),
    "table_made_again": CreateTable(
        **in_lake("orders"), generation=UUID(int=2), table=Table(columns=(ID,)), replaced=True
    ),
    "table_of_delta": CreateTable(
        context=SESSION,
        identifier=TableName(catalog="spark_catalog", database="sales", table="orders"),
        dataset=DatasetId(namespace="s3://lake", name="delta/orders"),
        format=Format.DELTA,
        table=Table(columns=(ID, LINES), provider="delta"),
    ),
    "table_of_hive": CreateTable(
        context=HIVE,
        identifier=TableName(catalog="spark_catalog", database="sales", table="orders"),
        dataset=DatasetId(namespace="hdfs://namenode:8020", name="/warehouse/sales.db/orders"),
        format=Format.PARQUET,
        table=Table(columns=(ID, LINES), provider="parquet"),
    ),
    "table_that_may_exist": CreateTable(
        **in_lake("orders"), table=ORDERS, ignore_if_exists=True, effect=ModificationEffect.UNKNOWN
    ),
    "columns_and_properties_altered": AlterTable(
        **in_lake("orders"),
        changes=(
            AddColumn(path=("note",), type='"string"', comment="of the customer"),
            SetProperty(key="tier", value="gold"),
            RemoveProperty(key="write.format.default"),
            SetComment(comment="what was ordered"),
        ),
        table=ORDERS,
        new_table=Table(columns=(ID, AMOUNT, Column(name="note", type='"string"', comment="of the customer"))),
    ),
    "column_added_on_a_branch": AlterTable(
        **in_lake("orders"),
        on_branch="audit",
        changes=(AddColumn(path=("note",), type='"string"'),),
        new_table=Table(columns=(ID,)),
    ),
    "table_renamed": AlterTable(
        **in_lake("orders"),
        changes=(RenameTable(table=TableName(catalog="lake", database="sales", table="bought")),),
        table=ORDERS,
        new_table=ORDERS,
    ),
    "table_dropped": DropTable(**in_lake("orders"), table=ORDERS, purge=True),
    "view_created": CreateView(**{**in_lake("totals"), "dataset": None, "format": Format.VIEW}, view=TOTALS),
    "view_defined_again": AlterView(
        **{**in_lake("totals"), "dataset": None, "format": Format.VIEW},
        view=TOTALS,
        new_view=View(columns=(Column(name="n", type='"long"'),), sql="SELECT count(*) AS n FROM lake.sales.daily"),
    ),
    "view_dropped": DropView(**{**in_lake("totals"), "dataset": None, "format": Format.VIEW}, view=TOTALS),
    "partition_truncated": Truncate(**in_lake("orders"), partitions=(StringMap({"day": "2026-03-01"}),), produced=8),
    "tag_created": CreateTag(**in_lake("orders"), tag="eod", snapshot=7),
    "tag_dropped": DropTag(**in_lake("orders"), tag="eod"),
    "branch_created": CreateBranch(**in_lake("orders"), branch="audit", snapshot=7),
    "branch_dropped": DropBranch(**in_lake("orders"), branch="audit"),
    "branch_merged": BranchMerged(**in_lake("orders"), branch="audit", previous_snapshot=7, snapshot=9),
    "main_replaced": MainReplaced(**in_lake("orders"), branch="audit", snapshot=9),
    "application_started": JobStarted(
        job=ETL,
        job_type=JobType.BATCH,
        tags=StringMap({"team": "sales"}),
        user="etl",
        code_version="4f1c2ab",
        headwater_version="1.0",
        spark=SparkDetails(version="3.5.7", application_name="orders_etl", master="yarn", python="3.11.7"),
    ),
    "stream_started": JobStarted(
        job=CLICKS,
        parent_job=ETL,
        parent_run=RUN,
        run=QUERY,
        job_type=JobType.STREAMING,
        scope=RunScope.QUERY,
        stream=StreamDetails(query=QUERY, checkpoint="s3://lake/checkpoints/clicks", started_at=NOON),
    ),
    "run_finished": JobStatusChanged(job=ETL, status=JobStatus.FINISHED),
    "run_failed": JobStatusChanged(job=ETL, status=JobStatus.FAILED, exit_code=1),
    "run_found_dead": JobStatusChanged(job=ETL, status=JobStatus.KILLED, inferred=True),
    "run_ended_unseen": JobStatusChanged(job=ETL, status=JobStatus.ENDED),
    "lineage": LINEAGE,
    "commit": COMMIT,
    "commit_with_compaction": COMMIT.model_copy(
        update={"outputs": (*COMMIT.outputs, Output(**iceberg("daily"), snapshot=13, commit_kind=CommitKind.COMPACT))}
    ),
    "micro_batch_without_exact_snapshot": STREAM,
    "statement_failed": StatementFailed(
        job=STEP,
        parent_job=ETL,
        inputs=(Source(**iceberg("orders")),),
        error=ErrorDetails(type="AnalysisException", message="[DIVIDE_BY_ZERO] by zero", condition="DIVIDE_BY_ZERO"),
    ),
    "gap": Gap(reason=GapReason.QUEUE_OVERFLOW, missed=3),
    "correction_switched": CorrectionSwitched(
        **in_lake("orders"),
        correction="c-20260301-orders-4f2a",
        mirror="correction_20260301_orders_4f2a",
        wrong_table=in_lake("orders")["identifier"],
        wrong_snapshot=4,
        previous_snapshot=7,
        snapshot=9,
    ),
}


def stamped(draft: Event, sequence: int = 1) -> Event:
    envelope = {
        "producer": PRODUCER,
        "sequence": sequence,
        "family_sequence": sequence,
        "time": NOON + timedelta(seconds=sequence),
        "application": "application_1_0001",
    }
    return draft.model_copy(update={**envelope, "run": draft.run or RUN, "job": draft.job or ETL})


CASES: Final[dict[str, Event]] = {
    name: stamped(draft, number) for number, (name, draft) in enumerate(DRAFTS.items(), 1)
}


def readable(proposal: Proposal) -> dict[str, Any]:
    """A proposal as a reviewer reads it, with the JSON in it as JSON."""
    whole = proposal.to_obj()
    return {
        "entity": whole["entityUrn"],
        "change": whole["changeType"],
        "observed": whole["systemMetadata"]["lastObserved"],
        whole["aspectName"]: json.loads(whole["aspect"]["value"]),
    }


def content(event: Event, names: DataHubNames | None = None) -> dict[str, Any]:
    """What the file of a case holds."""
    proposals = [readable(each) for each in datahub_proposals(event, names or DataHubNames())]
    return {"event": json.loads(event.to_json()), "proposals": proposals}


def main() -> None:
    for name, event in CASES.items():
        text = json.dumps(content(event), indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
