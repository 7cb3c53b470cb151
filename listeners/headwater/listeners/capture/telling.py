"""From what the tap says to what the bus is told: one record after the other, none of which can stop the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from headwater.events import CatalogModification, Event, Gap, GapReason, JobEvent, Output
from headwater.listeners.capture.batch.commits import By, Commits
from headwater.listeners.capture.batch.failed import Failures
from headwater.listeners.capture.batch.kept import Keeping
from headwater.listeners.capture.batch.loose import loose
from headwater.listeners.capture.batch.omitted import Omitting
from headwater.listeners.capture.batch.rdds import HOOK as HOOK_OF_JOBS
from headwater.listeners.capture.batch.rdds import Rdds
from headwater.listeners.capture.batch.shapes import ShapeOfWrite, shape_of_reading, shape_of_refused
from headwater.listeners.capture.batch.work import Work
from headwater.listeners.capture.clients import asked, client_events
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.plans import Known, Plans
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement, statement_of
from headwater.listeners.capture.streaming.queries import Attributed, Attributes, Queries
from headwater.listeners.clients import client_in

_LOG = logging.getLogger(__name__)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Teller:
    """For one thread."""

    def __init__(
        self, scene: Scene, commits: Commits, omitting: Omitting, jobs: Attributes, tell: Callable[[Event], object]
    ) -> None:
        self._scene = scene
        self._commits = commits
        self._jobs = jobs
        self._tell = tell
        self._plans = Plans(scene)
        self._keeping = Keeping()
        self._omitting = omitting
        self._queries = Queries(scene, jobs)
        self._rdds = Rdds(scene, commits)
        self._failures = Failures(scene, commits, omitting)

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
            what = f"statement {record['id']}" if "id" in record else "a procedure"
            yield self._gap(record, GapReason.CAPTURE_FAILED, f"{what} can't be told: {record['why']}")
        elif kind == "dropped":
            detail = f"{record['count']} statements weren't read: the queue was full"
            yield self._gap(record, GapReason.QUEUE_OVERFLOW, detail, missed=record["count"])
        elif kind == "loose":
            yield from self._loose(record)
        elif kind == "client":
            yield from client_events(record, self._jobs, self._scene)
        elif kind == "query":
            yield from self._queries.events(record)
        elif kind == "refused":
            yield from self._refused(record)
        elif kind == "called":
            detail = f"CALL {record['procedure']} ran while Spark analysed it: what it did isn't shown"
            yield self._gap(record, GapReason.NOT_SUPPORTED, detail)

    def _loose(self, record: Mapping[str, Any]) -> Iterator[Event]:
        """What was committed by calling a library, without a statement around it."""
        fact, whole = record["fact"], False
        if fact.get("hook") == HOOK_OF_JOBS:
            output = self._rdds.output(fact)
            yield from self._rdds.events(fact, output, self._of_place(output, (fact.get("tags") or "").split(",")))
            return
        for each in loose((fact,), self._scene, self._omitting):
            yield from (event.model_copy(update=self._outside()) for event in each.altered)
            if each.outputs:
                yield self._commits.loose(each.outputs, self._of_place(each.outputs[0]))
            whole = each.whole
        if not whole:
            detail = f"{fact.get('hook', 'something')} was committed outside of any statement"
            yield self._gap(record, GapReason.NOT_SUPPORTED, detail)

    def _outside(self) -> dict[str, object]:
        found = self._jobs.attribution({}, (), None)
        return {"job": found.parent_job, "run": found.run}

    def _of_place(self, output: Output | None, tags: Iterable[str] = ()) -> By:
        sink = None
        if output is not None:
            place = f"{output.dataset.namespace}.{output.dataset.name}" if output.dataset else None
            sink = str(output.table) if output.table else place
        found = self._jobs.attribution({}, tags, sink)
        return By(found.job, found.run, found.parent_job)

    def _statement(self, record: Mapping[str, Any]) -> Iterator[Event]:
        known = self._plans.known(record)
        statement = statement_of(record, known.plan)
        if "gives" in record:
            yield from self._function(record, statement, known)
            return
        known = self._seen(record, known)
        if known.shape is not None:
            yield from self._declared(statement, known.shape)
            known = self._shown(known, known.shape)
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

    def _seen(self, record: Mapping[str, Any], known: Known) -> Known:
        """With what is known of the rows that others kept."""
        if known.shape is None or "rdds" not in record:
            return known
        return replace(known, shape=self._keeping.seen_through(known.shape, record["rdds"], known.plan))

    def _shown(self, known: Known, shape: ShapeOfWrite) -> Known:
        """Without what is told to nobody."""
        shown = self._omitting.shown(shape)
        if shown is None and known.command is not None:
            known = replace(known, command=replace(known.command, write=None))
        return replace(known, shape=shown)

    def _function(self, record: Mapping[str, Any], batch: Statement, known: Known) -> Iterator[Event]:
        """A micro-batch that a user's function was given: all that it wrote is one commit."""
        query = known.node.plan_of("query")
        self._keeping.keep(record["gives"], batch, self._scene, query)
        done: list[tuple[Statement, ShapeOfWrite]] = []
        failed: list[tuple[Statement, ShapeOfWrite]] = []
        for part in record.get("parts", ()):
            yield from self._part_safely(part, batch, done, failed)
        by = self._by(batch, None)
        if batch.failure is not None:
            whole = Work.together([(batch, shape_of_reading(batch.plan, self._scene, query)), *failed])
            yield self._commits.failed(batch, whole.shape, by)
        else:
            for statement, shape in failed:
                yield self._commits.failed(statement, shape, by)
        if done:
            yield from self._commits.of_work(batch, Work.together(done), by)

    def _part_safely(
        self,
        record: Mapping[str, Any],
        batch: Statement,
        done: list[tuple[Statement, ShapeOfWrite]],
        failed: list[tuple[Statement, ShapeOfWrite]],
    ) -> Iterator[Event]:
        """One that can't be read must not hide the others."""
        try:
            yield from self._part(record, batch, done, failed)
        except Exception as e:  # noqa: BLE001 - it is told as a Gap
            _LOG.debug("a part of a micro-batch couldn't be told", exc_info=True)
            yield self._gap(record, GapReason.CAPTURE_FAILED, f"{type(e).__name__}: {e}", of=batch)

    def _part(
        self,
        record: Mapping[str, Any],
        batch: Statement,
        done: list[tuple[Statement, ShapeOfWrite]],
        failed: list[tuple[Statement, ShapeOfWrite]],
    ) -> Iterator[Event]:
        """What it writes is told with the batch; what it does to catalogs, at once."""
        if record["kind"] != "statement":
            yield from self._drafts(record)
            return
        for catalog in record.get("catalogs", ()):
            self._scene.learn_catalog(catalog)
        known = self._seen(record, self._plans.known(record))
        statement = replace(statement_of(record, known.plan), stream=batch.stream)
        if known.shape is not None:
            yield from self._declared(statement, known.shape)
            known = self._shown(known, known.shape)
        if known.fault is not None or known.command is None:
            why = known.fault or f"{known.node.name} isn't known to headwater"
            yield self._gap(record, GapReason.CAPTURE_FAILED if known.fault else GapReason.NOT_SUPPORTED, why, of=batch)
        elif known.command.ignored is not None:
            return
        elif known.shape is not None and statement.failure is not None:
            failed.append((statement, known.shape))
        elif statement.failure is None:
            yield from self._modified(statement, known, known.command)
            if known.shape is not None:
                done.append((statement, known.shape))
            elif known.command.write is not None:
                yield self._unwritten(statement, known)

    def _reading(self, record: Mapping[str, Any], statement: Statement, known: Known) -> Iterator[Event]:
        """What only looks is told where that is wished; what keeps rows is remembered for those who read them."""
        if statement.failure is not None:
            return
        if "keeps" in record:
            self._keeping.keep(record["keeps"], statement, self._scene)
        elif known.fault is not None:
            yield self._gap(record, GapReason.CAPTURE_FAILED, known.fault)
        elif known.shape is not None:
            yield from self._commits.events(statement, known.shape, self._by(statement, known.shape))

    def _refused(self, record: Mapping[str, Any]) -> Iterator[Event]:
        """A write that analysis refused: told as one that failed, with what is known of it."""
        plan = Plan.parse(record["plan"])
        statement = statement_of(record, plan)
        known = shape_of_refused(record.get("target"), record["sources"], plan, self._scene)
        shape = self._omitting.shown(known)
        if shape is not None:
            yield self._commits.failed(statement, shape, self._by(statement, shape))

    def _declared(self, statement: Statement, shape: ShapeOfWrite) -> Iterator[Event]:
        for draft in self._omitting.declared(shape):
            yield _accounted(draft, statement, self._by(statement, None))

    def _told(self, statement: Statement, known: Known, command: Command) -> Iterator[Event]:
        by = self._by(statement, known.shape)
        if statement.failure is not None:
            for draft in self._failures.events(known.node, statement, known.shape, command, by):
                yield _accounted(draft, statement, by)
            return
        yield from self._modified(statement, known, command)
        if known.shape is not None:
            yield from self._commits.events(statement, known.shape, by)
        elif command.write is not None:
            yield self._unwritten(statement, known)

    def _modified(self, statement: Statement, known: Known, command: Command) -> Iterator[Event]:
        """What it did to catalogs."""
        if command.catalog is None:
            return
        by = self._by(statement, known.shape)
        for draft in command.catalog(known.node, statement, self._scene):
            if isinstance(draft, CatalogModification):
                yield from (_accounted(each, statement, by) for each in self._omitting.used(draft.context.name))
            yield _accounted(draft, statement, by)

    def _unwritten(self, statement: Statement, known: Known) -> Event:
        gap = Gap(reason=GapReason.NOT_SUPPORTED, detail=f"what this {known.node.name} writes can't be told")
        return _accounted(gap, statement, self._by(statement, known.shape))

    def _by(self, statement: Statement, shape: ShapeOfWrite | None) -> By:
        of_query = None if statement.stream is None else self._jobs.of_query(statement.stream.run)
        if of_query is not None:
            return By(of_query.job, of_query.run, of_query.parent_job)
        sink = None
        if shape is not None and shape.parts:
            target = shape.parts[0].part.target.sink
            place = f"{target.dataset.namespace}.{target.dataset.name}" if target.dataset else None
            sink = str(target.table) if target.table else place
        found = self._jobs.attribution(statement.confs, statement.tags, sink, statement.client)
        return By(found.job, found.run, found.parent_job)

    def _gap(
        self,
        record: Mapping[str, Any],
        reason: GapReason,
        detail: str,
        missed: int | None = None,
        of: Statement | None = None,
    ) -> Gap:
        confs, tags = record.get("confs", {}), record.get("tags", ())
        found: Attributed = self._jobs.attribution(confs, tags, None, client_in(record))
        if of is not None:
            found = self._by(of, None)
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


def _accounted(draft: Event, statement: Statement, by: By) -> Event:
    """Whatever a format or catalog told, on the statement's account."""
    update: dict[str, object] = {"statement": statement.id, "run": by.run}
    if draft.job is None:
        update["job"] = by.job if isinstance(draft, JobEvent) else by.parent_job
    return draft.model_copy(update=update)


def _moment(millis: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=millis)
