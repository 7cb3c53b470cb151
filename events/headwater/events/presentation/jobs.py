"""What jobs did, in words: runs, commits, failures."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.events.jobs import (
    Committed,
    DatasetRef,
    Input,
    JobLineage,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    Output,
    RangeStart,
    RunScope,
    StartPosition,
    StatementFailed,
)
from headwater.events.presentation.phrases import (
    describe_error,
    joined,
    labelled,
    listed,
    place_of,
    step,
    version,
)

_SCOPES = {
    RunScope.APPLICATION: "application",
    RunScope.BLOCK: "block",
    RunScope.QUERY: "query",
    RunScope.SESSION: "session",
}


def job_started(event: JobStarted) -> str:
    kind = "" if event.job_type is JobType.UNKNOWN else event.job_type.value.lower()
    spark = labelled("on Spark", event.spark.version) if event.spark else ""
    parent = f"for {event.parent.name} of {event.parent.namespace}" if event.parent else ""
    begins = labelled("from", listed(event.starts_at, _starts_at))
    return joined(kind, _SCOPES.get(event.scope, "run"), labelled("by", event.user), spark, parent, begins)


def job_lineage(event: JobLineage) -> str:
    columns = f"({len(event.columns):,} edges between columns)" if event.columns else ""
    shape = f"shape {event.fingerprint.hex()[:8]}"
    return joined(listed(event.outputs, place_of), labelled("←", listed(event.inputs, place_of)), columns, shape)


def committed(event: Committed) -> str:
    """Each output with what it was made from; what was read for outputs that don't tell stands at the end, once."""
    outputs = [_describe_output(output, event.inputs) for output in event.outputs]
    unsure = any(output.made_from is None for output in event.outputs) or not event.outputs
    read = f"read {_inputs(event.inputs)}" if unsure and event.inputs else ""
    return joined(listed([*outputs, read] if read else outputs, str, by="; "), labelled("batch", event.batch_id))


def statement_failed(event: StatementFailed) -> str:
    intended = joined(listed(event.outputs, place_of), labelled("←", listed(event.inputs, place_of)))
    return joined(joined(intended, describe_error(event.error), by=": "), labelled("batch", event.batch_id))


def job_status_changed(event: JobStatusChanged) -> str:
    how = joined(labelled("signal", event.signal), labelled("exit code", event.exit_code), by=", ")
    inferred = "(found dead)" if event.inferred else ""
    ended = "(how is not known)" if event.status is JobStatus.ENDED else ""
    return joined(joined(event.status.value, how, inferred, ended), describe_error(event.error), by=": ")


def _describe_output(output: Output, inputs: Sequence[Input]) -> str:
    made = version(output, output.snapshot, output.version, output.candidates)
    rows = f"{output.rows:,} rows" if output.rows is not None else ""
    origin = _inputs([inputs[at] for at in output.made_from if 0 <= at < len(inputs)]) if output.made_from else ""
    change = step(output.parent, made or None) if output.parent is not None or made else ""
    return joined(place_of(output), output.commit_kind.value, change, rows, labelled("←", origin))


def _inputs(inputs: Sequence[Input]) -> str:
    return listed(inputs, _input)


def _input(given: Input) -> str:
    read = version(given, given.snapshot, given.version, given.candidates)
    changes = f"{_since(given, given.since)}→{read}" if given.since else read
    return joined(_at(given, changes), labelled("tag", given.tag))


def _since(given: DatasetRef, since: RangeStart) -> str:
    return version(given, since.snapshot, since.version)


def _starts_at(source: StartPosition) -> str:
    begin = version(source, source.snapshot, source.version)
    return joined(_at(source, begin), f"({source.reason.value.lower()})")


def _at(what: DatasetRef, read: str) -> str:
    return f"{place_of(what)}@{read}" if read else place_of(what)
