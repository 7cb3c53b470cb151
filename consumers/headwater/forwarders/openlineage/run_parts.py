"""What all RunEvents have: the run, the job, and the facets that several kinds share."""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated.base import JobFacet, RunFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.parent_run import Job as ParentJobName
from openlineage.client.generated.parent_run import ParentRunFacet
from openlineage.client.generated.parent_run import Run as ParentRunId
from openlineage.client.generated.sql_job import SQLJobFacet

from headwater.events.jobs import ErrorDetails, JobType, parameters_text
from headwater.events.names import JobName
from headwater.forwarders.openlineage.identifiers import PRODUCER_URI, event_time, job_namespace, job_of, stamped
from headwater.forwarders.openlineage.own_facets import HeadwaterStatusRunFacet

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
