"""Data flows, data jobs and their runs in DataHub, from what applications, steps and commits did.

An application is a data flow, each of its steps a data job, and each run, commit and failed statement an instance of
one of them. Lineage is only an edge of data jobs, to the tables that they read and write: with an edge from table to
table beside it, DataHub's graph would show each step twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from datahub.emitter.mce_builder import datahub_guid, make_schema_field_urn
from datahub.metadata.schema_classes import (
    AuditStampClass,
    AzkabanJobTypeClass,
    DataFlowInfoClass,
    DataJobInfoClass,
    DataProcessInstanceInputClass,
    DataProcessInstanceOutputClass,
    DataProcessInstancePropertiesClass,
    DataProcessInstanceRelationshipsClass,
    DataProcessInstanceRunEventClass,
    DataProcessInstanceRunResultClass,
    DataProcessRunStatusClass,
    DataProcessTypeClass,
    EdgeClass,
    RunResultTypeClass,
)
from datahub.specific.datajob import DataJobPatchBuilder

from headwater.events.barriers import millis_of
from headwater.events.envelope import Event
from headwater.events.jobs import (
    CommitKind,
    Committed,
    JobLineage,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    Output,
    SinkSchema,
    SourceSchema,
    StatementFailed,
)
from headwater.events.names import JobName
from headwater.events.scalars import Format
from headwater.forwarders.datahub.datasets import column_edge, dataset_schema
from headwater.forwarders.datahub.fields import SchemaFields
from headwater.forwarders.datahub.names import DataHubDataset, DataHubNamer, flow_urn, job_urn, process_urn
from headwater.forwarders.datahub.proposals import EventProposals
from headwater.forwarders.event_facts import application_properties, known_texts, made_version, read_version

NATIVE_TYPE: Final = "headwater"
_RESULTS: Final = {
    JobStatus.FINISHED: RunResultTypeClass.SUCCESS,
    JobStatus.FAILED: RunResultTypeClass.FAILURE,
    JobStatus.KILLED: RunResultTypeClass.FAILURE,
}
"""ENDED is left out: a run whose exit nobody saw has no result."""
_OPERATION_TYPES: Final = {
    CommitKind.APPEND: "INSERT",
    CommitKind.UPDATE: "UPDATE",
    CommitKind.DELETE: "DELETE",
    CommitKind.CREATE: "CREATE",
    CommitKind.ALTER: "ALTER",
    CommitKind.UNKNOWN: "UNKNOWN",
}
"""DataHub's words for kinds of commits. The others are custom ones, by their own name."""


def propose_job_started(event: JobStarted, namer: DataHubNamer, proposals: EventProposals) -> None:
    """A run of an application is an instance of its flow, any other run one of its job."""
    if event.job is None:
        return
    if event.parent_job is None:
        template = flow_urn(namer.options, event.job)
        properties = {**application_properties(event), **_run_properties(event)}
        proposals.upsert(template, DataFlowInfoClass(name=event.job.name, customProperties=properties))
    else:
        template = _propose_job(event.job, event.parent_job, namer, proposals)
        properties = _run_properties(event)
    if event.run is None:
        return
    parent = process_urn(str(event.parent_run)) if event.parent_run else None
    streaming = event.job_type is JobType.STREAMING
    run = process_urn(str(event.run))
    proposals.upsert(
        run,
        DataProcessInstancePropertiesClass(
            name=f"{event.job} {event.run}",
            created=proposals.stamp,
            type=DataProcessTypeClass.STREAMING if streaming else None,
            customProperties=properties,
        ),
        DataProcessInstanceRelationshipsClass(upstreamInstances=[], parentTemplate=template, parentInstance=parent),
    )
    _propose_run_event(run, proposals, DataProcessRunStatusClass.STARTED)


def propose_job_status(event: JobStatusChanged, namer: DataHubNamer, proposals: EventProposals) -> None:  # noqa: ARG001
    """The end of a run. That it is running was told when it started."""
    if event.run is None or not event.status.is_terminal:
        return
    type_ = _RESULTS.get(event.status)
    native = f"{event.status.value} (inferred)" if event.inferred else event.status.value
    result = DataProcessInstanceRunResultClass(type=type_, nativeResultType=native) if type_ else None
    _propose_run_event(process_urn(str(event.run)), proposals, DataProcessRunStatusClass.COMPLETE, result)


