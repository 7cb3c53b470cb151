"""The runs of one application: itself, its with-blocks, its streaming queries, the sessions of a server's clients. What
is recorded of them, and which of them a statement belongs to.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headwater.events.base import CountMap, StringMap
from headwater.events.clock import uuid7
from headwater.events.envelope import Event
from headwater.events.health import Closed, Heartbeat
from headwater.events.jobs import (
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    LineageRetention,
    RunScope,
    StartPosition,
)
from headwater.events.names import VALIDATION_JOB_NAMESPACE, JobName
from headwater.listeners.attribution import Attribution, Client
from headwater.listeners.jobs import configuration
from headwater.listeners.jobs.configuration import ApplicationFacts, select_configuration
from headwater.listeners.jobs.parents import parent_run
from headwater.listeners.jobs.run_end import ENDED, QueryRun, QueryStart, RunEnd
from headwater.listeners.settings import Settings

_LOG = logging.getLogger(__name__)
TAG_PREFIX: Final = "headwater-"
"""What job tags of ours begin with; the run follows."""
_MAX_REMEMBERED: Final = 10_000


@dataclass(eq=False)
class BlockRun:
    """A with-block that was entered, or a client's session: a run of its job."""

    job: JobName
    run: UUID
    tags: Mapping[str, str]
    outer: BlockRun | None
    client: Client | None = None
    """Whose session it is."""
    on_end: LineageRetention | None = None
    starts_at: tuple[StartPosition, ...] = ()
    end: RunEnd | None = None
    has_started: bool = False
    has_ended: bool = False

    @property
    def tag(self) -> str:
        """The job tag that the statements in it carry."""
        return f"{TAG_PREFIX}{self.run}"

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1


