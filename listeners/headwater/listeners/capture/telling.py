"""From what the tap says to what the bus is told: one record after the other, none of which can stop the next."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Protocol

from headwater.events import CatalogModification, Event, Gap, GapReason, JobEvent, JobName
from headwater.listeners.capture.batch.commits import By, Commits
from headwater.listeners.capture.batch.kept import Keeping
from headwater.listeners.capture.batch.omitted import Omitting
from headwater.listeners.capture.batch.shapes import ShapeOfWrite, shape_of, shape_of_reading
from headwater.listeners.capture.clients import Sessions, asked, client_events
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.formats import all_formats
from headwater.listeners.capture.formats.protocol import TellsLoose
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.register import register
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement, statement_of
from headwater.listeners.clients import Client, client_in

_LOG = logging.getLogger(__name__)
_SHAPES: Final = 2_000
"""Twice as many as the tap takes for told."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Attributed(Protocol):
    @property
    def job(self) -> JobName: ...
    @property
    def run(self) -> Any: ...
    @property
    def parent_job(self) -> JobName: ...


class Attributes(Sessions, Protocol):
    """Which job a statement is of."""

    def attribution(
        self, started: Mapping[str, str], tags: Iterable[str], sink: str | None, client: Client | None = None
    ) -> Attributed: ...


@dataclass(frozen=True)
class _Known:
    """What is known of a shape. A fault is told each time a statement has it, not looked for each time."""

    plan: Plan
    node: Node
    command: Command | None
    shape: ShapeOfWrite | None
    fault: str | None