def propose_job_lineage(event: JobLineage, namer: DataHubNamer, proposals: EventProposals) -> None:
    if event.job is None:
        return
    inputs = [_with_fields(each, namer) for each in event.inputs]
    outputs = [_with_fields(output, namer) for output in event.outputs]
    job = _propose_job(event.job, event.parent_job, namer, proposals)
    for each in (*inputs, *outputs):
        if each is not None:
            _propose_schema(each, proposals)
    _propose_edges(job, [_dataset_of(each) for each in inputs], [_dataset_of(output) for output in outputs], proposals)
    patch = proposals.patch(DataJobPatchBuilder, job)
    for edge in event.columns:
        source = inputs[edge.input] if edge.input < len(inputs) else None
        sink = outputs[edge.output] if edge.output < len(outputs) else None
        if source and sink and source.is_table and sink.is_table and edge.target is not None:
            upstream = make_schema_field_urn(source.dataset.urn, source.fields.path(edge.source))
            downstream = make_schema_field_urn(sink.dataset.urn, sink.fields.path(edge.target))
            patch.add_fine_grained_lineage(column_edge(upstream, downstream, edge))


def propose_commit(event: Committed, namer: DataHubNamer, proposals: EventProposals) -> None:
    """A commit is an instance of its job; a stream has one for each of its runs, which tells of the newest commit."""
    if event.job is None:
        return
    inputs = [namer.of_ref(source) for source in event.inputs]
    outputs = [namer.of_ref(each) for each in event.outputs]
    properties = _commit_properties(event, inputs, outputs)
    instance = _propose_commit_instance(
        event, job_urn(namer.options, event.job, event.parent_job), properties, proposals
    )
    proposals.upsert(
        instance,
        DataProcessInstanceInputClass(inputs=_urns(inputs)) if any(inputs) else None,
        DataProcessInstanceOutputClass(outputs=_urns(outputs)) if any(outputs) else None,
    )
    if event.fingerprint is None:
        _propose_edges(_propose_job(event.job, event.parent_job, namer, proposals), inputs, outputs, proposals)
    read = {key: text for key, text in properties.items() if key.startswith("read ")}
    for number, (output, dataset) in enumerate(zip(event.outputs, outputs, strict=True)):
        if dataset is not None:
            type_ = _OPERATION_TYPES.get(output.commit_kind, output.commit_kind.value)
            told = {**read, **_output_properties(event, output)}
            proposals.operation(dataset.urn, type_, told, number=number, rows=output.rows)


def propose_failure(event: StatementFailed, namer: DataHubNamer, proposals: EventProposals) -> None:
    """A failed statement is a failed instance of its job, without the tables that it would have written."""
    if event.job is None:
        return
    job = _propose_job(event.job, event.parent_job, namer, proposals)
    failure = process_urn(datahub_guid({"statement": str(event.event_id)}))
    told = {"error": event.error.type, "message": event.error.message, "condition": event.error.condition}
    proposals.upsert(
        failure,
        DataProcessInstancePropertiesClass(
            name=f"{event.job} {event.error.condition or event.error.type}",
            created=proposals.stamp,
            customProperties={key: str(value) for key, value in told.items() if value},
        ),
        _child_of(event, job),
    )
    native = event.error.condition or event.error.type
    result = DataProcessInstanceRunResultClass(type=RunResultTypeClass.FAILURE, nativeResultType=native)
    _propose_run_event(failure, proposals, DataProcessRunStatusClass.COMPLETE, result)


class _DatasetFields:
    """A dataset of a job's lineage, with its schema and the paths of its columns.

    A topic has no schema here: its columns are those of Spark's connector.
    """

    def __init__(self, dataset: DataHubDataset, told: SourceSchema | SinkSchema) -> None:
        self.dataset: Final = dataset
        self.is_table: Final = dataset.platform != "kafka"
        self.has_catalog: Final = told.table is not None or told.format is Format.JDBC
        self.schema, fields = dataset_schema(dataset, told.columns, told.primary_key, told.partitioning)
        self.fields: Final[SchemaFields] = fields


def _with_fields(told: SourceSchema | SinkSchema, namer: DataHubNamer) -> _DatasetFields | None:
    dataset = namer.of_ref(told)
    return None if dataset is None else _DatasetFields(dataset, told)


def _propose_schema(described: _DatasetFields, proposals: EventProposals) -> None:
    """Propose a schema as a job saw it. What DDL or a source of DataHub's told is better: a job tells what it saw again
    and again, and in a replay an old one comes after a newer change."""
    if described.is_table and described.schema.fields:
        propose = proposals.create if described.has_catalog else proposals.upsert
        propose(described.dataset.urn, described.schema)


def _dataset_of(described: _DatasetFields | None) -> DataHubDataset | None:
    return None if described is None else described.dataset


