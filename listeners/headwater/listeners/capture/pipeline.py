"""A record's way: parsed, resolved, translated, attributed, emitted. Each stage knows what the one before it gives.

| stage | gives | where |
|---|---|---|
| parse | a `Record` | `records` |
| resolve | it, with its plan, its catalogs and what they identify | `resolution` |
| translate | drafts of events, and what they are attributed by | `Translator`, and the translator of each kind |
| attribute | events of a job, a run and a client | `EventAttributor` |
| emit | nothing: the bus has them | `EventPipeline` |

What clients of a server asked for that failed before Spark ran anything needs no translator of its own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

from headwater.events import Committed, Event, Gap, JobLineage, JobName, StatementFailed, TableName
from headwater.events.health import GapReason
from headwater.events.jobs import Sink
from headwater.events.literals import without_literals
from headwater.listeners.attribution import Attribution, Client
from headwater.listeners.capture.batch.commit_translator import CommitTranslator
from headwater.listeners.capture.batch.lineage_filter import LineageFilter
from headwater.listeners.capture.batch.outside_statements import OutsideStatementTranslator
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import (
    OwnedDrafts,
    Owner,
    QueryBegin,
    QueryEnd,
    SessionEnd,
    Translated,
    by_statement,
    gap_of,
)
from headwater.listeners.capture.records import (
    ClientFailureRecord,
    FailedRecord,
    OutsideCommitRecord,
    QueryEndedRecord,
    QueryStartedRecord,
    RddJobRecord,
    Record,
    SessionClosedRecord,
)
from headwater.listeners.capture.resolution import (
    RefusedWrite,
    Resolved,
    ResolvedFunctionBatch,
    ResolvedStatement,
    Resolver,
    invalid_record,
)
from headwater.listeners.capture.statement_translator import StatementTranslator
from headwater.listeners.capture.streaming.queries import query_ended, query_started
from headwater.listeners.jobs.run_end import QueryStart, RunEnd, make_error_details
from headwater.listeners.settings import Settings

_CAPTURE_SQL: Final = "spark.headwater.capture.sql"
_ON: Final = "true"
_OF_JOB: Final = (Committed, JobLineage, StatementFailed)
"""What a job did; all else is the doing of what it is a part of."""


class SessionRun(Protocol):
    @property
    def job(self) -> JobName: ...
    @property
    def run(self) -> Any: ...


class Jobs(Protocol):
    """Which job a statement is of."""

    @property
    def application_job(self) -> JobName: ...
    def attribution(
        self, started: Mapping[str, str], tags: Iterable[str], sink: str | None, client: Client | None = None
    ) -> Attribution: ...
    def session(self, client: Client) -> SessionRun: ...
    def end_session(self, client: Client) -> None: ...
    def begin_query(self, run: UUID, start: QueryStart) -> None: ...
    def query_attribution(self, run: UUID) -> Attribution | None: ...
    def end_query(self, run: UUID, end: RunEnd) -> None: ...


class EventAttributor:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def events(self, translated: Translated) -> Iterator[Event]:
        """Drafts that say whose they are. Of runs that begin or end `jobs` tells itself."""
        if isinstance(translated, OwnedDrafts):
            owner, found = translated.owner, self._attribution_of(translated.owner)
            is_private = _is_private(owner.record.confs)
            for draft in translated.events:
                event = _attribute(draft, owner, found)
                yield _without_sql(event) if is_private else event
        elif isinstance(translated, QueryBegin):
            self._jobs.begin_query(translated.run, translated.start)
        elif isinstance(translated, QueryEnd):
            self._jobs.end_query(translated.run, translated.end)
        else:
            self._jobs.end_session(translated.client)

    def _attribution_of(self, owner: Owner) -> Attribution:
        record = owner.record
        if owner.is_session and record.client is not None:
            session = self._jobs.session(record.client)
            return Attribution(session.job, session.run, self._jobs.application_job)
        of_query = None if owner.query_run is None else self._jobs.query_attribution(owner.query_run)
        return of_query or self._jobs.attribution(record.confs, record.tags, owner.sink, record.client)


def _is_private(confs: Mapping[str, str]) -> bool:
    """Whether a session keeps its SQL and literals for itself, where the application's are reported."""
    return confs.get(_CAPTURE_SQL, _ON).strip().lower() != _ON


def _without_sql(event: Event) -> Event:
    masked = without_literals(event)
    return masked.model_copy(update={"sql": None}) if "sql" in type(masked).model_fields else masked


def _attribute(draft: Event, owner: Owner, found: Attribution) -> Event:
    update: dict[str, object] = {"run": found.run, "statement": owner.record.id, "job": found.parent_job}
    if isinstance(draft, _OF_JOB):
        update["parent_job"] = found.parent_job
        update["job"] = found.job
    elif isinstance(draft, Gap) and (draft.first_barrier is not None or owner.query_run is not None):
        update["job"] = found.job
    client = owner.record.client
    if client is not None:
        update["user"] = client.user
        update["operation"] = client.operation
    return draft.model_copy(update=update)


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
            ResolvedFunctionBatch: statements.function_batch,
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


class EventPipeline:
    """For one producer and one thread."""

    def __init__(
        self,
        context: CaptureContext,
        jobs: Jobs,
        next_barrier: Callable[[], int],
        emit: Callable[[Event], object],
        settings: Settings,
    ) -> None:
        self._resolver = Resolver(context, settings.capture_plan_bytes)
        self._translator = Translator(context, next_barrier, settings.lineage_repeat)
        self._attributor = EventAttributor(jobs)
        self._emit = emit

    def process(self, record: Record) -> None:
        """Emit the events of one record; a Gap if it can't be translated."""
        try:
            self._process(self._resolver.resolve(record))
        except Exception as e:  # noqa: BLE001 - a statement that can't be translated must not stop the next one
            self._process(invalid_record(record, e))

    def take_forgotten(self) -> list[str]:
        """Digests of the plans that aren't kept any more: a statement that has one needs it reported again."""
        return self._resolver.take_forgotten()

    def emit_gap(self, reason: GapReason, detail: str) -> None:
        """A Gap of the application's. For any thread."""
        self._emit_all(OwnedDrafts(Owner(Record()), (Gap(reason=reason, detail=detail),)))

    def _process(self, resolved: Resolved) -> None:
        for translated in self._translator.translate(resolved):
            self._emit_all(translated)

    def _emit_all(self, translated: Translated) -> None:
        for event in self._attributor.events(translated):
            self._emit(event)
