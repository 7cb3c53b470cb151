"""Statements and micro-batches: what committed, what failed, and what may be missing of them.

A commit of a batch statement is a run of its own, under the run that it belongs to. A micro-batch is a RUNNING event of
its query's run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent, RunState
from openlineage.client.generated.base import DatasetFacet
from openlineage.client.generated.lineage import LineageDatasetEntry, LineageDatasetInput, LineageEntry, LineageJobFacet

from headwater.events.health import Gap
from headwater.events.jobs import Committed, DatasetRef, JobType, StatementFailed
from headwater.events.names import JobName
from headwater.forwarders.openlineage.columns import KnownShape
from headwater.forwarders.openlineage.datasets import inputs_of, named, outputs_of, sources_of, table_facets, unnamed
from headwater.forwarders.openlineage.identifiers import DatasetName, commit_run, event_time, failure_run, stamped
from headwater.forwarders.openlineage.own_facets import (
    HeadwaterGapRunFacet,
    HeadwaterStatementRunFacet,
)
from headwater.forwarders.openlineage.runs import (
    JobFacets,
    RunFacets,
    error_facet,
    error_status,
    job_type_facet,
    parent_facet,
    run_event,
    sql_facet,
)


def commit(event: Committed, shape: KnownShape) -> Iterator[RunEvent]:
    """Yield the events of a batch commit's own run, or one of the run of the query that it is a batch of."""
    if event.job is None:
        return
    if event.incarnation is None:
        yield from _batch_commit(event, event.job, shape)
    elif event.run is not None:
        facets: RunFacets = {"headwater_statement": _statement_of_commit(event, shape)}
        yield _with_datasets(event, str(event.run), event.job, facets, shape)


def _batch_commit(event: Committed, job: JobName, shape: KnownShape) -> Iterator[RunEvent]:
    """When the statement started isn't in the event: both have the time of the commit."""
    run = commit_run(job, event.barrier_incarnation, event.barrier)
    parent: RunFacets = {"parent": parent_facet(event.run, event.parent_job)}
    job_facets: JobFacets = {"jobType": job_type_facet(JobType.BATCH)}
    yield run_event(RunState.START, event.time, run, job, run_facets=parent, job_facets=job_facets)
    facets: RunFacets = {**parent, "headwater_statement": _statement_of_commit(event, shape)}
    yield _with_datasets(event, run, job, facets, shape)


def _with_datasets(event: Committed, run: str, job: JobName, run_facets: RunFacets, shape: KnownShape) -> RunEvent:
    job_type = JobType.BATCH if event.incarnation is None else JobType.STREAMING
    job_facets: JobFacets = {
        "jobType": job_type_facet(job_type),
        "sql": sql_facet(shape.sql),
        "lineage": _lineage_of_outputs(event, shape),
    }
    return run_event(
        RunState.COMPLETE if event.incarnation is None else RunState.RUNNING,
        event.time,
        run,
        job,
        run_facets=run_facets,
        job_facets=job_facets,
        inputs=inputs_of(event.inputs, shape),
        outputs=outputs_of(event.outputs, shape),
    )


def _statement_of_commit(event: Committed, shape: KnownShape) -> HeadwaterStatementRunFacet:
    return HeadwaterStatementRunFacet(
        event=str(event.event_id),
        application=event.application or None,
        statement=_text(event.statement),
        user=event.user,
        operation=event.operation,
        barrier=str(event.barrier),
        incarnation=str(event.barrier_incarnation),
        batchId=_text(event.batch_id),
        fingerprint=None if event.fingerprint is None else event.fingerprint.hex(),
        unnamedInputs=unnamed(event.inputs, shape.catalogs),
        unnamedOutputs=unnamed(event.outputs, shape.catalogs),
    )


def _lineage_of_outputs(event: Committed, shape: KnownShape) -> LineageJobFacet | None:
    """Without it a run says that each output was made from every input. It is left out where that is so."""
    names = [shape.catalogs.name_of(read.dataset, read.table) for read in event.inputs]
    sources = {
        output: {name for index in indexes if (name := names[index])}
        for output, indexes in sources_of(event.outputs, shape.catalogs).items()
    }
    everything = {name for name in names if name}
    if all(inputs == everything for inputs in sources.values()):
        return None
    entries: list[LineageEntry] = [_lineage_entry(output, inputs) for output, inputs in sources.items()]
    return LineageJobFacet(entries=entries)


