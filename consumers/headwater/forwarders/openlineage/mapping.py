"""What each event becomes in OpenLineage: a pure function, without any input, output or clock.

The same event gives the same messages whenever it is sent. A kind that isn't here gives none: docs/openlineage.md lists
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from openlineage.client.event_v2 import DatasetEvent, JobEvent, RunEvent

from headwater.events import Event
from headwater.events.administration import DatasetsUnified
from headwater.events.catalog import (
    AlterTable,
    AlterView,
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    TableModification,
    Truncate,
)
from headwater.events.health import Gap
from headwater.events.jobs import Committed, JobLineage, JobStarted, JobStatusChanged, StatementFailed
from headwater.forwarders.api import KnownLineage
from headwater.forwarders.openlineage.columns import KnownShape
from headwater.forwarders.openlineage.runs import start_of_run, status_of_run
from headwater.forwarders.openlineage.statements import commit, failed_statement, gap_in_run
from headwater.forwarders.openlineage.static_events import modification, shape_of_job, unified

OpenLineageEvent: TypeAlias = RunEvent | JobEvent | DatasetEvent


def openlineage_events(event: Event, lineage: KnownLineage) -> Iterator[OpenLineageEvent]:
    """Yield the messages of an event, in the order in which they are to be sent."""
    if isinstance(event, Committed):
        known = lineage.get(event.fingerprint) if event.fingerprint is not None else None
        yield from commit(event, KnownShape(known))
    elif isinstance(event, TableModification):
        yield from _of_modification(event)
    else:
        yield from _of_another_kind(event)


def _of_modification(event: TableModification) -> Iterator[OpenLineageEvent]:
    if isinstance(event, (CreateTable, AlterTable, DropTable, CreateView, AlterView, DropView, Truncate)):
        yield from modification(event)


def _of_another_kind(event: Event) -> Iterator[OpenLineageEvent]:
    if isinstance(event, JobStarted):
        yield from start_of_run(event)
    elif isinstance(event, JobStatusChanged):
        yield from status_of_run(event)
    elif isinstance(event, StatementFailed):
        yield from failed_statement(event, KnownShape(None))
    elif isinstance(event, JobLineage):
        yield from shape_of_job(event)
    elif isinstance(event, Gap):
        yield from gap_in_run(event)
    elif isinstance(event, DatasetsUnified):
        yield from unified(event)
