"""Job lineage: what jobs are, what shape their writes have, and what each commit read and made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from headwater.events.base import Model, StringMap
from headwater.events.column_lineage import ColumnLineage
from headwater.events.envelope import Event, EventFamily
from headwater.events.marks import ErrorText, IndexesInto
from headwater.events.names import CatalogId, DatasetId, Generation, JobName, Name, TableName
from headwater.events.scalars import (
    Count,
    EventEnum,
    FieldPath,
    Fingerprint,
    Format,
    IdentityString,
    Int,
    Long,
    SqlString,
    Timestamp,
    TruncatableText,
)
from headwater.events.tables import Column, Transform, Watermark


class JobEvent(Event):
    family: ClassVar[EventFamily] = EventFamily.JOB


class RangeStart(Model):
    """Where a range of changes begins: what came after it was read."""

    snapshot: Long | None = None
    version: IdentityString | None = None


class DatasetRef(Model):
    """A dataset that a job has to do with. Where `dataset` is absent, either the `table` is known by name only, or it
    is `opaque`: an RDD whose upstream Spark doesn't show, or what foreachPartition writes to."""

    dataset: DatasetId | None
    table: TableName | None = None
    generation: Generation | None = None
    format: Format = Format.UNKNOWN
    branch: IdentityString | None = None
    """By its own name; none is the main line under its default name."""
    main: bool = True
    """Whether the branch has the role of main, which can move."""
    opaque: SqlString | None = None
    """What is known of what Spark doesn't show."""


class Source(DatasetRef):
    """A dataset that is read."""

    tag: IdentityString | None = None
    """The tag that was asked for, where one was."""


class Sink(DatasetRef):
    """A dataset that is written, or would have been."""


class ReadMode(EventEnum):
    """What of the dataset was read: its state at a version, or what came between two."""

    UNKNOWN = "UNKNOWN"
    STATE = "STATE"
    CHANGES = "CHANGES"


class Input(Source):
    """A dataset in the version that a commit really read.

    `snapshot` is the number of a version; `version` is its text in systems that count otherwise (Kafka's offsets), and
    `version:index` where a stream stopped within a version (Delta). Changes are those behind `since`, where that is
    known, up to and including this version.

    >>> Input(dataset=DatasetId(namespace="s3://lake", name="orders"), mode=ReadMode.STATE, snapshot=7).snapshot
    7
    """

    mode: ReadMode = ReadMode.UNKNOWN
    snapshot: Long | None = None
    version: IdentityString | None = None
    """Absent where the format has no versions, and where it isn't known: then `candidates` has what it may be."""
    since: RangeStart | None = None
    candidates: tuple[Long, ...] = ()
    rows: Count | None = None
    bytes: Count | None = None


class CommitKind(EventEnum):
    """As the formats tell it."""

    UNKNOWN = "UNKNOWN"
    OTHER = "OTHER"
    APPEND = "APPEND"
    OVERWRITE = "OVERWRITE"
    DELETE = "DELETE"
    UPDATE = "UPDATE"
    MERGE = "MERGE"
    REPLACE = "REPLACE"
    COMPACT = "COMPACT"
    TRUNCATE = "TRUNCATE"
    ANALYZE = "ANALYZE"
    ROLLBACK = "ROLLBACK"
    CHERRY_PICK = "CHERRY_PICK"
    RESTORE = "RESTORE"
    CLONE = "CLONE"
    FAST_FORWARD = "FAST_FORWARD"
    CREATE = "CREATE"
    ALTER = "ALTER"
    VACUUM = "VACUUM"


class OverwriteScope(EventEnum):
    """How much of what was there a commit took the place of. What a table is made from begins anew where it is ALL;
    the formats' words don't tell: Iceberg says overwrite for a DELETE too."""

    UNKNOWN = "UNKNOWN"
    NOTHING = "NOTHING"
    PART = "PART"
    ALL = "ALL"


class Output(Sink):
    """A dataset in the version that a commit made.

    A write that also compacts has an output for each of its two snapshots.

    >>> orders = DatasetId(namespace="s3://lake", name="orders")
    >>> Output(dataset=orders, snapshot=8, parent=7, commit_kind=CommitKind.APPEND).parent
    7
    """

    snapshot: Long | None = None
    version: IdentityString | None = None
    """Absent where the format has no versions, and where it isn't known: then `candidates` has what it may be."""
    parent: Long | None = None
    """The snapshot that this one was made on."""
    schema_id: Long | None = None
    commit_kind: CommitKind = CommitKind.UNKNOWN
    replaced: OverwriteScope = OverwriteScope.UNKNOWN
    made_from: Annotated[tuple[Int, ...] | None, IndexesInto("inputs")] = None
    """The indexes of the inputs that this output was made from; none where that isn't known."""
    rows: Count | None = None
    bytes: Count | None = None
    candidates: tuple[Long, ...] = ()
    files: Count | None = None
    """How many files of data the commit added."""
    snapshot_time: Timestamp | None = None
    """When the snapshot was made, as the format recorded it; its commit ends after that."""


