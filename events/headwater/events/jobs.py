"""Job lineage: what jobs are, what shape their writes have, and what each commit read and made."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from headwater.events.base import Model, Texts
from headwater.events.envelope import Event, Family
from headwater.events.lineage import ColumnLineage
from headwater.events.marks import IndexesInto, Spread
from headwater.events.names import CatalogId, DatasetId, JobName, Life, Name, TableName
from headwater.events.scalars import Count, FieldPath, Fingerprint, Format, FreeText, Int, Long, PlanSql, Time, Word
from headwater.events.tables import Column, Transform, Watermark


class JobEvent(Event):
    family: ClassVar[Family] = Family.JOB


class Since(Model):
    """Where a range of changes begins: what came after it was read."""

    snapshot: Long | None = None
    version: str | None = None


class Place(Model):
    """A dataset that a job has to do with. Where `dataset` is absent, either the `table` is known by name only, or it
    is `opaque`: an RDD whose upstream Spark doesn't show, or what foreachPartition writes to."""

    dataset: DatasetId | None
    table: TableName | None = None
    life: Life | None = None
    format: Format = Format.UNKNOWN
    branch: str | None = None
    """By its own name; none is the main line under its default name."""
    main: bool = True
    """Whether the branch has the role of main, which can move."""
    opaque: PlanSql | None = None
    """What is known of what Spark doesn't show."""


class Source(Place):
    """A dataset that is read."""

    tag: str | None = None
    """The tag that was asked for, where one was."""


class Sink(Place):
    """A dataset that is written, or would have been."""


class ReadMode(Word):
    """What of the dataset was read: its state at a version, or what came between two."""

    UNKNOWN = "UNKNOWN"
    STATE = "STATE"
    CHANGES = "CHANGES"


class Input(Source):
    """What a commit really read: `snapshot` is the number of a version, `version` its text in systems that count
    otherwise (Kafka's offsets) and, as `version:index`, where a stream stopped within a version (Delta). Changes are
    those behind `since`, where that is known, up to and with this version."""

    mode: ReadMode = ReadMode.UNKNOWN
    snapshot: Long | None = None
    version: str | None = None
    """Absent where the format has no versions, and where it isn't known: then `candidates` has what it may be."""
    since: Since | None = None
    candidates: tuple[Long, ...] = ()
    rows: Count | None = None
    bytes: Count | None = None


class CommitKind(Word):
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


class Extent(Word):
    """How much of what was there a commit took the place of. What a table is made from begins anew where it is ALL;
    the formats' words don't tell: Iceberg says overwrite for a DELETE too."""

    UNKNOWN = "UNKNOWN"
    NOTHING = "NOTHING"
    PART = "PART"
    ALL = "ALL"


class Output(Sink):
    """What a commit made. A write that also compacts has an output for each of its two snapshots."""

    snapshot: Long | None = None
    version: str | None = None
    """Absent where the format has no versions, and where it isn't known: then `candidates` has what it may be."""
    parent: Long | None = None
    """The snapshot that this one was made on."""
    schema_id: Long | None = None
    commit_kind: CommitKind = CommitKind.UNKNOWN
    replaced: Extent = Extent.UNKNOWN
    made_from: Annotated[tuple[Int, ...] | None, IndexesInto("inputs")] = None
    """The indexes of the inputs that this output was made from; none where that isn't known."""
    rows: Count | None = None
    bytes: Count | None = None
    candidates: tuple[Long, ...] = ()


class Committed(JobEvent):
    """One barrier: a statement or micro-batch committed. What is no-op makes none."""

    kind: Literal["Committed"] = "Committed"
    schema_version: Literal[1] = 1
    barrier: Long
    incarnation: UUID | None = None
    """A stream's incarnation; for batch it is the producer, and absent here."""
    batch_id: Count | None = None
    fingerprint: Fingerprint | None = None
    """The JobLineage that tells the shape of this write, where it has one."""
    parent_job: JobName | None = None
    inputs: Annotated[tuple[Input, ...], Spread()] = ()
    outputs: tuple[Output, ...] = ()

    @property
    def life_of_job(self) -> UUID:
        """The incarnation in which the barrier is unique."""
        return self.producer if self.incarnation is None else self.incarnation


