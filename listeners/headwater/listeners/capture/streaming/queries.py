"""Runs of streaming queries, as the driver shows them: that one started, where it starts to read, and how it ended."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Final

from headwater.events import Gap
from headwater.events.health import GapReason
from headwater.events.jobs import ErrorDetails, JobStatus, StartPosition, StartReason, StreamDetails
from headwater.listeners.capture.batch.write_lineage import SourceLeaf, lineage_of_read
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import OwnedDrafts, Owner, QueryBegin, QueryEnd, Translated, time_of
from headwater.listeners.capture.formats.protocol import StreamStart, as_stream_format, ref_fields
from headwater.listeners.capture.formats.relations import STREAMS
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.records import QueryEndedRecord, QueryStartedRecord
from headwater.listeners.capture.statements import MicroBatch, OffsetRange, StatementFacts
from headwater.listeners.jobs.run_end import FINISHED, QueryStart, RunEnd

_LOG = logging.getLogger(__name__)
_CAUSE: Final = re.compile(r"^(?:[\w.$]+\.)?(\w+(?:\.\w+)*(?:Exception|Error)): ")
_CAUSED: Final = re.compile(r"^Caused by: (.+?)(?=\n\t(?:at |\.\.\. )|\Z)", re.MULTILINE | re.DOTALL)
_FRAMES: Final = "\n\tat "
_CONTINUOUS: Final = "continuous processing has no micro-batches: nothing is recorded of what it reads and writes"


def query_started(record: QueryStartedRecord, context: CaptureContext) -> Iterator[Translated]:
    """That it runs, and what can't be determined of it."""
    fault = record.fault
    try:
        starts = tuple(_starts(record, context))
    except Exception as e:  # noqa: BLE001 - that it runs is recorded in any case
        _LOG.debug("where a query starts can't be determined", exc_info=True)
        starts, fault = (), f"{type(e).__name__}: {e}"
    start = QueryStart(stream=_details(record), session=record.confs, tags=record.tags, starts_at=starts)
    yield QueryBegin(record.run, start)
    gaps: list[Gap] = []
    if fault:
        gaps.append(
            Gap(reason=GapReason.CAPTURE_FAILED, detail=f"where this query starts can't be determined: {fault}")
        )
    if record.is_continuous:
        gaps.append(Gap(reason=GapReason.NOT_SUPPORTED, detail=_CONTINUOUS))
    yield OwnedDrafts(Owner(record, query_run=record.run), gaps)


def query_ended(record: QueryEndedRecord) -> QueryEnd:
    """A query that somebody stops, or that has read what was there, ended well."""
    error = record.error
    if error is None:
        return QueryEnd(record.run, FINISHED)
    cause = _CAUSE.search(error)
    kind = cause[0].removesuffix(": ") if cause else "org.apache.spark.sql.streaming.StreamingQueryException"
    details = ErrorDetails(type=kind, message=_without_frames(error), condition=record.condition)
    return QueryEnd(record.run, RunEnd(status=JobStatus.FAILED, details_without_error=details))


def _starts(record: QueryStartedRecord, context: CaptureContext) -> Iterator[StartPosition]:
    if record.plan is None or record.first is None:
        return
    plan = Plan.parse(record.plan)
    context.enter_session(plan.catalogs)
    lineage = lineage_of_read(plan, context)
    for leaf in lineage.leaves:
        node = plan.nodes[leaf.relation.node]
        if node.name in STREAMS:
            source = lineage.sources[leaf.source]
            begins = _start_position(leaf, node, record.first)
            yield StartPosition(
                **ref_fields(source),
                tag=source.tag,
                snapshot=begins.snapshot,
                version=begins.version,
                reason=begins.reason,
            )


def _start_position(leaf: SourceLeaf, node: PlanNode, batch: MicroBatch) -> StreamStart:
    offsets = next(iter((batch.offsets or {}).get(node.index, ())), None)
    known = as_stream_format(leaf.format)
    if offsets is None or known is None:
        return StreamStart(reason=StartReason.CHECKPOINT if batch.batch > 0 else StartReason.UNKNOWN)
    if batch.batch == 0:
        return known.start_of_stream(leaf.relation, node, offsets)
    if offsets.start is None:
        return StreamStart(reason=StartReason.CHECKPOINT)
    reached = known.versions_of_batch(leaf.relation, node, OffsetRange(None, offsets.start), StatementFacts())
    at = reached[0] if reached else None
    return StreamStart(at.snapshot if at else None, at.version if at else None, StartReason.CHECKPOINT)


def _details(record: QueryStartedRecord) -> StreamDetails:
    return StreamDetails(
        query=record.query,
        query_run=record.run,
        query_name=record.name,
        checkpoint=record.checkpoint,
        started_at=None if record.began is None else time_of(record.began),
        trigger=record.trigger,
    )


def _without_frames(trace: str) -> str:
    """What a Java stack trace says went wrong, and what that came from in the end."""
    message = trace.partition(_FRAMES)[0].strip()
    causes = _CAUSED.findall(trace)
    return f"{message}\nCaused by: {causes[-1].strip()}" if causes and causes[-1].strip() not in message else message
