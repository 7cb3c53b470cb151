"""Changes by an administrator, a policy or expiry: events too, or a replay would bring back what was deleted."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import Field

from headwater.events.base import Texts
from headwater.events.catalog import CatalogContext
from headwater.events.envelope import Event, Family
from headwater.events.marks import Spread
from headwater.events.names import CatalogId, DatasetId, JobName, Life
from headwater.events.scalars import Long, Time, Word


class Administration(Event):
    family: ClassVar[Family] = Family.ADMIN

    by: str | None = None
    """Who did it: a user, or the policy."""


class LineageScope(Word):
    UNKNOWN = "UNKNOWN"
    SOURCE_TABLES = "SOURCE_TABLES"
    SINK_TABLES = "SINK_TABLES"
    TABLES = "TABLES"
    DATA = "DATA"
    ALL = "ALL"


class LineageDeleted(Administration):
    """Lineage was deleted, up to `before`: of a job, and of one run where `of_run` is told; or, by expiry, of every job
    as far as a dataset's snapshots are gone."""

    kind: Literal["LineageDeleted"] = "LineageDeleted"
    schema_version: Literal[1] = 1
    scope: LineageScope
    of_job: JobName | None = None
    steps: bool = False
    """Of the job's steps too: the jobs whose parent it is."""
    of_run: UUID | None = None
    dataset: DatasetId | None = None
    life: Life | None = None
    up_to_snapshot: Long | None = None
    before: Time
    catalog: CatalogId | None = None
    """Only what concerns this catalog, where one is told."""


class CatalogOptionsDeclared(Administration):
    """A catalog was used for the first time with these options. They are immutable: the first declared value holds."""

    kind: Literal["CatalogOptionsDeclared"] = "CatalogOptionsDeclared"
    schema_version: Literal[1] = 1
    context: CatalogContext
    table_lineage: bool = True
    data_lineage: bool = True
    options: Annotated[Texts, Spread()] = Texts()


class DatasetsUnified(Administration):
    """Identities that were found to be one dataset: `dataset` is what the others are from now on."""

    kind: Literal["DatasetsUnified"] = "DatasetsUnified"
    schema_version: Literal[1] = 1
    dataset: DatasetId
    others: Annotated[tuple[DatasetId, ...], Spread(), Field(min_length=1)]
    reason: str = ""