class Shape(Model):
    """What JobLineage tells of each dataset, beyond what it is."""

    columns: Annotated[tuple[Column, ...], Spread()] = ()
    partitioning: tuple[Transform, ...] = ()
    primary_key: tuple[FieldPath, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    options: Annotated[Texts, Spread()] = Texts()


class ShapedSource(Source, Shape):
    """A source as it stands in the shape of a write."""


class ShapedSink(Sink, Shape):
    """A sink as it stands in the shape of a write."""


class NamedCatalog(Model):
    """What the name of a catalog stood for when it was used."""

    name: Name
    id: CatalogId


class JobLineage(JobEvent):
    """The shape of a write, told at its first commit and from time to time again."""

    kind: Literal["JobLineage"] = "JobLineage"
    schema_version: Literal[1] = 1
    fingerprint: Fingerprint
    parent_job: JobName | None = None
    inputs: tuple[ShapedSource, ...] = ()
    outputs: tuple[ShapedSink, ...]
    columns: Annotated[tuple[ColumnLineage, ...], Spread()] = ()
    catalogs: tuple[NamedCatalog, ...] = ()
    """The catalogs that its tables are named by; no part of the fingerprint."""
    sql: PlanSql | None = None
    """Told only where capture.sql is true; no part of the fingerprint."""


class JobType(Word):
    UNKNOWN = "UNKNOWN"
    BATCH = "BATCH"
    STREAMING = "STREAMING"


class RunScope(Word):
    """What a run is one execution of."""

    UNKNOWN = "UNKNOWN"
    APPLICATION = "APPLICATION"
    BLOCK = "BLOCK"
    QUERY = "QUERY"
    SESSION = "SESSION"
    """That a client has with a server in this application: Spark Connect, Thrift."""


class ParentRun(Model):
    """The run of another system that started this one: an Airflow task, an OpenLineage parent."""

    namespace: str
    name: Name
    run: str | None = None
    root_namespace: str | None = None
    root_name: str | None = None
    root_run: str | None = None


class SparkDetails(Model):
    version: str
    application_name: str = ""
    attempt: str | None = None
    master: str | None = None
    deploy_mode: str | None = None
    java: str | None = None
    scala: str | None = None
    python: str | None = None


class StartReason(Word):
    UNKNOWN = "UNKNOWN"
    REQUESTED = "REQUESTED"
    CHECKPOINT = "CHECKPOINT"
    EARLIEST = "EARLIEST"
    LATEST = "LATEST"
    ALIGNED = "ALIGNED"


class StartsAt(Source):
    """Where a run starts to read a source, and why there."""

    snapshot: Long | None = None
    version: str | None = None
    reason: StartReason = StartReason.UNKNOWN


class StreamDetails(Model):
    query: UUID
    """The query's id, kept in its checkpoint: it is the incarnation, and lives as long as the checkpoint."""
    query_run: UUID | None = None
    query_name: str | None = None
    checkpoint: str | None = None
    began: Time | None = None
    """When the incarnation began: the barriers of all its runs are counted from there."""
    trigger: str | None = None


class JobStarted(JobEvent):
    kind: Literal["JobStarted"] = "JobStarted"
    schema_version: Literal[2] = 2
    job_type: JobType
    scope: RunScope = RunScope.APPLICATION
    parent_job: JobName | None = None
    parent_run: UUID | None = None
    """The run within this application that this one is a part of."""
    parent: ParentRun | None = None
    configuration: Annotated[Texts, Spread()] = Texts()
    tags: Annotated[Texts, Spread()] = Texts()
    user: str | None = None
    code_version: str | None = None
    headwater_version: str | None = None
    spark: SparkDetails | None = None
    stream: StreamDetails | None = None
    starts_at: Annotated[tuple[StartsAt, ...], Spread()] = ()


class ErrorDetails(Model):
    """An error, redacted."""

    type: str
    """The class of the exception."""
    message: FreeText = ""
    condition: str | None = None
    """Spark's error class, TABLE_OR_VIEW_NOT_FOUND say."""
    sql_state: str | None = None


class StatementFailed(JobEvent):
    """A statement that would have written ended with an error, as far as Spark shows that."""

    kind: Literal["StatementFailed"] = "StatementFailed"
    schema_version: Literal[1] = 1
    inputs: Annotated[tuple[Source, ...], Spread()] = ()
    outputs: Annotated[tuple[Sink, ...], Spread()] = ()
    parent_job: JobName | None = None
    error: ErrorDetails
    incarnation: UUID | None = None
    batch_id: Count | None = None
    sql: PlanSql | None = None
    """Told only where capture.sql is true."""


class JobStatus(Word):
    """FINISHED is told only where the run is known to have ended well; ENDED where its exit can't be known."""

    UNKNOWN = "UNKNOWN"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    ENDED = "ENDED"

    @property
    def is_terminal(self) -> bool:
        return self not in {JobStatus.UNKNOWN, JobStatus.RUNNING}


class OnJobEnd(Word):
    """What is to become of a job's lineage when the run ends: table lineage goes, or data lineage too."""

    UNKNOWN = "UNKNOWN"
    KEEP = "KEEP"
    DELETE_TABLE = "DELETE_TABLE"
    DELETE_ALL = "DELETE_ALL"


class JobStatusChanged(JobEvent):
    """RUNNING, then exactly one terminal status per run."""

    kind: Literal["JobStatusChanged"] = "JobStatusChanged"
    schema_version: Literal[1] = 1
    status: JobStatus
    inferred: bool = False
    """Told by somebody else, who found the run dead: a status told by the run itself beats it."""
    error: ErrorDetails | None = None
    exit_code: Int | None = None
    signal: Int | None = None
    on_job_end: OnJobEnd | None = None