class ApplicationRuns:
    """For any thread. Telling can take as long as a disk does, so nobody of the user's is to wait for it."""

    def __init__(
        self,
        facts: ApplicationFacts,
        settings: Settings,
        emit: Callable[[Event], object],
        *,
        max_remembered: int = _MAX_REMEMBERED,
    ) -> None:
        self._facts = facts
        self._settings = settings
        self._emit = emit
        self._max_remembered = max_remembered
        self._lock = threading.Lock()
        self._blocks: dict[UUID, BlockRun] = {}
        self._sessions: dict[tuple[str, str, str | None], BlockRun] = {}
        self._end_of_sessions = ENDED
        self._ended: deque[BlockRun] = deque()
        self._queries: dict[UUID, QueryRun] = {}
        """By Spark's own ids of their runs."""
        self._finished_queries: deque[UUID] = deque()
        self._unreported_ends: list[BlockRun] = []
        self._is_finishing = False
        self._has_ended = False
        self._application = configuration.application_name(facts.name, facts.user)
        self.application_job: JobName = configuration.job_name(
            self._namespace(None), settings.job_name or self._application
        )
        self.application_run: UUID = uuid7()

    @property
    def configuration(self) -> Mapping[str, str]:
        """What the application was started with."""
        return self._facts.configuration

    def attribution(
        self, started: Mapping[str, str], tags: Iterable[str], sink: str | None, client: Client | None = None
    ) -> Attribution:
        """The job and run of a statement, as things were when it started: `started` is what its session said by then
        that the application doesn't say, `tags` are its job tags. `sink` is what it writes first, by name, and `client`
        who asked a server for it."""
        block = self._innermost(tags)
        if block is not None:
            self.emit_start(block)
            return Attribution(block.job, block.run, block.job)
        if client is not None:
            session = self.session(client)
            return Attribution(self._job_of_statement(started, sink), session.run, session.job)
        return Attribution(self._job_of_statement(started, sink), self.application_run, self.application_job)

    def begin(self) -> None:
        """The application runs."""
        self._warn_of_generic_name()
        settings, facts = self._settings, self._facts
        self._emit(
            JobStarted(
                job=self.application_job,
                run=self.application_run,
                job_type=JobType.BATCH,  # streams have runs of their own
                scope=RunScope.APPLICATION,
                parent=parent_run(settings, facts.configuration, facts.environment),
                configuration=StringMap(select_configuration(facts.configuration)),
                tags=StringMap(settings.tags),
                user=facts.user,
                code_version=facts.code_version,
                headwater_version=facts.headwater_version,
                spark=facts.spark,
            )
        )
        self._emit_status(self.application_job, self.application_run, RunEnd(status=JobStatus.RUNNING))

    def open_block(
        self,
        name: str,
        namespace: str | None,
        tags: Mapping[str, str],
        running: Iterable[str] = (),
        on_end: LineageRetention | None = None,
        *,
        starts_at: tuple[StartPosition, ...] = (),
    ) -> BlockRun:
        """A new run of this job. `running` are the job tags of its thread: it is inside the block they name."""
        job = configuration.job_name(self._namespace(namespace), name)
        on_end = on_end or self._settings.lineage_on_end
        outer = self._innermost(running)
        block = BlockRun(job, uuid7(), {**self._settings.tags, **tags}, outer, on_end=on_end, starts_at=starts_at)
        with self._lock:
            self._blocks[block.run] = block
        return block

    def session(self, client: Client) -> BlockRun:
        """The run of this client's session, whose beginning is reported when somebody asks for it first."""
        with self._lock:
            known = self._sessions.get(client.session_key)
            if known is None:
                known = self._sessions[client.session_key] = self._new_session(client)
        self.emit_start(known)
        return known

    def end_session(self, client: Client) -> None:
        """It was closed: how the client's program ended nobody knows. Nothing is recorded of one that did nothing."""
        with self._lock:
            known = self._sessions.get(client.session_key)
        if known is not None:
            self.end_block(known, self._end_of_sessions)
            self.emit_ends([known])

    def set_expected_end(self, end: RunEnd) -> None:
        """The application is about to end so: with it end the sessions that its servers close from now on."""
        self._end_of_sessions = _end_of_parts(end)

    def end_block(self, block: BlockRun, end: RunEnd) -> None:
        """It was left so. Nothing is recorded yet: what it did may still be on its way."""
        with self._lock:
            if block.end is None:
                block.end = end
                self._unreported_ends.append(block)

    def emit_start(self, block: BlockRun) -> None:
        """Tell that it runs, if nobody has."""
        with self._lock:
            if block.has_started or self._has_ended:
                return
            block.has_started = True
        outer, client = block.outer, block.client
        self._emit(
            JobStarted(
                job=block.job,
                run=block.run,
                job_type=JobType.BATCH,
                scope=RunScope.BLOCK if client is None else RunScope.SESSION,
                parent_job=outer.job if outer else self.application_job,
                parent_run=outer.run if outer else self.application_run,
                tags=StringMap(block.tags),
                user=self._facts.user if client is None else client.user,
                code_version=self._facts.code_version,
                headwater_version=self._facts.headwater_version,
                starts_at=block.starts_at,
            )
        )
        self._emit_status(block.job, block.run, RunEnd(status=JobStatus.RUNNING))

    def begin_query(self, run: UUID, start: QueryStart) -> None:
        """A streaming query runs; `run` is Spark's own id of this start of it."""
        block, stream = self._innermost(start.tags), start.stream
        query = QueryRun(
            job=block.job if block else self._job_of_query(start),
            run=uuid7(),
            parent_job=block.job if block else self.application_job,
            parent_run=block.run if block else self.application_run,
        )
        with self._lock:
            if run in self._queries or self._has_ended:
                return
            self._queries[run] = query
        if block is not None:
            self.emit_start(block)
        self._emit(
            JobStarted(
                job=query.job,
                run=query.run,
                job_type=JobType.STREAMING,
                scope=RunScope.QUERY,
                parent_job=query.parent_job,
                parent_run=query.parent_run,
                tags=StringMap(block.tags if block else self._settings.tags),
                user=self._facts.user,
                code_version=self._facts.code_version,
                headwater_version=self._facts.headwater_version,
                stream=stream,
                starts_at=start.starts_at,
            )
        )
        self._emit_status(query.job, query.run, RunEnd(status=JobStatus.RUNNING))

    def query_attribution(self, run: UUID) -> Attribution | None:
        """What a micro-batch belongs to; None if nobody reported that the query runs."""
        with self._lock:
            query = self._queries.get(run)
        return None if query is None else Attribution(query.job, query.run, query.parent_job)

    def end_query(self, run: UUID, end: RunEnd) -> None:
        """It ended so, once and for all."""
        with self._lock:
            query = self._queries.get(run)
            if query is None or query.has_ended or self._has_ended:
                return
            query.has_ended = True
            self._finished_queries.append(run)
            if len(self._finished_queries) > self._max_remembered:
                del self._queries[self._finished_queries.popleft()]
        self._emit_status(query.job, query.run, end)

    def unreported_ends(self) -> list[BlockRun]:
        """The blocks that are left, and whose end is still to be reported: those of before this call."""
        with self._lock:
            return list(self._unreported_ends)

    def emit_ends(self, blocks: Collection[BlockRun]) -> None:
        """Tell how these ended. They are remembered for a while, for statements that come late."""
        for block in blocks:
            self.emit_start(block)
            if self._claim_end(block):
                self._emit_status(block.job, block.run, block.end or ENDED, block.on_end)

    def emit_heartbeat(self, interval: int, dropped: CountMap) -> None:
        if not self._has_ended:
            job, run = self.application_job, self.application_run
            self._emit(Heartbeat(job=job, run=run, interval=interval, dropped=dropped))

    def finish(self, end: RunEnd) -> None:
        """The application ended so, and with it the blocks that nobody left and the sessions that nobody closed."""
        with self._lock:
            if self._is_finishing:
                return
            self._is_finishing = True
            blocks = [block for block in self._blocks.values() if not block.has_ended]
            queries = [run for run, query in self._queries.items() if not query.has_ended]
        for run in queries:
            self.end_query(run, end if end.status is JobStatus.KILLED else ENDED)
        for block in blocks:
            self.end_block(block, _end_of_parts(end))
        self.emit_ends(blocks)
        with self._lock:
            self._has_ended = True
        self._emit_status(self.application_job, self.application_run, end, self._settings.lineage_on_end)

    def close(self, *, complete: bool, dropped: CountMap) -> None:
        """The last event."""
        job, run = self.application_job, self.application_run
        self._emit(Closed(job=job, run=run, complete=complete, dropped=dropped))

    def _claim_end(self, block: BlockRun) -> bool:
        """Whether it is the caller's to tell the end."""
        with self._lock:
            if block.has_ended or self._has_ended:
                return False
            block.has_ended = True
            self._unreported_ends = [other for other in self._unreported_ends if other is not block]
            self._ended.append(block)
            if len(self._ended) > self._max_remembered:
                self._forget(self._ended.popleft())
            return True

    def _forget(self, block: BlockRun) -> None:
        del self._blocks[block.run]
        if block.client is not None:
            del self._sessions[block.client.session_key]

    def _new_session(self, client: Client) -> BlockRun:
        job = configuration.job_name(
            self.application_job.namespace, f"{self.application_job.name}.{client.user or client.server}"
        )
        tags = {**self._settings.tags, "client.server": client.server, "client.session": client.session}
        block = BlockRun(job, uuid7(), tags, None, client, self._settings.lineage_on_end)
        self._blocks[block.run] = block
        return block

    def _innermost(self, tags: Iterable[str]) -> BlockRun | None:
        runs = [_run_of_tag(tag) for tag in tags]
        with self._lock:
            blocks = [self._blocks[run] for run in runs if run is not None and run in self._blocks]
        return max(blocks, key=lambda block: (block.depth, block.run), default=None)

    def _namespace(self, said: str | None) -> str:
        """Return the namespace of a job: what was said for it, unless the application validates others."""
        if self._settings.validating:
            return VALIDATION_JOB_NAMESPACE
        return said or self._settings.job_namespace

    def _job_of_statement(self, session: Mapping[str, str], sink: str | None) -> JobName:
        namespace = self._namespace(configuration.session_name(session, configuration.NAMESPACE))
        name = configuration.session_name(session, configuration.NAME) or self._settings.job_name
        return configuration.job_name(
            namespace, name or f"{self._application}.{sink}" if name or sink else self._application
        )

    def _job_of_query(self, start: QueryStart) -> JobName:
        """Its own name, else what its session or the application says, else its id under the application's name."""
        namespace = self._namespace(configuration.session_name(start.session, configuration.NAMESPACE))
        own = configuration.clean_name(start.stream.query_name or "")
        name = own or configuration.session_name(start.session, configuration.NAME) or self._settings.job_name
        return configuration.job_name(namespace, name or f"{self._application}.{start.stream.query}")

    def _emit_status(self, job: JobName, run: UUID, end: RunEnd, on_end: LineageRetention | None = None) -> None:
        event = JobStatusChanged(
            job=job,
            run=run,
            status=end.status,
            error=end.details(),
            exit_code=end.exit_code,
            signal=end.signal,
            on_job_end=on_end,
        )
        self._emit(event)

    def _warn_of_generic_name(self) -> None:
        if self._settings.job_name is None and configuration.is_generic(
            configuration.clean_name(self._facts.name) or configuration.UNNAMED
        ):
            _LOG.warning(
                "this application is called %r as many others are, so its jobs are kept under %s: give it a name "
                "(spark.app.name), or its job one (%s)",
                self._facts.name,
                self.application_job.name,
                configuration.NAME,
            )


def _end_of_parts(end: RunEnd) -> RunEnd:
    """How the parts of an application end that ends so: a signal kills them too, and of what else became of them
    nothing is known."""
    return end if end.status is JobStatus.KILLED else ENDED


def _run_of_tag(tag: str) -> UUID | None:
    """The run that a job tag names, if it is one of ours."""
    try:
        return UUID(tag[len(TAG_PREFIX) :]) if tag.startswith(TAG_PREFIX) else None
    except ValueError:
        return None