class CommitEvidence(EventEnum):
    """How it is known that a commit was made."""

    UNKNOWN = "UNKNOWN"
    OBSERVED = "OBSERVED"
    """The driver that made it reported it."""
    RECONCILED = "RECONCILED"
    """It was found later in the table's own log: its outputs are exact, and what it read isn't known."""


class Committed(JobEvent):
    """One barrier: a statement or a micro-batch committed. A no-op makes none.

    >>> orders, daily = (DatasetId(namespace="s3://lake", name=name) for name in ("orders", "daily"))
    >>> read, made = Input(dataset=orders, snapshot=7), Output(dataset=daily, snapshot=3)
    >>> event = Committed(barrier=1, inputs=(read,), outputs=(made,))
    >>> event.inputs[0].snapshot, event.outputs[0].snapshot
    (7, 3)
    """

    kind: Literal["Committed"] = "Committed"
    schema_version: Literal[2] = 2
    barrier: Long
    incarnation: UUID | None = None
    """A stream's incarnation; for batch it is the producer, and absent here."""
    batch_id: Count | None = None
    fingerprint: Fingerprint | None = None
    """The JobLineage that tells the shape of this write, where it has one."""
    parent_job: JobName | None = None
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    evidence: CommitEvidence = CommitEvidence.OBSERVED
    started: Timestamp | None = None
    """When Spark began the statement; of a micro-batch, the statement that wrote it."""
    ended: Timestamp | None = None
    """When Spark ended that statement, its commit included."""

    @property
    def barrier_incarnation(self) -> UUID:
        """The incarnation in which the barrier is unique."""
        return self.producer if self.incarnation is None else self.incarnation