class Teller:
    """For one thread."""

    def __init__(
        self, scene: Scene, commits: Commits, omitting: Omitting, jobs: Attributes, tell: Callable[[Event], object]
    ) -> None:
        self._scene = scene
        self._commits = commits
        self._jobs = jobs
        self._tell = tell
        self._shapes: OrderedDict[str, _Known] = OrderedDict()
        self._keeping = Keeping()
        self._omitting = omitting

    def record(self, record: Mapping[str, Any]) -> None:
        """Tell what a record of the tap says. Whatever goes wrong is told as a Gap."""
        client = client_in(record)
        try:
            for draft in self._drafts(record):
                self._tell(asked(draft, client))
        except Exception as e:  # noqa: BLE001 - a statement that can't be read must not stop the next one
            _LOG.debug("a statement couldn't be told", exc_info=True)
            self._tell(self._gap(record, GapReason.CAPTURE_FAILED, f"{type(e).__name__}: {e}"))

    def _drafts(self, record: Mapping[str, Any]) -> Iterator[Event]:
        for catalog in record.get("catalogs", ()):
            self._scene.learn_catalog(catalog)
        kind = record["kind"]
        if kind == "statement":
            yield from self._statement(record)
        elif kind == "unreadable":
            yield self._gap(
                record, GapReason.CAPTURE_FAILED, f"statement {record['id']} can't be told: {record['why']}"
            )
        elif kind == "dropped":
            detail = f"{record['count']} statements weren't read: the queue was full"
            yield self._gap(record, GapReason.QUEUE_OVERFLOW, detail, missed=record["count"])
        elif kind == "loose":
            yield from self._loose(record)
        elif kind == "client":
            yield from client_events(record, self._jobs, self._scene)

    def _loose(self, record: Mapping[str, Any]) -> Iterator[Event]:
        """What was committed by calling a library, without a statement around it."""
        fact = record["fact"]
        told = [each.loose(fact, self._scene) for each in all_formats() if isinstance(each, TellsLoose)]
        outputs = tuple(output for each in told for output in each)
        if outputs:
            sink = outputs[0].table or outputs[0].dataset
            found = self._jobs.attribution({}, (), None if sink is None else str(sink))
            yield self._commits.loose(outputs, By(found.job, found.run, found.parent_job))
        if not outputs or any(output.snapshot is None for output in outputs):
            detail = f"{fact.get('hook', 'something')} was committed outside of any statement"
            yield self._gap(record, GapReason.NOT_SUPPORTED, detail)

    def _statement(self, record: Mapping[str, Any]) -> Iterator[Event]:
        known = self._known(record)
        statement = statement_of(record, known.plan)
        if known.shape is not None and "rdds" in record:
            known = replace(known, shape=self._keeping.seen_through(known.shape, record["rdds"], known.plan))
        if known.shape is not None:
            yield from self._declared(statement, known.shape)
            shown = self._omitting.shown(known.shape)
            if shown is None and known.command is not None:
                known = replace(known, command=replace(known.command, write=None))
            known = replace(known, shape=shown)
        if record.get("reading"):
            yield from self._reading(record, statement, known)
            return
        if known.fault is not None:
            yield self._gap(record, GapReason.CAPTURE_FAILED, known.fault)
            return
        if known.command is None:
            if statement.failure is None:
                yield self._gap(record, GapReason.NOT_SUPPORTED, f"{known.node.name} isn't known to headwater")
            return
        if known.command.ignored is None:
            yield from self._told(statement, known, known.command)

    def _reading(self, record: Mapping[str, Any], statement: Statement, known: _Known) -> Iterator[Event]:
        """What only looks is told where that is wished; what keeps rows is remembered for those who read them."""
        if statement.failure is not None:
            return
        if "keeps" in record:
            self._keeping.keep(record["keeps"], statement, self._scene)
        elif known.fault is not None:
            yield self._gap(record, GapReason.CAPTURE_FAILED, known.fault)
        elif known.shape is not None:
            yield from self._commits.events(statement, known.shape, self._by(statement, known.shape))

    def _declared(self, statement: Statement, shape: ShapeOfWrite) -> Iterator[Event]:
        for draft in self._omitting.declared(shape):
            yield _accounted(draft, statement, self._by(statement, None))

    def _told(self, statement: Statement, known: _Known, command: Command) -> Iterator[Event]:
        by = self._by(statement, known.shape)
        if statement.failure is not None:
            if known.shape is not None:
                yield self._commits.failed(statement, known.shape, by)
            return
        if command.catalog is not None:
            for draft in command.catalog(known.node, statement, self._scene):
                if isinstance(draft, CatalogModification):
                    yield from (_accounted(each, statement, by) for each in self._omitting.used(draft.context.name))
                yield _accounted(draft, statement, by)
        if known.shape is not None:
            yield from self._commits.events(statement, known.shape, by)
        elif command.write is not None:
            detail = f"what this {known.node.name} writes can't be told"
            yield _accounted(Gap(reason=GapReason.NOT_SUPPORTED, detail=detail), statement, by)

    def _known(self, record: Mapping[str, Any]) -> _Known:
        shape = record["shape"]
        if "plan" in record:
            reading = bool(record.get("reading"))
            self._shapes[shape] = self._read(Plan.parse(record["plan"]), reading=reading)
            self._shapes.move_to_end(shape)
            if len(self._shapes) > _SHAPES:
                self._shapes.popitem(last=False)
        return self._shapes[shape]

    def _read(self, plan: Plan, *, reading: bool) -> _Known:
        node = plan.top if reading else _command(plan)
        command = None if reading else register().get(node.name)
        if not reading and (command is None or command.write is None):
            return _Known(plan, node, command, None, None)
        try:
            shape = self._shape(plan, node, command)
        except Exception as e:  # noqa: BLE001 - a plan can be anything; the statement is told as a Gap
            _LOG.debug("a plan couldn't be read", exc_info=True)
            return _Known(plan, node, command, None, f"{node.name} can't be read: {type(e).__name__}: {e}")
        return _Known(plan, node, command, shape, None)

    def _shape(self, plan: Plan, node: Node, command: Command | None) -> ShapeOfWrite | None:
        if command is None or command.write is None:
            return shape_of_reading(plan, self._scene)
        write = command.write(node, plan, self._scene)
        return None if write is None else shape_of(write, plan, self._scene)

    def _by(self, statement: Statement, shape: ShapeOfWrite | None) -> By:
        sink = None
        if shape is not None and shape.parts:
            target = shape.parts[0].part.target.sink
            place = f"{target.dataset.namespace}.{target.dataset.name}" if target.dataset else None
            sink = str(target.table) if target.table else place
        found = self._jobs.attribution(statement.confs, statement.tags, sink, statement.client)
        return By(found.job, found.run, found.parent_job)

    def _gap(self, record: Mapping[str, Any], reason: GapReason, detail: str, missed: int | None = None) -> Gap:
        confs, tags = record.get("confs", {}), record.get("tags", ())
        found = self._jobs.attribution(confs, tags, None, client_in(record))
        first = record.get("from", record.get("started", -1))
        last = record.get("to", record.get("ended"))
        return Gap(
            reason=reason,
            detail=detail,
            missed=missed,
            first_time=None if first is None or first < 0 else _moment(first),
            last_time=None if last is None else _moment(last),
            statement=record.get("id"),
            job=found.parent_job,
            run=found.run,
        )


def _command(plan: Plan) -> Node:
    """The command of a plan: its top, or what stands right below what only wraps it."""
    for index in (plan.root, *plan.top.inputs):
        if plan.nodes[index].name in register():
            return plan.nodes[index]
    return plan.top


def _accounted(draft: Event, statement: Statement, by: By) -> Event:
    """Whatever a format or catalog told, on the statement's account."""
    update: dict[str, object] = {"statement": statement.id, "run": by.run}
    if draft.job is None:
        update["job"] = by.job if isinstance(draft, JobEvent) else by.parent_job
    return draft.model_copy(update=update)


def _moment(millis: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=millis)
