"""Runs of applications, blocks, sessions and streaming queries: a START, and one terminal event.

What all RunEvents have: the run, the job, and the facets that several kinds share.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated.base import JobFacet, RunFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.parent_run import Job as ParentJobName
from openlineage.client.generated.parent_run import ParentRunFacet, Root, RootJob, RootRun
from openlineage.client.generated.parent_run import Run as ParentRunId
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.sql_job import SQLJobFacet
from openlineage.client.generated.tags_run import TagsRunFacet, TagsRunFacetFields

from headwater.events.jobs import (
    ErrorDetails,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    ParentRun,
    SparkDetails,
    StartPosition,
    StreamDetails,
    parameters_text,
)
from headwater.events.names import JobName
from headwater.forwarders.openlineage.datasets import version_of
from headwater.forwarders.openlineage.identifiers import (
    PRODUCER_URI,
    event_time,
    job_namespace,
    job_of,
    present,
    stamped,
    uuid_of,
)
from headwater.forwarders.openlineage.own_facets import HeadwaterStartRunFacet, HeadwaterStatusRunFacet

RunFacets: TypeAlias = "dict[str, RunFacet | None]"
JobFacets: TypeAlias = "dict[str, JobFacet | None]"

_JAVA_PACKAGES: Final = ("java.", "javax.", "scala.", "org.", "com.", "io.", "net.")


def run_event(
    state: RunState,
    time: datetime,
    run: str,
    job: JobName,
    *,
    run_facets: RunFacets,
    job_facets: JobFacets | None = None,
    inputs: list[InputDataset] | None = None,
    outputs: list[OutputDataset] | None = None,
) -> RunEvent:
    """Return the event without the facets that there aren't."""
    return RunEvent(
        eventType=state,
        eventTime=event_time(time),
        run=Run(run, stamped(run_facets)),
        job=job_of(job, job_facets or {}),
        inputs=inputs or [],
        outputs=outputs or [],
        producer=PRODUCER_URI,
    )


def parent_facet(run: UUID | None, job: JobName | None) -> ParentRunFacet | None:
    """Return the run of ours that another one is a part of."""
    if run is None or job is None:
        return None
    return ParentRunFacet(run=ParentRunId(str(run)), job=ParentJobName(job_namespace(job), job.name))


def job_type_facet(job_type: JobType) -> JobTypeJobFacet | None:
    """Return whether a job ends by itself; None where that isn't known."""
    if job_type is JobType.UNKNOWN:
        return None
    return JobTypeJobFacet(processingType=job_type.value, integration="SPARK")


def sql_facet(sql: str | None) -> SQLJobFacet | None:
    """Return the statement, which events have only where capture.sql is true."""
    return None if sql is None else SQLJobFacet(query=sql, dialect="spark")


def error_facet(error: ErrorDetails, usual_language: str) -> ErrorMessageRunFacet:
    """Return an error, which has to be of a language: Java's classes show by their packages."""
    language = "JAVA" if error.type.startswith(_JAVA_PACKAGES) else usual_language
    words = f"{error.type}: {error.message}" if error.message else error.type
    return ErrorMessageRunFacet(
        message=words + parameters_text(error.message, error.parameters),
        programmingLanguage=language,
    )


def error_status(error: ErrorDetails | None) -> HeadwaterStatusRunFacet:
    """Return what OpenLineage has no place for of an error."""
    return HeadwaterStatusRunFacet(
        errorType=error.type if error else None,
        condition=error.condition if error else None,
        sqlState=error.sql_state if error else None,
        parameters=dict(error.parameters) or None if error else None,
    )


_STATES: Final = {
    JobStatus.RUNNING: RunState.RUNNING,
    JobStatus.FINISHED: RunState.COMPLETE,
    # COMPLETE says that a run has concluded. How it ended isn't known, and the facet headwater_status says that.
    JobStatus.ENDED: RunState.COMPLETE,
    JobStatus.FAILED: RunState.FAIL,
    JobStatus.KILLED: RunState.ABORT,
}