class DatasetSchema(Model):
    """What JobLineage tells of each dataset, beyond what it is."""

    columns: tuple[Column, ...] = ()
    partitioning: tuple[Transform, ...] = ()
    primary_key: tuple[FieldPath, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    options: StringMap = StringMap()


class SourceSchema(Source, DatasetSchema):
    """A source as it stands in the shape of a write."""


class SinkSchema(Sink, DatasetSchema):
    """A sink as it stands in the shape of a write."""


class NamedCatalog(Model):
    """What the name of a catalog stood for when it was used."""

    name: Name
    id: CatalogId
    warehouse: IdentityString | None = None
    """Where its new tables go by default, as far as that is known; no part of its identity."""


class JobLineage(JobEvent):
    """Which tables and columns a write reads and writes: reported at its first commit, and from time to time again.

    >>> orders, daily = (DatasetId(namespace="s3://lake", name=name) for name in ("orders", "daily"))
    >>> event = JobLineage(
    ...     fingerprint=bytes(16), inputs=(SourceSchema(dataset=orders),), outputs=(SinkSchema(dataset=daily),)
    ... )
    >>> event.outputs[0].dataset.name
    'daily'
    """

    kind: Literal["JobLineage"] = "JobLineage"
    schema_version: Literal[1] = 1
    fingerprint: Fingerprint
    parent_job: JobName | None = None
    inputs: tuple[SourceSchema, ...] = ()
    outputs: tuple[SinkSchema, ...]
    columns: tuple[ColumnLineage, ...] = ()
    columns_omitted: bool = False
    """Its edges were too many for one event, so `columns` is empty."""
    catalogs: tuple[NamedCatalog, ...] = ()
    """The catalogs that its tables are named by; no part of the fingerprint."""
    sql: SqlString | None = None
    """Recorded only where capture.sql is true; no part of the fingerprint."""


class JobType(EventEnum):
    UNKNOWN = "UNKNOWN"
    BATCH = "BATCH"
    STREAMING = "STREAMING"


class RunScope(EventEnum):
    """What a run is one execution of."""

    UNKNOWN = "UNKNOWN"
    APPLICATION = "APPLICATION"
    BLOCK = "BLOCK"
    QUERY = "QUERY"
    SESSION = "SESSION"
    """That a client has with a server in this application: Spark Connect, Thrift."""


class ParentRun(Model):
    """The run of another system that started this one: an Airflow task, an OpenLineage parent."""

    namespace: IdentityString
    name: Name
    run: IdentityString | None = None
    root_namespace: IdentityString | None = None
    root_name: IdentityString | None = None
    root_run: IdentityString | None = None


class SparkDetails(Model):
    version: str
    application_name: IdentityString = ""
    attempt: IdentityString | None = None
    master: str | None = None
    deploy_mode: str | None = None
    java: str | None = None
    scala: str | None = None
    python: str | None = None


class StartReason(EventEnum):
    UNKNOWN = "UNKNOWN"
    REQUESTED = "REQUESTED"
    CHECKPOINT = "CHECKPOINT"
    EARLIEST = "EARLIEST"
    LATEST = "LATEST"
    ALIGNED = "ALIGNED"


class StartPosition(Source):
    """Where a run starts to read a source, and why there."""

    snapshot: Long | None = None
    version: IdentityString | None = None
    reason: StartReason = StartReason.UNKNOWN


class StreamDetails(Model):
    query: UUID
    """The query's id, kept in its checkpoint: it is the incarnation, and lives as long as the checkpoint."""
    query_run: UUID | None = None
    query_name: IdentityString | None = None
    checkpoint: IdentityString | None = None
    started_at: Timestamp | None = None
    """When the incarnation started: the barriers of all its runs are counted from there."""
    trigger: str | None = None


class JobStarted(JobEvent):
    """A run of a job started.

    >>> JobStarted(job_type=JobType.BATCH, job=JobName(name="orders_etl")).job.name
    'orders_etl'
    """

    kind: Literal["JobStarted"] = "JobStarted"
    schema_version: Literal[1] = 1
    job_type: JobType
    scope: RunScope = RunScope.APPLICATION
    parent_job: JobName | None = None
    parent_run: UUID | None = None
    """The run within this application that this one is a part of."""
    parent: ParentRun | None = None
    configuration: StringMap = StringMap()
    tags: StringMap = StringMap()
    user: IdentityString | None = None
    code_version: str | None = None
    headwater_version: str | None = None
    spark: SparkDetails | None = None
    stream: StreamDetails | None = None
    starts_at: tuple[StartPosition, ...] = ()


class ErrorDetails(Model):
    """An error, redacted."""

    type: IdentityString
    """The class of the exception."""
    message: Annotated[TruncatableText, ErrorText("type")] = ""
    """Without values and quoted statements, unless capture.sql is true."""
    condition: IdentityString | None = None
    """Spark's error class, TABLE_OR_VIEW_NOT_FOUND say."""
    sql_state: IdentityString | None = None
    parameters: Annotated[StringMap, ErrorText("type")] = StringMap()
    """What Spark fills into the condition's message, by the names that Spark gives. Judged like values of options."""


def parameters_text(message: str, parameters: Mapping[str, str]) -> str:
    """Return what Spark filled into a message, unless the message shows it or nothing is left of it.

    >>> parameters_text("[X] it isn't there: `a`", {"name": "`a`", "config": "spark.x", "value": "?"})
    ' (config=spark.x)'
    """
    told = [f"{name}={value}" for name, value in parameters.items() if value not in {"", "?"} and value not in message]
    return f" ({', '.join(told)})" if told else ""


class StatementFailed(JobEvent):
    """A statement that would have written ended with an error, as far as Spark shows that.

    >>> error = ErrorDetails(type="AnalysisException", condition="TABLE_OR_VIEW_NOT_FOUND")
    >>> StatementFailed(error=error).error.condition
    'TABLE_OR_VIEW_NOT_FOUND'
    """

    kind: Literal["StatementFailed"] = "StatementFailed"
    schema_version: Literal[1] = 1
    inputs: tuple[Source, ...] = ()
    outputs: tuple[Sink, ...] = ()
    parent_job: JobName | None = None
    error: ErrorDetails
    incarnation: UUID | None = None
    batch_id: Count | None = None
    sql: SqlString | None = None
    """Recorded only where capture.sql is true."""


class JobStatus(EventEnum):
    """FINISHED is recorded only where the run is known to have ended well; ENDED where its exit can't be known."""

    UNKNOWN = "UNKNOWN"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    ENDED = "ENDED"

    @property
    def is_terminal(self) -> bool:
        return self not in {JobStatus.UNKNOWN, JobStatus.RUNNING}


class LineageRetention(EventEnum):
    """What is to become of a job's lineage when the run ends: table lineage goes, or data lineage too."""

    UNKNOWN = "UNKNOWN"
    KEEP = "KEEP"
    DELETE_TABLE = "DELETE_TABLE"
    DELETE_ALL = "DELETE_ALL"


class JobStatusChanged(JobEvent):
    """A run's status changed: RUNNING first, then exactly one terminal status.

    >>> JobStatusChanged(status=JobStatus.FINISHED).status.is_terminal
    True
    """

    kind: Literal["JobStatusChanged"] = "JobStatusChanged"
    schema_version: Literal[1] = 1
    status: JobStatus
    inferred: bool = False
    """Reported by somebody else, who found the run dead: a status reported by the run itself beats it."""
    error: ErrorDetails | None = None
    exit_code: Int | None = None
    signal: Int | None = None
    on_job_end: LineageRetention | None = None
