"""Runs of streaming queries, as the driver shows them: that one started, where it starts to read, and how it ended."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Protocol
from uuid import UUID

from headwater.events import (
    ErrorDetails,
    Event,
    Gap,
    GapReason,
    JobName,
    JobStatus,
    StartReason,
    StartsAt,
    StreamDetails,
)
from headwater.listeners.capture.batch.shapes import Leaf, shape_of_reading
from headwater.listeners.capture.clients import Sessions
from headwater.listeners.capture.formats.protocol import Begins, streams_of
from headwater.listeners.capture.formats.relations import STREAMS
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, MicroBatch, Took, micro_batch
from headwater.listeners.clients import Client
from headwater.listeners.jobs.endings import FINISHED, Ending
from headwater.listeners.jobs.queries import QueryStart

_LOG = logging.getLogger(__name__)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_CAUSE: Final = re.compile(r"^(?:[\w.$]+\.)?(\w+(?:\.\w+)*(?:Exception|Error)): ")
_CAUSED: Final = re.compile(r"^Caused by: (.+?)(?=\n\t(?:at |\.\.\. )|\Z)", re.MULTILINE | re.DOTALL)
_FRAMES: Final = "\n\tat "
_PLACE: Final = ("dataset", "table", "life", "format", "branch", "main", "opaque")


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

    def begin_query(self, run: UUID, start: QueryStart) -> None: ...

    def of_query(self, run: UUID) -> Attributed | None: ...

    def end_query(self, run: UUID, ending: Ending) -> None: ...


class Queries:
    """For one thread."""

    def __init__(self, scene: Scene, jobs: Attributes) -> None:
        self._scene = scene
        self._jobs = jobs

    def events(self, record: Mapping[str, Any]) -> Iterator[Event]:
        """What is told beside the run's own course, which is the jobs' business."""
        run = UUID(record["run"])
        if record["did"] == "ended":
            self._jobs.end_query(run, _ending(record))
            return
        fault = record.get("unreadable")
        try:
            starts = tuple(self._starts(record))
        except Exception as e:  # noqa: BLE001 - that it runs is told in any case
            _LOG.debug("where a query starts can't be told", exc_info=True)
            starts, fault = (), f"{type(e).__name__}: {e}"
        details = _details(record)
        self._jobs.begin_query(
            run,
            QueryStart(stream=details, session=record.get("confs", {}), tags=record.get("tags", ()), starts_at=starts),
        )
        if fault:
            yield self._gap(run, GapReason.CAPTURE_FAILED, f"where this query starts can't be told: {fault}")
        if record.get("continuous"):
            detail = "continuous processing has no micro-batches: nothing is told of what it reads and writes"
            yield self._gap(run, GapReason.NOT_SUPPORTED, detail)

    def _starts(self, record: Mapping[str, Any]) -> Iterator[StartsAt]:
        if "plan" not in record:
            return
        plan, batch = Plan.parse(record["plan"]), micro_batch(record)
        shape = shape_of_reading(plan, self._scene)
        for leaf in shape.leaves:
            node = plan.nodes[leaf.described.node]
            if node.name in STREAMS:
                source = shape.sources[leaf.source]
                begins = _begins(leaf, node, batch)
                yield StartsAt(
                    **{name: getattr(source, name) for name in _PLACE},
                    tag=source.tag,
                    snapshot=begins.snapshot,
                    version=begins.version,
                    reason=begins.reason,
                )

    def _gap(self, run: UUID, reason: GapReason, detail: str) -> Gap:
        found = self._jobs.of_query(run)
        return Gap(reason=reason, detail=detail, job=found.job if found else None, run=found.run if found else None)


def _begins(leaf: Leaf, node: Node, batch: MicroBatch) -> Begins:
    took = next(iter((batch.took or {}).get(node.index, ())), None)
    known = streams_of(leaf.format)
    if took is None or known is None:
        return Begins(reason=StartReason.CHECKPOINT if batch.batch > 0 else StartReason.UNKNOWN)
    if batch.batch == 0:
        return known.begins(leaf.described, node, took)
    if took.start is None:
        return Begins(reason=StartReason.CHECKPOINT)
    reached = known.took(leaf.described, node, Took(None, took.start), Facts())
    at = reached[0] if reached else None
    return Begins(at.snapshot if at else None, at.version if at else None, StartReason.CHECKPOINT)


def _details(record: Mapping[str, Any]) -> StreamDetails:
    began = record.get("began")
    return StreamDetails(
        query=UUID(record["query"]),
        query_run=UUID(record["run"]),
        query_name=record.get("name"),
        checkpoint=record.get("checkpoint"),
        began=None if began is None else _EPOCH + timedelta(milliseconds=began),
        trigger=record.get("trigger"),
    )


def _ending(record: Mapping[str, Any]) -> Ending:
    """A query that somebody stops, or that has read what was there, ended well."""
    error = record.get("error")
    if error is None:
        return FINISHED
    cause = _CAUSE.search(error)
    kind = cause[0].removesuffix(": ") if cause else "org.apache.spark.sql.streaming.StreamingQueryException"
    details = ErrorDetails(type=kind, message=_without_frames(error), condition=record.get("condition"))
    return Ending(status=JobStatus.FAILED, told=details)


def _without_frames(trace: str) -> str:
    """What a Java stack trace says went wrong, and what that came from in the end."""
    message = trace.partition(_FRAMES)[0].strip()
    causes = _CAUSED.findall(trace)
    return f"{message}\nCaused by: {causes[-1].strip()}" if causes and causes[-1].strip() not in message else message