def start_of_run(event: JobStarted) -> Iterator[RunEvent]:
    """Yield the START of a run of an application, block, session or query."""
    if event.job is None or event.run is None:
        return
    facets: RunFacets = {
        "parent": parent_facet(event.parent_run, event.parent_job) or _outer_parent(event.parent),
        "processing_engine": _engine(event.spark, event.headwater_version),
        "tags": _tags(event),
        "headwater_start": HeadwaterStartRunFacet(
            application=event.application or None,
            scope=event.scope.value,
            user=event.user,
            codeVersion=event.code_version,
            parent=_foreign_parent(event.parent),
            stream=_stream(event.stream),
            startsAt=[_start_position(position) for position in event.starts_at] or None,
        ),
    }
    job_facets: JobFacets = {"jobType": job_type_facet(event.job_type)}
    yield run_event(RunState.START, event.time, str(event.run), event.job, run_facets=facets, job_facets=job_facets)


def _outer_parent(parent: ParentRun | None) -> ParentRunFacet | None:
    """Only a UUID is a run id of OpenLineage: another one is in headwater_start."""
    run = uuid_of(parent.run) if parent else None
    if parent is None or run is None:
        return None
    return ParentRunFacet(
        run=ParentRunId(run),
        job=ParentJobName(parent.namespace, parent.name),
        root=_root(parent),
    )


def _root(parent: ParentRun) -> Root | None:
    run, namespace, name = uuid_of(parent.root_run), parent.root_namespace, parent.root_name
    if run is None or namespace is None or name is None:
        return None
    return Root(RootRun(run), RootJob(namespace, name))


def _foreign_parent(parent: ParentRun | None) -> dict[str, str] | None:
    if parent is None or uuid_of(parent.run) is not None:
        return None
    return present({"namespace": parent.namespace, "name": parent.name, "run": parent.run})


def _engine(spark: SparkDetails | None, headwater: str | None) -> ProcessingEngineRunFacet | None:
    if spark is None:
        return None
    return ProcessingEngineRunFacet(version=spark.version, name="spark", openlineageAdapterVersion=headwater)


def _tags(event: JobStarted) -> TagsRunFacet | None:
    tags = [TagsRunFacetFields(key, value, source="USER") for key, value in event.tags.items()]
    return TagsRunFacet(tags=tags) if tags else None


def _stream(stream: StreamDetails | None) -> dict[str, str] | None:
    if stream is None:
        return None
    return present(
        {
            "query": str(stream.query),
            "queryRun": None if stream.query_run is None else str(stream.query_run),
            "queryName": stream.query_name,
            "checkpoint": stream.checkpoint,
            "startedAt": None if stream.started_at is None else event_time(stream.started_at),
            "trigger": stream.trigger,
        }
    )


def _start_position(position: StartPosition) -> dict[str, str]:
    return present(
        {
            "namespace": position.dataset.namespace if position.dataset else None,
            "name": position.dataset.name if position.dataset else None,
            "table": str(position.table) if position.table else None,
            "version": version_of(position.snapshot, position.version),
            "reason": position.reason.value,
        }
    )


def status_of_run(event: JobStatusChanged) -> Iterator[RunEvent]:
    """Yield RUNNING, or the terminal event of a run."""
    state = _STATES.get(event.status)
    if event.job is None or event.run is None or state is None:
        return
    error, status = event.error, error_status(event.error)
    status.status, status.inferred = event.status.value, event.inferred or None
    status.exitCode, status.signal = event.exit_code, event.signal
    facets: RunFacets = {
        "errorMessage": error_facet(error, "PYTHON") if error and state is not RunState.COMPLETE else None,
        "headwater_status": status,
    }
    yield run_event(state, event.time, str(event.run), event.job, run_facets=facets)
