"""Events of what is done to branches, and where they go.

What the formats' own statements do to branches is captured like any statement. These are of what isn't done by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from headwater.events.catalog import (
    BranchMerged,
    CorrectionSwitched,
    CreateBranch,
    DropBranch,
    MainReplaced,
    ModificationCause,
)
from headwater.events.envelope import Event
from headwater.events.identity.namespaces import PREFIX as NAMESPACES
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind, Committed, Input, Output, OverwriteScope, ReadMode
from headwater.events.names import JobName, TableName
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor
from headwater.events.scalars import Format
from headwater.versions.branches.format_branches import FormatBranches
from headwater.versions.branches.model import Branch, MainMove, MainRollBack, MoveKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lineage.store import Store

Report = Callable[[Event], None]
JOB: Final = JobName(name="headwater branch")
"""What moves main without a statement."""
_CORRECTION_JOB: Final = JobName(name="headwater correct")
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
        """Yield what a merge did, and its commit: capture sees neither, since no statement made it."""
        kind = MainReplaced if is_replaced else BranchMerged
        is_new = self._makes_snapshots and move.kind is not MoveKind.NOTHING
        yield kind(
            **self._place,
            branch=move.branch.name,
            tag=move.branch.tag,
            previous_snapshot=move.previous,
            snapshot=move.snapshot,
            produced=move.snapshot if is_new else None,
            parent=move.parent if is_new else None,
        )
        if is_new:
            source = self._branch_source(move)
            replaced = CommitKind.RESTORE if move.kind is MoveKind.RESTORE else CommitKind.OVERWRITE
            yield self._copy(move.snapshot, move.parent, move.schema_id, source, replaced)
        elif move.kind in _POINTERS:
            yield self._pointer(move.snapshot, move.parent, move.schema_id, _POINTERS[move.kind])

    def rolled_back(self, done: MainRollBack) -> Iterator[Event]:
        """Yield the commit of a roll-back."""
        if self._makes_snapshots:
            source = Input(**self.identity, table=self._place["identifier"], mode=ReadMode.STATE, snapshot=done.to)
            yield self._copy(done.snapshot, done.parent, done.schema_id, source, CommitKind.RESTORE)
        else:
            yield self._pointer(done.snapshot, done.parent, done.schema_id, CommitKind.RESTORE)

    def switched(self, snapshot: int, parent: int | None, inputs: tuple[Input, ...], barrier: int) -> Committed:
        """Return the commit by which a corrected mirror took the table's place, with what the mirror was made from."""
        output = Output(
            **self.identity,
            table=self._place["identifier"],
            snapshot=snapshot,
            parent=parent,
            commit_kind=CommitKind.OVERWRITE,
            replaced=OverwriteScope.ALL,
            made_from=tuple(range(len(inputs))),
        )
        return Committed(job=_CORRECTION_JOB, barrier=barrier, inputs=inputs, outputs=(output,))

    def correction_switched(
        self, correction: str, mirror: str, wrong: tuple[TableName, int], moved: tuple[int | None, int | None]
    ) -> CorrectionSwitched:
        """Return that the table has its corrected rows, as all tables of the correction have. `moved` are its snapshots
        before and after. It produced none of them: a commit did, which says what it was made from, and a change of a
        catalog that produces a snapshot counts as made on the one before, with its wrong rows."""
        previous, snapshot = moved
        return CorrectionSwitched(
            **self._place,
            correction=correction,
            mirror=mirror,
            wrong_table=wrong[0],
            wrong_snapshot=wrong[1],
            previous_snapshot=previous,
            snapshot=snapshot,
        )

    @property
    def identifier(self) -> TableName:
        return TableName.model_validate(self._place["identifier"])

    @property
    def _makes_snapshots(self) -> bool:
        """Whether a move of main is a new snapshot. Main and branches of Iceberg only point to those that are there."""
        return self._place["format"] is not Format.ICEBERG

    @property
    def identity(self) -> dict[str, Any]:
        """What tells the table from others in an event."""
        return {key: self._place[key] for key in ("dataset", "generation", "format")}

    def _branch_source(self, move: MainMove) -> Input:
        """Return what a merge read: the branch, in its own table or beside main; or main, where it goes back to a
        snapshot of its own."""
        branch, other = move.branch, self._table.table_of(move.branch)
        line: dict[str, Any] = {}
        if move.kind is MoveKind.RESTORE:
            place, number = self._place, branch.tagged_snapshot
        elif other is not None:
            place, number = _place_of(other), branch.head
        else:
            place, number = self._place, branch.head
            line = {"branch": branch.name, "main": False}
        identity = {key: place[key] for key in ("dataset", "generation", "format")}
        return Input(**identity, **line, table=place["identifier"], mode=ReadMode.STATE, snapshot=number)

    def _copy(
        self, snapshot: int | None, parent: int | None, schema_id: int | None, source: Input, kind: CommitKind
    ) -> Committed:
        output = Output(
            **self.identity,
            table=self._place["identifier"],
            snapshot=snapshot,
            parent=parent,
            schema_id=schema_id,
            commit_kind=kind,
            replaced=OverwriteScope.ALL,
            made_from=(0,),
        )
        return Committed(job=JOB, barrier=_barrier(), inputs=(source,), outputs=(output,))

    def _pointer(self, snapshot: int | None, parent: int | None, schema_id: int | None, kind: CommitKind) -> Committed:
        """Return that main points to another snapshot: a commit without rows."""
        output = Output(
            **self.identity,
            table=self._place["identifier"],
            snapshot=snapshot,
            parent=parent,
            schema_id=schema_id,
            commit_kind=kind,
            replaced=OverwriteScope.UNKNOWN,
        )
        return Committed(job=JOB, barrier=_barrier(), outputs=(output,))


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


def _barrier() -> int:
    return (time.time_ns() // 1_000_000 << 20) + (uuid4().int & 0xFFFFF)


def _place_of(table: FormatBranches) -> dict[str, Any]:
    """Return what each modification of a table tells of it, as capture finds it."""
    from headwater.listeners.capture.context import CaptureContext  # noqa: PLC0415 - it is for drivers
    from headwater.listeners.capture.formats import installed  # noqa: PLC0415
    from headwater.listeners.installation.factories import read_environment  # noqa: PLC0415

    inside: Any = table.spark
    conf = dict(inside.sparkContext.getConf().getAll())
    loaded = table.loaded
    name = str(loaded.catalog.name())
    prefix = f"{_CATALOG}{name}."
    options = {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}
    names = {key.removeprefix(NAMESPACES): hosts for key, hosts in conf.items() if key.startswith(NAMESPACES)}
    environment = read_environment(inside.sparkContext, conf, names)
    context = CaptureContext(environment, conf, Redactor(), installed())
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
