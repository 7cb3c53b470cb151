"""Events of what is done to branches, and where they go.

What the formats' own statements do to branches is captured like any statement. These are of what isn't done by one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from headwater.events.catalog import (
    BranchMerged,
    CreateBranch,
    DropBranch,
    MainReplaced,
    ModificationCause,
)
from headwater.events.envelope import Event
from headwater.events.identity import Environment
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind, Committed, Output, OverwriteScope
from headwater.events.names import JobName, TableName
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor
from headwater.events.scalars import Format
from headwater.versions.branches.format_branches import FormatBranches
from headwater.versions.branches.model import Branch, MainMove, MoveKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lineage.store import Store

Report = Callable[[Event], None]
JOB: Final = JobName(name="headwater branch")
"""What moves main without a statement. Copies of rows belong to the job that the session has."""
_POINTERS: Final = {MoveKind.FAST_FORWARD: CommitKind.FAST_FORWARD, MoveKind.REPLACE: CommitKind.RESTORE}
_CATALOG: Final = "spark.sql.catalog."


class BranchEvents:
    """The events of one table's branches."""

    def __init__(self, table: FormatBranches) -> None:
        self._table = table
        self._place = _place_of(table)

    def created(self, branch: Branch) -> CreateBranch:
        return CreateBranch(**self._place, branch=branch.name, tag=branch.tag, snapshot=branch.tagged_snapshot)

    def dropped(self, branch: Branch) -> DropBranch:
        return DropBranch(**self._place, branch=branch.name)

    def moved(self, move: MainMove, *, is_replaced: bool) -> Iterator[Event]:
        """Yield what a merge did. Iceberg's branches only point to snapshots, and that main points to another one now
        is a commit without rows; copies and restorations of Delta are commits that capture sees itself."""
        kind = MainReplaced if is_replaced else BranchMerged
        yield kind(
            **self._place,
            branch=move.branch.name,
            tag=move.branch.tag,
            previous_snapshot=move.previous,
            snapshot=move.snapshot,
        )
        if self._place["format"] is Format.ICEBERG and move.kind in _POINTERS:
            yield self._pointer(move)

    def _pointer(self, move: MainMove) -> Committed:
        place = {key: self._place[key] for key in ("dataset", "generation", "format")}
        output = Output(
            **place,
            table=self._place["identifier"],
            snapshot=move.snapshot,
            parent=move.parent,
            schema_id=move.schema_id,
            commit_kind=_POINTERS[move.kind],
            replaced=OverwriteScope.UNKNOWN,
        )
        barrier = (time.time_ns() // 1_000_000 << 20) + (uuid4().int & 0xFFFFF)
        return Committed(job=JOB, barrier=barrier, outputs=(output,))


def driver_report(spark: SparkSession) -> Report | None:
    """Return how to report in a driver that headwater is installed in; None in another one."""
    from headwater.listeners.installation import contexts  # noqa: PLC0415 - it is for drivers

    found = contexts.of(spark.sparkContext)
    return None if found is None or not found.is_active else found.report_event


def store_report(store: Store) -> Report:
    """Return how to report to a store."""
    from headwater.lineage.mapping import map_event  # noqa: PLC0415

    producer = Producer()

    def report(draft: Event) -> None:
        producer.emit(draft, lambda event, _: store.merge(map_event(event)))

    return report


def _place_of(table: FormatBranches) -> dict[str, Any]:
    """Return what each modification of a table tells of it, as capture finds it."""
    from headwater.listeners.capture.context import CaptureContext  # noqa: PLC0415 - it is for drivers
    from headwater.listeners.capture.formats import installed  # noqa: PLC0415

    inside: Any = table.spark
    conf = dict(inside.sparkContext.getConf().getAll())
    loaded = table.loaded
    name = str(loaded.catalog.name())
    prefix = f"{_CATALOG}{name}."
    options = {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}
    context = CaptureContext(Environment.from_conf(conf, host=socket.gethostname()), conf, Redactor(), installed())
    catalog = context.learn_catalog(0, name, str(loaded.catalog.getClass().getName()), options)
    levels = [str(level) for level in loaded.identifier.namespace()]
    identifier = TableName(catalog=name, database=joined(levels), table=str(loaded.identifier.name()))
    return {
        "context": catalog.context,
        "cause": ModificationCause.PROCEDURE,
        "identifier": identifier,
        "dataset": context.dataset(catalog, identifier, table.location),
        "generation": table.generation,
        "format": Format(table.format.upper()),
    }
