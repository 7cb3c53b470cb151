"""What a statement wrote: into what was there, or into the table that it made."""

from __future__ import annotations

from headwater.events.identity import dataset_of_path
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.files.loads import with_location
from headwater.listeners.capture.formats.protocol import WriteResult, WriteTarget
from headwater.listeners.capture.statements import Statement


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    kind, replaced = _result_of_create(target, statement)
    rows, size = _count_rows(target, statement)
    if kind is None or _is_empty(target, statement):
        return WriteResult()
    sink = _locate_sink(target, statement)
    if rows == 0 and replaced is OverwriteScope.NOTHING:
        return WriteResult(sink=sink, has_no_rows=True)
    output = target.output(sink, commit_kind=kind, replaced=replaced, rows=rows, bytes=size)
    return WriteResult((output,), sink=sink)


def _is_empty(target: WriteTarget, statement: Statement) -> bool:
    """A sink of files writes down which ones each micro-batch added."""
    stream = statement.stream
    return stream is not None and bool(target.hints.get("stream")) and stream.files == 0


def _result_of_create(target: WriteTarget, statement: Statement) -> tuple[CommitKind | None, OverwriteScope]:
    """What a command that may make its table did: nothing where IF NOT EXISTS found it, and rows are only added where
    `saveAsTable` did. Whether the table was made, Spark's own catalog tells."""
    session = statement.facts.looked_up.get("session", {})
    if target.replaced is OverwriteScope.ALL and session.get("dynamic"):
        return target.kind, OverwriteScope.PART
    mode = target.hints.get("mode")
    made = was_created(statement)
    wrote = any(nested.command is not None for nested in statement.facts.nested_facts)
    if mode == "Ignore" and (made is False or (made is None and not wrote)):
        return None, OverwriteScope.NOTHING
    if mode != "Append" or made:
        return target.kind, target.replaced
    return (CommitKind.UNKNOWN, OverwriteScope.UNKNOWN) if made is None else (CommitKind.APPEND, OverwriteScope.NOTHING)


def was_created(statement: Statement) -> bool | None:
    """Whether a table was made in Spark's own catalog; None where nothing tells."""
    fields = statement.facts.looked_up.get("session", {})
    events = (*statement.facts.hook_facts, *fields.get("catalogEvents", ()))
    if any(event.get("event") == "CreateTableEvent" for event in events):
        return True
    return False if fields.get("certain") else None


def _locate_sink(target: WriteTarget, statement: Statement) -> SinkSchema:
    """A table that the statement made is where the write nested in it went, else where its catalog has it."""
    context: CaptureContext | None = target.hints.get("scene")
    if context is None:
        return target.sink
    paths = [nested.output_path for nested in statement.facts.nested_facts if nested.output_path is not None]
    if len(paths) == 1:
        return target.sink.model_copy(update={"dataset": dataset_of_path(paths[0], context.environment)})
    return with_location(target.sink, statement, context)


def _count_rows(target: WriteTarget, statement: Statement) -> tuple[int | None, int | None]:
    """Rows and bytes of the command itself, or of the write nested in it."""
    for fields in (
        statement.facts.metrics,
        *(nested.metrics for nested in reversed(statement.facts.nested_facts)),
    ):
        if "numOutputRows" in fields:
            return fields["numOutputRows"], fields.get("numOutputBytes")
    return None, None
