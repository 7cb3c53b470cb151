"""What jobs did, in words: runs, commits, failures.

What headwater tells of itself, and what administrators did, in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted, LineageScope
from headwater.events.health import Closed, Gap, Heartbeat
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
    first_line,
    joined,
    labelled,
    listed,
    pairs,
    place_of,
    seconds_of,
    step,
    version,
)

_LINEAGE_SCOPES = {
    LineageScope.SOURCE_TABLES: "table lineage of sources",
    LineageScope.SINK_TABLES: "table lineage of sinks",
    LineageScope.TABLES: "table lineage",
    LineageScope.DATA: "data lineage",
    LineageScope.ALL: "all lineage",
}


def gap(event: Gap) -> str:
    return joined(
        joined(event.reason.value, _describe_gap(event), _source(event), labelled("for listener", event.listener)),
        first_line(event.detail),
        by=": ",
    )


def heartbeat(event: Heartbeat) -> str:
    return joined(
        "alive", labelled("next in", event.interval and f"{event.interval} s"), _describe_drops(event.dropped)
    )


def closed(event: Closed) -> str:
    return joined(
        "all is reported" if event.complete else "what is left in the spool must be shipped",
        _describe_drops(event.dropped),
    )


def lineage_deleted(event: LineageDeleted) -> str:
    job = f"of {event.of_job}{' and its steps' if event.steps else ''}" if event.of_job else ""
    snapshots = labelled("up to", event.up_to_snapshot)
    return joined(
        _LINEAGE_SCOPES.get(event.scope, "lineage"),
        job,
        labelled("run", event.of_run),
        joined(labelled("about", event.dataset), snapshots),
        labelled("in catalog", event.catalog and event.catalog.location),
        f"before {seconds_of(event.before)}",
        _by(event.by),
    )


def catalog_options_declared(event: CatalogOptionsDeclared) -> str:
    kind = event.context.id.type if event.context.id else event.context.factory or event.context.class_name
    location = labelled("at", event.context.id.location) if event.context.id else ""
    lineage = f"table lineage {_on(event.table_lineage)}, data lineage {_on(event.data_lineage)}"
    return joined(
        f"{event.context.name} ({joined(kind, location)}):",
        lineage,
        pairs(event.options) and f"({pairs(event.options)})",
        _by(event.by),
    )


def datasets_unified(event: DatasetsUnified) -> str:
    verb = "is" if len(event.others) == 1 else "are"
    return joined(
        listed(event.others, str), f"{verb} {event.dataset}", event.reason and f"({event.reason})", _by(event.by)
    )


def _describe_gap(event: Gap) -> str:
    family = event.missed_family.value.lower() if event.missed_family else ""
    count = joined("up to", f"{event.missed:,}", family, "events missed") if event.missed is not None else ""
    ranges = (
        ("sequences", event.first_sequence, event.last_sequence),
        ("barriers", event.first_barrier, event.last_barrier),
        ("offsets", event.first_offset, event.last_offset),
        ("from", event.first_time and seconds_of(event.first_time), event.last_time and seconds_of(event.last_time)),
    )
    texts = [f"{word} {step(first, last)}" for word, first, last in ranges if first is not None or last is not None]
    return joined(count, *texts)


def _source(event: Gap) -> str:
    topic = labelled("in", event.topic and joined(event.topic, "" if event.partition is None else str(event.partition)))
    return joined(labelled("of", event.source and place_of(event.source)), topic)


def _describe_drops(counts: Mapping[str, int]) -> str:
    dropped = {where: count for where, count in counts.items() if count}
    return f"(dropped so far: {pairs(dropped)})" if dropped else ""


def _on(switch: bool) -> str:
    return "on" if switch else "off"


def _by(who: str | None) -> str:
    return labelled("by", who)


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