def _lineage_entry(output: DatasetName, inputs: set[DatasetName]) -> LineageDatasetEntry:
    return LineageDatasetEntry(
        *output, type="DATASET", inputs=[LineageDatasetInput(*name, type="DATASET") for name in sorted(inputs)]
    )


def failed_statement(event: StatementFailed, shape: KnownShape) -> Iterator[RunEvent]:
    """Yield START and FAIL of the run of its own that a failed statement is."""
    if event.job is None:
        return
    run = failure_run(event.time, event.event_id)
    is_batch = event.incarnation is None
    start: RunFacets = {"parent": parent_facet(event.run, event.job if _is_of_its_job(event) else event.parent_job)}
    job_facets: JobFacets = {"jobType": job_type_facet(JobType.BATCH if is_batch else JobType.STREAMING)}
    yield run_event(RunState.START, event.time, run, event.job, run_facets=start, job_facets=job_facets)
    facets: RunFacets = {
        **start,
        "errorMessage": error_facet(event.error, "JAVA"),
        "headwater_status": error_status(event.error),
        "headwater_statement": _statement_of_failure(event, shape),
    }
    yield run_event(
        RunState.FAIL,
        event.time,
        run,
        event.job,
        run_facets=facets,
        job_facets={**job_facets, "sql": sql_facet(event.sql)},
        inputs=[InputDataset(*name, facets=facets) for name, facets in _intended_datasets(event.inputs, shape)],
        outputs=[OutputDataset(*name, facets=facets) for name, facets in _intended_datasets(event.outputs, shape)],
    )


def _is_of_its_job(event: StatementFailed) -> bool:
    """Whether the event's run is one of the event's own job: a query's, or a session's.

    What a client asked for and Spark never began has no job but its session's.
    """
    is_unbegun = event.statement is None and event.operation is not None
    return event.incarnation is not None or is_unbegun


def _intended_datasets(
    refs: Sequence[DatasetRef], shape: KnownShape
) -> Iterator[tuple[DatasetName, dict[str, DatasetFacet]]]:
    """What would have been read or written: no version of it, because there is none."""
    for name, group in named(refs, shape.catalogs).items():
        yield name, stamped(table_facets(group[0], shape.catalogs))


def _statement_of_failure(event: StatementFailed, shape: KnownShape) -> HeadwaterStatementRunFacet:
    return HeadwaterStatementRunFacet(
        event=str(event.event_id),
        application=event.application or None,
        statement=_text(event.statement),
        user=event.user,
        operation=event.operation,
        incarnation=None if event.incarnation is None else str(event.incarnation),
        batchId=_text(event.batch_id),
        unnamedInputs=unnamed(event.inputs, shape.catalogs),
        unnamedOutputs=unnamed(event.outputs, shape.catalogs),
    )


def gap_in_run(event: Gap) -> Iterator[RunEvent]:
    """Yield an OTHER event that says what may be missing: of the commit, where it is about one, else of the run."""
    run = _run_of_gap(event)
    if event.job is None or run is None:
        return
    source = event.source.dataset if event.source else None
    facet = HeadwaterGapRunFacet(
        event=str(event.event_id),
        reason=event.reason.value,
        detail=event.detail or None,
        missed=_text(event.missed),
        firstTime=event_time(event.first_time) if event.first_time else None,
        lastTime=event_time(event.last_time) if event.last_time else None,
        firstBarrier=_text(event.first_barrier),
        lastBarrier=_text(event.last_barrier),
        dataset={"namespace": source.namespace, "name": source.name} if source else None,
    )
    yield run_event(RunState.OTHER, event.time, run, event.job, run_facets={"headwater_gap": facet})


def _run_of_gap(event: Gap) -> str | None:
    """A gap about one commit of a batch belongs to the commit's own run."""
    is_of_commit = event.first_barrier is not None and event.first_barrier == event.last_barrier
    if event.job is not None and event.first_barrier is not None and is_of_commit and event.incarnation is None:
        return commit_run(event.job, event.producer, event.first_barrier)
    return None if event.run is None else str(event.run)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
