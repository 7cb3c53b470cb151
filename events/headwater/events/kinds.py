"""All kinds of events, as one discriminated union."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, get_args

from pydantic import Field

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.catalog import (
    AlterDatabase,
    AlterTable,
    AlterView,
    BranchMerged,
    CorrectionSwitched,
    CreateBranch,
    CreateDatabase,
    CreateTable,
    CreateTag,
    CreateView,
    DropBranch,
    DropDatabase,
    DropTable,
    DropTag,
    DropView,
    MainReplaced,
    Truncate,
)
from headwater.events.envelope import Event
from headwater.events.health import Closed, Gap, Heartbeat
from headwater.events.jobs import Committed, JobLineage, JobStarted, JobStatusChanged, StatementFailed

CatalogEvent: TypeAlias = (
    CreateDatabase
    | AlterDatabase
    | DropDatabase
    | CreateTable
    | AlterTable
    | DropTable
    | CreateView
    | AlterView
    | DropView
    | Truncate
    | CreateTag
    | DropTag
    | CreateBranch
    | DropBranch
    | BranchMerged
    | MainReplaced
    | CorrectionSwitched
)
JobLineageEvent: TypeAlias = (
    JobStarted | JobLineage | Committed | StatementFailed | JobStatusChanged | Gap | Heartbeat | Closed
)
AdministrationEvent: TypeAlias = LineageDeleted | CatalogOptionsDeclared | DatasetsUnified
AnyEvent: TypeAlias = Annotated[CatalogEvent | JobLineageEvent | AdministrationEvent, Field(discriminator="kind")]
"""Use with pydantic.TypeAdapter to read events from JSON."""

KINDS: Final[dict[str, type[Event]]] = {
    kind.__name__: kind for family in (CatalogEvent, JobLineageEvent, AdministrationEvent) for kind in get_args(family)
}
"""The class of each kind, by its name."""
