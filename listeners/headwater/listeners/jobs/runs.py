"""The runs of one application: itself, its with-blocks, its streaming queries, the sessions of a server's clients. What
is told of them, and which of them a statement belongs to.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from headwater.events.base import Counts, Texts
from headwater.events.envelope import Event
from headwater.events.health import Closed, Heartbeat
from headwater.events.ids import uuid7
from headwater.events.jobs import JobStarted, JobStatus, JobStatusChanged, JobType, OnJobEnd, RunScope
from headwater.events.names import JobName
from headwater.listeners.clients import Client
from headwater.listeners.jobs import names
from headwater.listeners.jobs.application import ApplicationFacts
from headwater.listeners.jobs.configuration import told_configuration
from headwater.listeners.jobs.endings import ENDED, Ending
from headwater.listeners.jobs.parents import parent_run
from headwater.listeners.jobs.queries import Query, QueryStart
from headwater.listeners.settings import Settings

_LOG = logging.getLogger(__name__)
TAG: Final = "headwater-"
"""What job tags of ours begin with; the run follows."""
_KEPT: Final = 10_000


class Attribution(NamedTuple):
    """What a statement belongs to."""

    job: JobName
    run: UUID
    parent_job: JobName


@dataclass(eq=False)
class Block:
    """A with-block that was entered, or a client's session: a run of its job."""

    job: JobName
    run: UUID
    tags: Mapping[str, str]
    outer: Block | None
    client: Client | None = None
    """Whose session it is."""
    on_end: OnJobEnd | None = None
    ending: Ending | None = None
    is_begun: bool = False
    is_over: bool = False

    @property
    def tag(self) -> str:
        """The job tag that the statements in it carry."""
        return f"{TAG}{self.run}"

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1


