"""Changes by an administrator, a policy or expiry: events too, or a replay would bring back what was deleted."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import Field

from headwater.events.base import StringMap
from headwater.events.catalog import CatalogContext
from headwater.events.envelope import Event, EventFamily
from headwater.events.names import CatalogId, DatasetId, Generation, JobName
from headwater.events.scalars import EventEnum, IdentityString, Long, Timestamp


class Administration(Event):
    family: ClassVar[EventFamily] = EventFamily.ADMIN

    by: IdentityString | None = None
    """Who did it: a user, or the policy."""


class LineageScope(EventEnum):
    UNKNOWN = "UNKNOWN"
    SOURCE_TABLES = "SOURCE_TABLES"
    SINK_TABLES = "SINK_TABLES"
    TABLES = "TABLES"
    DATA = "DATA"
    ALL = "ALL"


class LineageDeleted(Administration):
    """Lineage up to `before` was deleted: of a job, of one run of it, or of expired snapshots of a dataset.

    >>> from datetime import datetime, timezone
    >>> before = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> LineageDeleted(scope=LineageScope.ALL, of_job=JobName(name="orders_etl"), before=before).of_job.name
    'orders_etl'
    """

    kind: Literal["LineageDeleted"] = "LineageDeleted"
    schema_version: Literal[1] = 1
    scope: LineageScope
    of_job: JobName | None = None
    steps: bool = False
    """Of the job's steps too: the jobs whose parent it is."""
    of_run: UUID | None = None
    dataset: DatasetId | None = None
    generation: Generation | None = None
    up_to_snapshot: Long | None = None
    before: Timestamp
    catalog: CatalogId | None = None
    """Only what concerns this catalog, where one is named."""


class CatalogOptionsDeclared(Administration):
    """A catalog was used for the first time with these options.

    They are immutable: the first declared value holds.

    >>> lake = CatalogContext(name="lake", class_name="org.apache.iceberg.spark.SparkCatalog")
    >>> CatalogOptionsDeclared(context=lake, data_lineage=False).table_lineage
    True
    """

    kind: Literal["CatalogOptionsDeclared"] = "CatalogOptionsDeclared"
    schema_version: Literal[1] = 1
    context: CatalogContext
    table_lineage: bool = True
    data_lineage: bool = True
    options: StringMap = StringMap()


class DatasetsUnified(Administration):
    """Several identities were found to be one dataset: `others` are called `dataset` from now on.

    >>> old, new = (DatasetId(namespace="s3://lake", name=name) for name in ("old/orders", "orders"))
    >>> str(DatasetsUnified(dataset=new, others=(old,)).dataset)
    's3://lake/orders'
    """

    kind: Literal["DatasetsUnified"] = "DatasetsUnified"
    schema_version: Literal[1] = 1
    dataset: DatasetId
    others: Annotated[tuple[DatasetId, ...], Field(min_length=1)]
    reason: str = ""
