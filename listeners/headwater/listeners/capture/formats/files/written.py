"""What a statement wrote: into what was there, or into the table that it made."""

from __future__ import annotations

from headwater.events import CommitKind, Extent, Output, ShapedSink
from headwater.events.identity import dataset_of_path
from headwater.listeners.capture.formats.files.loads import located
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement


def outcome_of(target: Target, statement: Statement) -> Outcome:
    kind, replaced = _done(target, statement)
    rows, size = _counted(target, statement)
    if kind is None or (rows == 0 and replaced is Extent.NOTHING) or _is_empty(target, statement):
        return Outcome()
    sink = _found(target, statement)
    place = {name: getattr(sink, name) for name in ("dataset", "table", "life", "format", "branch", "main", "opaque")}
    output = Output(**place, commit_kind=kind, replaced=replaced, rows=rows, bytes=size)
    return Outcome((output,), sink=sink)


def _is_empty(target: Target, statement: Statement) -> bool:
    """A sink of files writes down which ones each micro-batch added."""
    stream = statement.stream
    return stream is not None and bool(target.hints.get("stream")) and stream.files == 0


def _done(target: Target, statement: Statement) -> tuple[CommitKind | None, Extent]:
    """What a command that may make its table did: nothing where IF NOT EXISTS found it, and rows are only added where
    `saveAsTable` did. Whether the table was made, Spark's own catalog tells."""
    session = statement.facts.looked_up.get("session", {})
    if target.replaced is Extent.ALL and session.get("dynamic"):
        return target.kind, Extent.PART
    mode = target.hints.get("mode")
    made = was_made(statement)
    wrote = any("command" in hint for hint in statement.facts.hints)
    if mode == "Ignore" and (made is False or (made is None and not wrote)):
        return None, Extent.NOTHING
    if mode != "Append" or made:
        return target.kind, target.replaced
    return (CommitKind.UNKNOWN, Extent.UNKNOWN) if made is None else (CommitKind.APPEND, Extent.NOTHING)


def was_made(statement: Statement) -> bool | None:
    """Whether a table was made in Spark's own catalog; None where nothing tells."""
    told = statement.facts.looked_up.get("session", {})
    events = (*statement.facts.noted, *told.get("heard", ()))
    if any(each.get("event") == "CreateTableEvent" for each in events):
        return True
    return False if told.get("certain") else None


def _found(target: Target, statement: Statement) -> ShapedSink:
    """A table that the statement made is where the write nested in it went, else where its catalog has it."""
    scene: Scene | None = target.hints.get("scene")
    if scene is None:
        return target.sink
    paths = [hint["outputPath"] for hint in statement.facts.hints if "outputPath" in hint]
    if len(paths) == 1:
        return target.sink.model_copy(update={"dataset": dataset_of_path(paths[0], scene.site)})
    return located(target.sink, statement, scene)


def _counted(target: Target, statement: Statement) -> tuple[int | None, int | None]:
    """Rows and bytes of the command itself, or of the write nested in it."""
    for told in (statement.facts.metrics, *(hint.get("metrics", {}) for hint in reversed(statement.facts.hints))):
        if "numOutputRows" in told:
            return told["numOutputRows"], told.get("numOutputBytes")
    return None, None