def _propose_job(job: JobName, parent: JobName | None, namer: DataHubNamer, proposals: EventProposals) -> str:
    urn = job_urn(namer.options, job, parent)
    told = {"job": job, "parent": parent}
    info = DataJobInfoClass(
        name=job.name,
        type=AzkabanJobTypeClass.COMMAND,
        flowUrn=flow_urn(namer.options, parent or job),
        customProperties={key: str(value) for key, value in told.items() if value is not None},
    )
    proposals.upsert(urn, info)
    return urn


def _propose_edges(
    job: str,
    inputs: Sequence[DataHubDataset | None],
    outputs: Sequence[DataHubDataset | None],
    proposals: EventProposals,
) -> None:
    """Add a job's edges to those that it has. The event's time is when each was last seen."""
    patch = proposals.patch(DataJobPatchBuilder, job)
    for urn in _urns(inputs):
        patch.add_input_dataset(EdgeClass(destinationUrn=urn, lastModified=proposals.stamp))
    for urn in _urns(outputs):
        patch.add_output_dataset(EdgeClass(destinationUrn=urn, lastModified=proposals.stamp))


def _propose_commit_instance(event: Committed, job: str, properties: dict[str, str], proposals: EventProposals) -> str:
    streaming = event.batch_id is not None
    identity = {"job": str(event.job), "incarnation": str(event.barrier_incarnation)}
    which = {"run": str(event.run)} if streaming else {"barrier": str(event.barrier)}
    instance = process_urn(datahub_guid({**identity, **which}))
    began = millis_of(event.barrier) if streaming else proposals.millis
    proposals.upsert(
        instance,
        DataProcessInstancePropertiesClass(
            name=f"{event.job} micro-batches" if streaming else f"{event.job} {event.barrier}",
            created=AuditStampClass(time=began, actor=proposals.actor),
            type=DataProcessTypeClass.STREAMING if streaming else None,
            customProperties=properties,
        ),
        _child_of(event, job),
    )
    result = DataProcessInstanceRunResultClass(type=RunResultTypeClass.SUCCESS, nativeResultType=NATIVE_TYPE)
    _propose_run_event(instance, proposals, DataProcessRunStatusClass.COMPLETE, result)
    return instance


def _child_of(event: Event, job: str) -> DataProcessInstanceRelationshipsClass:
    run = process_urn(str(event.run)) if event.run else None
    return DataProcessInstanceRelationshipsClass(upstreamInstances=[], parentTemplate=job, parentInstance=run)


def _propose_run_event(
    urn: str, proposals: EventProposals, status: str, result: DataProcessInstanceRunResultClass | None = None
) -> None:
    proposals.upsert(
        urn,
        DataProcessInstanceRunEventClass(
            timestampMillis=proposals.millis, status=status, result=result, messageId=str(proposals.event.event_id)
        ),
    )


def _urns(datasets: Sequence[DataHubDataset | None]) -> list[str]:
    return list(dict.fromkeys(dataset.urn for dataset in datasets if dataset is not None))


def _run_properties(event: JobStarted) -> dict[str, str]:
    stream = event.stream
    told = {
        "application": event.application,
        "scope": event.scope.value,
        "headwater": event.headwater_version,
        "started_by": event.parent and f"{event.parent.namespace}/{event.parent.name}",
        "query": stream and stream.query,
        "checkpoint": stream and stream.checkpoint,
    }
    return known_texts(told)


def _commit_properties(
    event: Committed, inputs: Sequence[DataHubDataset | None], outputs: Sequence[DataHubDataset | None]
) -> dict[str, str]:
    """Return the snapshots that were read and made, by the names of the tables. What one commit read or made twice
    stands there twice."""
    told: dict[str, list[str]] = defaultdict(list)
    for read, source in zip(event.inputs, inputs, strict=True):
        if source is not None:
            told[f"read {source.name}"].append(read_version(read))
    for made, sink in zip(event.outputs, outputs, strict=True):
        if sink is not None:
            told[f"made {sink.name}"].append(made_version(made))
    opaque = sum(1 for each in (*event.inputs, *event.outputs) if each.opaque is not None)
    known = {"barrier": event.barrier, "batch": event.batch_id, "statement": event.statement, "opaque": opaque or None}
    return {**known_texts(known), **{key: "; ".join(versions) for key, versions in told.items()}}


def _output_properties(event: Committed, output: Output) -> dict[str, str]:
    told = {
        "job": event.job,
        "barrier": event.barrier,
        "made": made_version(output),
        "kind": output.commit_kind.value,
        "replaced": output.replaced.value,
        "branch": output.branch,
        "bytes": output.bytes,
        "generation": output.generation,
    }
    return known_texts(told)
