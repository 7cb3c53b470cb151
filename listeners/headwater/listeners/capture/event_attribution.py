"""Whose drafts are: the job, run and client of each; and what queries and sessions tell of their own runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol
from uuid import UUID

from headwater.events import Committed, Event, Gap, JobLineage, JobName, StatementFailed
from headwater.events.literals import without_literals
from headwater.listeners.attribution import Attribution, Client
from headwater.listeners.capture.drafts import OwnedDrafts, Owner, QueryBegin, QueryEnd, Translated
from headwater.listeners.jobs.query_runs import QueryStart
from headwater.listeners.jobs.run_end import RunEnd

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
