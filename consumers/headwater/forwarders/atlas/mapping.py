"""What Atlas is told of an event: pure functions, without I/O and clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headwater.events import Event
from headwater.events.catalog import CatalogModification, ModificationEffect
from headwater.forwarders.atlas.changes import EventChanges
from headwater.forwarders.atlas.datasets import (
    change_altered_table,
    change_altered_view,
    change_created_table,
    change_created_view,
    change_database,
    change_dropped_database,
    change_dropped_table,
)
from headwater.forwarders.atlas.entities import Change
from headwater.forwarders.atlas.jobs import (
    change_commit,
    change_failed_statement,
    change_job_lineage,
    change_job_status,
    change_started_job,
)
from headwater.forwarders.atlas.names import AtlasNamer
from headwater.forwarders.atlas.options import AtlasNames

CHANGES_OF: Final[dict[str, Callable[[Any, EventChanges], None]]] = {
    "CreateDatabase": change_database,
    "AlterDatabase": change_database,
    "DropDatabase": change_dropped_database,
    "CreateTable": change_created_table,
    "AlterTable": change_altered_table,
    "DropTable": change_dropped_table,
    "CreateView": change_created_view,
    "AlterView": change_altered_view,
    "DropView": change_dropped_table,
    "JobStarted": change_started_job,
    "JobStatusChanged": change_job_status,
    "JobLineage": change_job_lineage,
    "Committed": change_commit,
    "StatementFailed": change_failed_statement,
}
"""By the kind of event. Atlas has no words for the others: docs/atlas.md lists them."""


def atlas_changes(event: Event, names: AtlasNames) -> tuple[Change, ...]:
    """Return what is to change in Atlas because of an event.

    Nothing is said of DDL that may not have taken effect.
    """
    change = CHANGES_OF.get(event.kind)
    if change is None or (isinstance(event, CatalogModification) and event.effect is not ModificationEffect.APPLIED):
        return ()
    changes = EventChanges(event, AtlasNamer(names))
    change(event, changes)
    return tuple(changes)
