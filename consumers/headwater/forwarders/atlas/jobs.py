"""Jobs in Atlas: processes with what they read and write, their runs, and what each commit read and made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.events.barriers import millis_of
from headwater.events.envelope import Event
from headwater.events.jobs import (
    Committed,
    JobLineage,
    JobStarted,
    JobStatusChanged,
    Output,
    OverwriteScope,
    SinkSchema,
    SourceSchema,
    StatementFailed,
)
from headwater.events.names import JobName
from headwater.forwarders.atlas.changes import EventChanges
from headwater.forwarders.atlas.edges import put_column_lineage
from headwater.forwarders.atlas.entities import AtlasRef, References, WriteRule
from headwater.forwarders.atlas.names import AtlasDataset
from headwater.forwarders.event_facts import application_properties, known_texts, made_version, read_version


def change_started_job(event: JobStarted, changes: EventChanges) -> None:
    if event.job is None:
        return
    job = _put_job(
        event.job, event.parent_job, changes, {"jobType": event.job_type.value, "parameters": _job_parameters(event)}
    )
    if event.run is None:
        return
    stream = event.stream
    told = {"query": stream and stream.query, "checkpoint": stream and stream.checkpoint, "scope": event.scope.value}
    started_by = event.parent and f"{event.parent.namespace}/{event.parent.name}"
    attributes = {
        "startTime": changes.millis,
        "parentRun": None if event.parent_run is None else str(event.parent_run),
        "startedBy": started_by,
        "parameters": known_texts(told),
        **_run_identity(event),
    }
    _put_run(event, changes, attributes, WriteRule.SET, {"job": job})


def change_job_status(event: JobStatusChanged, changes: EventChanges) -> None:
    """The end of a run. One that somebody else found dead has the status that it reports itself, if it does."""
    if event.run is None or not event.status.is_terminal:
        return
    attributes = {
        "endTime": changes.millis,
        "status": event.status.value,
        "isStatusInferred": event.inferred,
        **_run_identity(event),
    }
    _put_run(event, changes, attributes, WriteRule.FILL if event.inferred else WriteRule.SET)


def change_job_lineage(event: JobLineage, changes: EventChanges) -> None:
    if event.job is None:
        return
    inputs = [changes.namer.of_ref(source) for source in event.inputs]
    outputs = [changes.namer.of_ref(output) for output in event.outputs]
    schemas: tuple[SourceSchema | SinkSchema, ...] = (*event.inputs, *event.outputs)
    for told, dataset in zip(schemas, (*inputs, *outputs), strict=True):
        if dataset is not None:
            changes.mention(dataset, told.columns)
    attributes = {} if event.sql is None else {"query": event.sql}
    job = _put_job(event.job, event.parent_job, changes, attributes, inputs=inputs, outputs=outputs)
    put_column_lineage(changes, job, inputs, outputs, event.columns)


def change_commit(event: Committed, changes: EventChanges) -> None:
    """A commit is an execution of its job; a stream has one for each of its runs, which tells of the newest commit."""
    if event.job is None:
        return
    inputs = [changes.namer.of_ref(source) for source in event.inputs]
    outputs = [changes.namer.of_ref(output) for output in event.outputs]
    if event.fingerprint is None:
        for dataset in (*inputs, *outputs):
            if dataset is not None:
                changes.mention(dataset)
        job = _put_job(event.job, event.parent_job, changes, {}, inputs=inputs, outputs=outputs)
    else:
        job = _mention_job(event.job, changes)
    streaming = event.batch_id is not None
    which = (event.barrier_incarnation, event.run if streaming else event.barrier)
    began = millis_of(event.barrier) if streaming else None
    read, made = _versions(event, inputs, outputs)
    opaque = sum(1 for each in (*event.inputs, *event.outputs) if each.opaque is not None)
    attributes = {
        "status": "COMMITTED",
        "barrier": str(event.barrier),
        "batchId": event.batch_id,
        "read": read,
        "made": made,
        "opaque": opaque or None,
        "runId": None if event.run is None else str(event.run),
    }
    name = f"{event.job} {event.barrier}" if began is None else f"{event.job} micro-batches"
    changes.put(changes.namer.execution(event.job, *which), name, attributes, {"job": job})


def change_failed_statement(event: StatementFailed, changes: EventChanges) -> None:
    """A failed statement is an execution of its job, without the tables that it would have written."""
    if event.job is None:
        return
    error = event.error
    attributes = {
        "status": "FAILED",
        "errorType": error.condition or error.type,
        "errorMessage": error.message or None,
        "runId": None if event.run is None else str(event.run),
    }
    job = _mention_job(event.job, changes)
    name = f"{event.job} {error.condition or error.type}"
    changes.put(changes.namer.execution(event.job, event.event_id), name, attributes, {"job": job})


def _put_job(
    name: JobName,
    parent: JobName | None,
    changes: EventChanges,
    attributes: Mapping[str, Any],
    *,
    inputs: Sequence[AtlasDataset | None] = (),
    outputs: Sequence[AtlasDataset | None] = (),
) -> AtlasRef:
    """Add to what a job reads and writes. Its parent is what has it as a step."""
    job = changes.namer.job(name)
    references: dict[str, References | None] = {
        "inputs": _refs(inputs) or None,
        "outputs": _refs(outputs) or None,
        "parent": None if parent is None or parent == name else _mention_job(parent, changes),
    }
    changes.put(job, name.name, attributes, references, rule=WriteRule.ADD)
    return job


def _mention_job(name: JobName, changes: EventChanges) -> AtlasRef:
    job = changes.namer.job(name)
    changes.put_absent(job, name.name)
    return job


def _put_run(
    event: Event,
    changes: EventChanges,
    attributes: Mapping[str, Any],
    rule: WriteRule,
    references: Mapping[str, References] | None = None,
) -> None:
    """Each kind of event has its own attributes of a run, so that their order doesn't matter."""
    ref = changes.namer.run(event.run)
    name = f"{event.job} {event.run}" if event.job else str(event.run)
    changes.put_part(ref, name, attributes, references or {}, guard=None, rule=rule)


def _run_identity(event: Event) -> dict[str, Any]:
    return {"runId": str(event.run), "application": event.application}


def _refs(datasets: Sequence[AtlasDataset | None]) -> tuple[AtlasRef, ...]:
    return tuple(dict.fromkeys(dataset.ref for dataset in datasets if dataset is not None))


def _job_parameters(event: JobStarted) -> dict[str, str]:
    return {**application_properties(event), **known_texts({"headwater": event.headwater_version})}


def _versions(
    event: Committed, inputs: Sequence[AtlasDataset | None], outputs: Sequence[AtlasDataset | None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions read and made, by qualifiedName. What one commit read or made twice stands there twice."""
    read: dict[str, list[str]] = defaultdict(list)
    made: dict[str, list[str]] = defaultdict(list)
    for input_, dataset in zip(event.inputs, inputs, strict=True):
        if dataset is not None:
            read[dataset.ref.qualified_name].append(read_version(input_))
    for output, dataset in zip(event.outputs, outputs, strict=True):
        if dataset is not None:
            made[dataset.ref.qualified_name].append(_output_text(output))
    return _join_texts(read), _join_texts(made)


def _output_text(output: Output) -> str:
    words = [f"{made_version(output)}: {output.commit_kind.value}"]
    if output.replaced is not OverwriteScope.UNKNOWN:
        words.append(f"replaced {output.replaced.value}")
    if output.rows is not None:
        words.append(f"{output.rows} rows")
    return ", ".join(words)


def _join_texts(versions: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: "; ".join(texts) for name, texts in versions.items()}
