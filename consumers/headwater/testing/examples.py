"""One realistic event of every kind: orders flow from two tables of a lake into a daily summary.

For demos, documentation and golden files. The values are fixed, so that the bytes are too.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted, LineageScope
from headwater.events.barriers import stream_barrier
from headwater.events.base import CountMap, StringMap
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
    Truncate,
)
from headwater.events.changes import AddColumn, ColumnPosition, OtherChange, RenameColumn, SetProperty
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.envelope import Event, EventFamily
from headwater.events.fingerprints import fingerprint_of
from headwater.events.health import Closed, Gap, GapReason, Heartbeat
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
    NamedCatalog,
    Output,
    OverwriteScope,
    ParentRun,
    RangeStart,
    ReadMode,
    RunScope,
    Sink,
    SinkSchema,
    Source,
    SourceSchema,
    SparkDetails,
    StartPosition,
    StartReason,
    StatementFailed,
    StreamDetails,
)
from headwater.events.names import CatalogId, DatasetId, JobName, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Column, Database, Table, TableKind, Transform, View, ViewSource, Watermark

PRODUCER: Final = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
RUN: Final = UUID("01890a5d-ac96-7b4b-8cce-b302099a8058")
BEGAN: Final = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
APPLICATION: Final = "application_1700000000000_0001"
JOB: Final = JobName(name="orders_etl.lake.sales.daily")
PARENT: Final = JobName(name="orders_etl")

CONTEXT: Final = CatalogContext(
    name="lake",
    class_name="org.apache.iceberg.spark.SparkCatalog",
    factory="iceberg",
    configuration=StringMap({"type": "hadoop", "warehouse": "s3://acme-lake-prod/warehouse"}),
    id=CatalogId(type="iceberg", location="s3://acme-lake-prod/warehouse"),
)


def place(table: str) -> dict[str, Any]:
    """What names a table of the lake."""
    generations = {"orders": 1, "customers": 2, "rates": 3, "daily": 4}
    return {
        "dataset": DatasetId(namespace="s3://acme-lake-prod", name=f"warehouse/sales/{table}"),
        "table": TableName(catalog="lake", database="sales", table=table),
        "generation": UUID(int=0x9C12D441_03FE_4693_9A96_A0705DDF6900 + generations.get(table, 9)),
        "format": Format.ICEBERG,
    }


def _of(table: str) -> dict[str, Any]:
    """The same as catalog events name it."""
    names = place(table)
    return {"context": CONTEXT, "identifier": names.pop("table"), **names}


ORDERS: Final = Table(
    columns=(
        Column(name="id", type='"long"', nullable=False, comment="the shop's own number"),
        Column(name="amount", type='"decimal(10,2)"'),
        Column(name="day", type='"date"'),
        Column(
            name="lines",
            type='{"type":"array","elementType":{"type":"struct","fields":'
            '[{"name":"sku","type":"string","nullable":false,"metadata":{}}]},"containsNull":true}',
        ),
    ),
    partitioning=(
        Transform(name="days", columns=(("day",),)),
        Transform(name="bucket", columns=(("id",),), arguments=("16",)),
    ),
    primary_key=(("id",),),
    watermarks=(Watermark(column=("day",), delay="1 hour"),),
    properties=StringMap({"write.format.default": "parquet"}),
    comment="what was bought",
    location="s3://acme-lake-prod/warehouse/sales/orders",
    provider="iceberg",
    table_kind=TableKind.MANAGED,
    owner="etl",
)
_DAILY_VIEW: Final = View(
    columns=(Column(name="total", type='"decimal(20,2)"'),),
    sql="SELECT sum(amount) AS total FROM lake.sales.orders WHERE day = ?",
    sources=(ViewSource(dataset=place("orders")["dataset"], table=place("orders")["table"]),),
    lineage=(
        ColumnLineage(output=0, input=0, source=("amount",), target=("total",), derivation=Derivation.AGGREGATION),
        ColumnLineage(output=0, input=0, source=("day",), derivation=Derivation.FILTER),
    ),
)
_SHAPE: Final[dict[str, Any]] = {
    "inputs": (SourceSchema(**place("orders"), columns=ORDERS.columns), SourceSchema(**place("customers"))),
    "outputs": (SinkSchema(**place("daily"), columns=(Column(name="total", type='"decimal(20,2)"'),)),),
    "columns": (
        ColumnLineage(
            output=0,
            input=0,
            source=("amount",),
            target=("total",),
            derivation=Derivation.AGGREGATION,
            expression="sum(amount)",
        ),
        ColumnLineage(output=0, input=1, source=("id",), derivation=Derivation.JOIN),
    ),
}
FINGERPRINT: Final = fingerprint_of(**_SHAPE)

COMMITTED: Final = Committed(
    barrier=(1_772_366_400_123 << 20) + 0x15C00,
    fingerprint=FINGERPRINT,
    parent_job=PARENT,
    statement=214,
    inputs=tuple(
        Input(**place(table), mode=ReadMode.STATE, snapshot=snapshot)
        for table, snapshot in (
            ("orders", 8_234_827_348_273_482_734),
            ("customers", 3_051_729_675_574_597_004),
            ("rates", 7_712_340_988_123_410_055),
        )
    ),
    outputs=(
        Output(
            **place("daily"),
            snapshot=5_179_299_526_185_056_830,
            parent=2_781_921_774_821_920_001,
            schema_id=3,
            commit_kind=CommitKind.OVERWRITE,
            replaced=OverwriteScope.ALL,
            made_from=(0, 1, 2),
            rows=31_337,
            bytes=4_194_304,
            files=3,
            snapshot_time=BEGAN + timedelta(seconds=11),
        ),
    ),
    started=BEGAN,
    ended=BEGAN + timedelta(seconds=12),
)
"""A commit as it is reported thousands of times a day: its size is what the bus carries."""

_UNLISTED: Final[dict[str, Any]] = {**place("daily"), "format": Format("ACME")}
"""A place of a format that no version lists."""
_STREAM: Final = UUID("7c9e6679-7425-40de-944b-e07fc1f90ae7")

DRAFTS: Final[tuple[Event, ...]] = (
    CreateDatabase(
        context=CONTEXT,
        identifier=DatabaseName(catalog="lake", database="sales"),
        database=Database(comment="the shop", location="s3://acme-lake-prod/warehouse/sales"),
        ignore_if_exists=True,
    ),
    AlterDatabase(
        context=CONTEXT,
        identifier=DatabaseName(catalog="lake", database="sales"),
        database=Database(),
        new_database=Database(properties=StringMap({"team": "sales"})),
    ),
    DropDatabase(context=CONTEXT, identifier=DatabaseName(catalog="lake", database="old"), cascade=True),
    CreateTable(**_of("orders"), table=ORDERS, ignore_if_exists=True),
    AlterTable(
        **_of("orders"),
        schema_id=4,
        changes=(
            AddColumn(path=("lines", "element", "price"), type='"decimal(10,2)"', position=ColumnPosition(after="sku")),
            RenameColumn(path=("amount",), new_name="total"),
            SetProperty(key="write.format.default", value="orc"),
            OtherChange(what="SET SERDE"),
        ),
        table=ORDERS,
    ),
    DropTable(**_of("orders"), table=ORDERS, ignore_if_not_exists=True, purge=True),
    CreateView(**_of("today"), view=_DAILY_VIEW, replaced=True),
    AlterView(
        **_of("today"),
        view=_DAILY_VIEW,
        renamed_to=TableName(catalog="lake", database="sales", table="now"),
        renamed_dataset=DatasetId(namespace="s3://acme-lake-prod", name="warehouse/sales/now"),
    ),
    DropView(**_of("today"), ignore_if_not_exists=True),
    Truncate(**_of("daily"), partitions=(StringMap({"day": "2026-03-01"}),)),
    CreateTag(**_of("daily"), tag="eod-2026-03-01", snapshot=5_179_299_526_185_056_830, retention="30 days"),
    DropTag(**_of("daily"), tag="eod-2025-03-01"),
    CreateBranch(**_of("daily"), branch="audit", tag="eod-2026-03-01", snapshot=5_179_299_526_185_056_830),
    DropBranch(**_of("daily"), branch="audit"),
    BranchMerged(**_of("daily"), branch="audit", tag="eod-2026-03-01", previous_snapshot=4, snapshot=9),
    MainReplaced(**_of("daily"), branch="audit", tag="eod-2026-03-01", previous_snapshot=4, snapshot=9),
    JobStarted(
        job=PARENT,
        job_type=JobType.STREAMING,
        scope=RunScope.QUERY,
        parent=ParentRun(namespace="airflow", name="nightly.orders", run="manual__2026-03-01"),
        configuration=StringMap({"spark.app.name": "orders_etl", "spark.sql.shuffle.partitions": "200"}),
        tags=StringMap({"team": "sales"}),
        user="etl",
        code_version="4f1c2ab",
        spark=SparkDetails(version="3.5.7", application_name="orders_etl", master="yarn", python="3.11.7"),
        stream=StreamDetails(query=_STREAM, checkpoint="s3://acme-lake-prod/checkpoints/orders", started_at=BEGAN),
        starts_at=(StartPosition(**place("orders"), snapshot=7, reason=StartReason.CHECKPOINT),),
    ),
    JobLineage(
        fingerprint=FINGERPRINT,
        parent_job=PARENT,
        catalogs=(
            NamedCatalog(
                name="lake",
                id=CatalogId(type="iceberg", location="s3://acme-lake-prod/warehouse"),
                warehouse="s3://acme-lake-prod/warehouse",
            ),
        ),
        **_SHAPE,
    ),
    COMMITTED,
    Committed(
        job=JobName(name="clicks"),
        barrier=stream_barrier(1_772_366_400_000, 41),
        incarnation=_STREAM,
        batch_id=41,
        fingerprint=FINGERPRINT,
        inputs=(
            Input(
                dataset=DatasetId(namespace="kafka://broker-1:9092", name="clicks"),
                format=Format.KAFKA,
                mode=ReadMode.CHANGES,
                since=RangeStart(version='{"0":100,"1":80}'),
                version='{"0":140,"1":95}',
            ),
            Input(dataset=None, opaque="an RDD whose source Spark doesn't show"),
        ),
        outputs=(Output(**place("daily"), commit_kind=CommitKind.APPEND, made_from=(0, 1), candidates=(11, 12)),),
    ),
    Committed(
        job=JobName(name="acme_copy"),
        barrier=(1_772_366_400_456 << 20) + 0x15C01,
        fingerprint=FINGERPRINT,
        outputs=(Output(**_UNLISTED, snapshot=7, parent=6),),
    ),
    StatementFailed(
        inputs=(Source(**place("orders")),),
        outputs=(Sink(**place("daily")),),
        error=ErrorDetails(
            type="AnalysisException",
            message="[DIVIDE_BY_ZERO] by zero",
            condition="DIVIDE_BY_ZERO",
            parameters=StringMap({"config": '"spark.sql.ansi.enabled"'}),
        ),
    ),
    JobStatusChanged(job=PARENT, status=JobStatus.KILLED, inferred=True, signal=9),
    Gap(
        reason=GapReason.QUEUE_OVERFLOW,
        detail="Spark's listener bus dropped events",
        missed_family=EventFamily.JOB,
        missed=3,
        first_time=BEGAN,
        last_time=BEGAN + timedelta(seconds=2),
    ),
    Heartbeat(interval=60, dropped=CountMap({"queue": 3})),
    Closed(dropped=CountMap({"queue": 3})),
    LineageDeleted(scope=LineageScope.TABLES, of_job=JOB, before=BEGAN, by="retention policy"),
    CatalogOptionsDeclared(context=CONTEXT, data_lineage=False, options=StringMap({"lineage-meta": "jdbc"})),
    DatasetsUnified(
        dataset=DatasetId(namespace="s3://acme-lake-prod", name="warehouse/sales/orders"),
        others=(DatasetId(namespace="hive://metastore:9083", name="sales.orders"),),
        reason="one location",
        by="ops",
    ),
    CorrectionSwitched(
        **_of("daily"),
        correction="c-20260301-orders-4f2a",
        mirror="correction_20260301_orders_4f2a",
        wrong_table=_of("orders")["identifier"],
        wrong_snapshot=4,
        previous_snapshot=7,
        snapshot=9,
    ),
)


def _stamp(draft: Event, sequence: int) -> Event:
    envelope = {
        "producer": PRODUCER,
        "sequence": sequence,
        "family_sequence": sequence,
        "time": BEGAN + timedelta(seconds=sequence),
        "application": APPLICATION,
        "run": RUN,
    }
    return draft.model_copy(update={"job": JOB, **envelope} if draft.job is None else envelope)


EXAMPLES: Final[tuple[Event, ...]] = tuple(_stamp(draft, number) for number, draft in enumerate(DRAFTS, 1))
"""Stamped by one producer, in order: at least one of every kind."""