class Jobs:
    """For any thread. Telling can take as long as a disk does, so nobody of the user's is to wait for it."""

    def __init__(
        self,
        facts: ApplicationFacts,
        settings: Settings,
        tell: Callable[[Event], object],
        *,
        kept: int = _KEPT,
    ) -> None:
        self._facts = facts
        self._settings = settings
        self._tell = tell
        self._kept = kept
        self._lock = threading.Lock()
        self._blocks: dict[UUID, Block] = {}
        self._sessions: dict[tuple[str, str, str | None], Block] = {}
        self._leaving = ENDED
        self._ended: deque[Block] = deque()
        self._queries: dict[UUID, Query] = {}
        """By Spark's own ids of their runs."""
        self._past_queries: deque[UUID] = deque()
        self._untold: list[Block] = []
        self._is_finishing = False
        self._is_over = False
        self._application = names.application_name(facts.name, facts.user)
        self.application_job: JobName = names.job_name(settings.job_namespace, settings.job_name or self._application)
        self.application_run: UUID = uuid7()

    def attribution(
        self, started: Mapping[str, str], tags: Iterable[str], sink: str | None, client: Client | None = None
    ) -> Attribution:
        """The job and run of a statement, as things were when it started: `started` is what its session said by then
        that the application doesn't say, `tags` are its job tags. `sink` is what it writes first, by name, and `client`
        who asked a server for it."""
        block = self._innermost(tags)
        if block is not None:
            self.tell_begin(block)
            return Attribution(block.job, block.run, block.job)
        if client is not None:
            session = self.session(client)
            return Attribution(self._own_name(started, sink), session.run, session.job)
        return Attribution(self._own_name(started, sink), self.application_run, self.application_job)

    def begin(self) -> None:
        """The application runs."""
        self._warn_of_generic_name()
        settings, facts = self._settings, self._facts
        self._tell(
            JobStarted(
                job=self.application_job,
                run=self.application_run,
                job_type=JobType.BATCH,  # streams have runs of their own
                scope=RunScope.APPLICATION,
                parent=parent_run(settings, facts.configuration, facts.environment),
                configuration=Texts(told_configuration(facts.configuration)),
                tags=Texts(settings.tags),
                user=facts.user,
                code_version=facts.code_version,
                headwater_version=facts.headwater_version,
                spark=facts.spark,
            )
        )
        self._tell_status(self.application_job, self.application_run, Ending(status=JobStatus.RUNNING))

    def open_block(
        self,
        name: str,
        namespace: str | None,
        tags: Mapping[str, str],
        running: Iterable[str] = (),
        on_end: OnJobEnd | None = None,
    ) -> Block:
        """A new run of this job. `running` are the job tags of its thread: it is inside the block they name."""
        job = names.job_name(namespace or self._settings.job_namespace, name)
        on_end = on_end or self._settings.lineage_on_end
        block = Block(job, uuid7(), {**self._settings.tags, **tags}, self._innermost(running), on_end=on_end)
        with self._lock:
            self._blocks[block.run] = block
        return block

    def session(self, client: Client) -> Block:
        """The run of this client's session, whose beginning is told when somebody asks for it first."""
        with self._lock:
            known = self._sessions.get(client.of_session)
            if known is None:
                known = self._sessions[client.of_session] = self._new_session(client)
        self.tell_begin(known)
        return known

    def end_session(self, client: Client) -> None:
        """It was closed: how the client's program ended nobody knows. Nothing is told of one that did nothing."""
        with self._lock:
            known = self._sessions.get(client.of_session)
        if known is not None:
            self.end_block(known, self._leaving)
            self.tell_ends([known])

    def leave(self, ending: Ending) -> None:
        """The application is about to end so: with it end the sessions that its servers close from now on."""
        self._leaving = _of_parts(ending)

    def end_block(self, block: Block, ending: Ending) -> None:
        """It was left so. Nothing is told yet: what it did may still be on its way."""
        with self._lock:
            if block.ending is None:
                block.ending = ending
                self._untold.append(block)

    def tell_begin(self, block: Block) -> None:
        """Tell that it runs, if nobody has."""
        with self._lock:
            if block.is_begun or self._is_over:
                return
            block.is_begun = True
        outer, client = block.outer, block.client
        self._tell(
            JobStarted(
                job=block.job,
                run=block.run,
                job_type=JobType.BATCH,
                scope=RunScope.BLOCK if client is None else RunScope.SESSION,
                parent_job=outer.job if outer else self.application_job,
                parent_run=outer.run if outer else self.application_run,
                tags=Texts(block.tags),
                user=self._facts.user if client is None else client.user,
                code_version=self._facts.code_version,
                headwater_version=self._facts.headwater_version,
            )
        )
        self._tell_status(block.job, block.run, Ending(status=JobStatus.RUNNING))

    def begin_query(self, run: UUID, start: QueryStart) -> None:
        """A streaming query runs; `run` is Spark's own id of this start of it."""
        block, stream = self._innermost(start.tags), start.stream
        query = Query(
            job=block.job if block else self._name_of_query(start),
            run=uuid7(),
            parent_job=block.job if block else self.application_job,
            parent_run=block.run if block else self.application_run,
        )
        with self._lock:
            if run in self._queries or self._is_over:
                return
            self._queries[run] = query
        if block is not None:
            self.tell_begin(block)
        self._tell(
            JobStarted(
                job=query.job,
                run=query.run,
                job_type=JobType.STREAMING,
                scope=RunScope.QUERY,
                parent_job=query.parent_job,
                parent_run=query.parent_run,
                tags=Texts(block.tags if block else self._settings.tags),
                user=self._facts.user,
                code_version=self._facts.code_version,
                headwater_version=self._facts.headwater_version,
                stream=stream,
                starts_at=start.starts_at,
            )
        )
        self._tell_status(query.job, query.run, Ending(status=JobStatus.RUNNING))

    def of_query(self, run: UUID) -> Attribution | None:
        """What a micro-batch belongs to; None if nobody told that the query runs."""
        with self._lock:
            query = self._queries.get(run)
        return None if query is None else Attribution(query.job, query.run, query.parent_job)

    def end_query(self, run: UUID, ending: Ending) -> None:
        """It ended so, once and for all."""
        with self._lock:
            query = self._queries.get(run)
            if query is None or query.is_over or self._is_over:
                return
            query.is_over = True
            self._past_queries.append(run)
            if len(self._past_queries) > self._kept:
                del self._queries[self._past_queries.popleft()]
        self._tell_status(query.job, query.run, ending)

    def untold(self) -> list[Block]:
        """The blocks that are left, and whose end is still to be told: those of before this call."""
        with self._lock:
            return list(self._untold)

    def tell_ends(self, blocks: Collection[Block]) -> None:
        """Tell how these ended. They are remembered for a while, for statements that come late."""
        for block in blocks:
            self.tell_begin(block)
            if self._take_end(block):
                self._tell_status(block.job, block.run, block.ending or ENDED, block.on_end)

    def beat(self, interval: int, dropped: Counts) -> None:
        if not self._is_over:
            job, run = self.application_job, self.application_run
            self._tell(Heartbeat(job=job, run=run, interval=interval, dropped=dropped))

    def finish(self, ending: Ending) -> None:
        """The application ended so, and with it the blocks that nobody left and the sessions that nobody closed."""
        with self._lock:
            if self._is_finishing:
                return
            self._is_finishing = True
            blocks = [block for block in self._blocks.values() if not block.is_over]
            queries = [run for run, query in self._queries.items() if not query.is_over]
        for run in queries:
            self.end_query(run, ending if ending.status is JobStatus.KILLED else ENDED)
        for block in blocks:
            self.end_block(block, _of_parts(ending))
        self.tell_ends(blocks)
        with self._lock:
            self._is_over = True
        self._tell_status(self.application_job, self.application_run, ending, self._settings.lineage_on_end)

    def close(self, *, complete: bool, dropped: Counts) -> None:
        """The last event."""
        job, run = self.application_job, self.application_run
        self._tell(Closed(job=job, run=run, complete=complete, dropped=dropped))

    def _take_end(self, block: Block) -> bool:
        """Whether it is the caller's to tell the end."""
        with self._lock:
            if block.is_over or self._is_over:
                return False
            block.is_over = True
            self._untold = [each for each in self._untold if each is not block]
            self._ended.append(block)
            if len(self._ended) > self._kept:
                self._forget(self._ended.popleft())
            return True

    def _forget(self, block: Block) -> None:
        del self._blocks[block.run]
        if block.client is not None:
            del self._sessions[block.client.of_session]

    def _new_session(self, client: Client) -> Block:
        job = names.job_name(
            self.application_job.namespace, f"{self.application_job.name}.{client.user or client.server}"
        )
        tags = {**self._settings.tags, "client.server": client.server, "client.session": client.session}
        made = Block(job, uuid7(), tags, None, client, self._settings.lineage_on_end)
        self._blocks[made.run] = made
        return made

    def _innermost(self, tags: Iterable[str]) -> Block | None:
        runs = [_run_in(tag) for tag in tags]
        with self._lock:
            blocks = [self._blocks[run] for run in runs if run is not None and run in self._blocks]
        return max(blocks, key=lambda block: (block.depth, block.run), default=None)

    def _own_name(self, session: Mapping[str, str], sink: str | None) -> JobName:
        namespace = names.session_name(session, names.NAMESPACE) or self._settings.job_namespace
        name = names.session_name(session, names.NAME) or self._settings.job_name
        return names.job_name(namespace, name or f"{self._application}.{sink}" if name or sink else self._application)

    def _name_of_query(self, start: QueryStart) -> JobName:
        """Its own name, else what its session or the application says, else its id under the application's name."""
        namespace = names.session_name(start.session, names.NAMESPACE) or self._settings.job_namespace
        own = names.clean(start.stream.query_name or "")
        name = own or names.session_name(start.session, names.NAME) or self._settings.job_name
        return names.job_name(namespace, name or f"{self._application}.{start.stream.query}")

    def _tell_status(self, job: JobName, run: UUID, ending: Ending, on_end: OnJobEnd | None = None) -> None:
        told = JobStatusChanged(
            job=job,
            run=run,
            status=ending.status,
            error=ending.details(),
            exit_code=ending.exit_code,
            signal=ending.signal,
            on_job_end=on_end,
        )
        self._tell(told)

    def _warn_of_generic_name(self) -> None:
        if self._settings.job_name is None and names.is_generic(names.clean(self._facts.name) or names.UNNAMED):
            _LOG.warning(
                "this application is called %r as many others are, so its jobs are kept under %s: give it a name "
                "(spark.app.name), or its job one (%s)",
                self._facts.name,
                self.application_job.name,
                names.NAME,
            )


def _of_parts(ending: Ending) -> Ending:
    """How the parts of an application end that ends so: a signal kills them too, and of what else became of them
    nothing is known."""
    return ending if ending.status is JobStatus.KILLED else ENDED


def _run_in(tag: str) -> UUID | None:
    """The run that a job tag names, if it is one of ours."""
    try:
        return UUID(tag[len(TAG) :]) if tag.startswith(TAG) else None
    except ValueError:
        return None
