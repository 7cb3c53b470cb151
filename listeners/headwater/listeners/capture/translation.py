"""What resolved records say as drafts of events: which of the translators each kind goes to.

What clients of a server asked for that failed before Spark ran anything needs none.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from headwater.events import StatementFailed, TableName
from headwater.events.jobs import Sink
from headwater.listeners.capture.batch.commit_translator import CommitTranslator
from headwater.listeners.capture.batch.lineage_filter import LineageFilter
from headwater.listeners.capture.batch.outside_statements import OutsideStatementTranslator
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import OwnedDrafts, Owner, SessionEnd, Translated, by_statement, gap_of
from headwater.listeners.capture.records import (
    ClientFailureRecord,
    FailedRecord,
    OutsideCommitRecord,
    QueryEndedRecord,
    QueryStartedRecord,
    RddJobRecord,
    SessionClosedRecord,
)
from headwater.listeners.capture.resolution import RefusedWrite, Resolved, ResolvedStatement
from headwater.listeners.capture.statement_translator import StatementTranslator
from headwater.listeners.capture.streaming.queries import query_ended, query_started
from headwater.listeners.jobs.run_end import make_error_details

_LOG = logging.getLogger(__name__)


class Translator:
    """For one producer and one thread."""

    def __init__(self, context: CaptureContext, next_barrier: Callable[[], int], repeat: float) -> None:
        lineage_filter = LineageFilter(context)
        commits = CommitTranslator(context, lineage_filter, next_barrier, repeat)
        statements = StatementTranslator(context, commits, lineage_filter)
        outside = OutsideStatementTranslator(context, commits, lineage_filter)
        self._kinds: Mapping[type, Callable[[Any], Iterable[Translated]]] = {
            ResolvedStatement: statements.drafts,
            RefusedWrite: statements.refused_write,
            OutsideCommitRecord: outside.commits,
            RddJobRecord: lambda record: (outside.rdd_job(record),),
            QueryStartedRecord: lambda record: query_started(record, context),
            QueryEndedRecord: lambda record: (query_ended(record),),
            SessionClosedRecord: lambda record: (SessionEnd(record.client),),
            FailedRecord: _failed,
            ClientFailureRecord: lambda record: (client_failure(record, context),),
        }

    def translate(self, resolved: Resolved) -> Iterable[Translated]:
        """In order, each when the one before it was emitted. What is of no other kind is a Gap."""
        return self._kinds.get(type(resolved), _gap)(resolved)


def _failed(record: FailedRecord) -> Iterable[Translated]:
    for first in record.firsts:
        frames = "".join(f"\n    at {frame}" for frame in first.frames)
        _LOG.warning("%s caught, and went on after: %s%s", first.place, first.why, frames)
    for part in by_statement(record):
        yield from _gap(part)


def _gap(record: Any) -> Iterable[Translated]:
    return (OwnedDrafts(Owner(record), (gap_of(record),)),)


_GRPC_STATUS: Final = re.compile(r"[A-Z_]+: (?=\[)")
"""What gRPC puts before a message."""
_PLAN: Final = ";\n"
"""Behind this an analysis error shows the plan, with the literals that are in it."""
_FULL_NAME_PARTS: Final = 3


def client_failure(record: ClientFailureRecord, context: CaptureContext) -> OwnedDrafts:
    """The session's: which name it has for its job isn't known here, nothing of it ran."""
    failed = StatementFailed(
        outputs=tuple(_sink(name, context) for name in record.targets),
        error=make_error_details("unknown", _GRPC_STATUS.sub("", record.message, count=1).partition(_PLAN)[0]),
    )
    return OwnedDrafts(Owner(record, is_session=True), (failed,))


def _sink(name: Sequence[str], context: CaptureContext) -> Sink:
    """A name that leaves the catalog or database to the session is what was written, and no table's name."""
    if len(name) == _FULL_NAME_PARTS and context.catalog_called(name[0]) is not None:
        return Sink(dataset=None, table=TableName(catalog=name[0], database=name[1], table=name[2]))
    return Sink(dataset=None, opaque=".".join(name))
