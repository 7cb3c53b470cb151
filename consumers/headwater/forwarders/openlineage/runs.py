"""Runs of applications, blocks, sessions and streaming queries: a START, and one terminal event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from openlineage.client.event_v2 import RunEvent, RunState
from openlineage.client.generated.parent_run import Job as ParentJobName
from openlineage.client.generated.parent_run import ParentRunFacet, Root, RootJob, RootRun
from openlineage.client.generated.parent_run import Run as ParentRunId
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.tags_run import TagsRunFacet, TagsRunFacetFields

from headwater.events.jobs import (
    JobStarted,
    JobStatus,
    JobStatusChanged,
    ParentRun,
    SparkDetails,
    StartPosition,
    StreamDetails,
)
from headwater.forwarders.openlineage.datasets import version_of
from headwater.forwarders.openlineage.identifiers import event_time, present, uuid_of
from headwater.forwarders.openlineage.own_facets import HeadwaterStartRunFacet
from headwater.forwarders.openlineage.run_parts import (
    JobFacets,
    RunFacets,
    error_facet,
    error_status,
    job_type_facet,
    parent_facet,
    run_event,
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
