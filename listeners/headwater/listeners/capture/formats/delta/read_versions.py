"""Which versions were really read: those that were scanned, never what the analysis saw.

What a stream read of a Delta table, by the offsets that its source writes into the checkpoint.

An offset is the next file to be read: version 7 with the lowest index says that all of version 6 was read. While the
table that was there first is being read, files are counted over its whole state. A query that begins anew reads that
state, unless it asks for a version, and then goes on with what is added to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.delta.commits import (
    before_own_commits,
    commits_of,
    is_watched,
    scanned_versions,
    version_bounds,
)
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

_BEFORE_FIRST: Final = frozenset({-1, -100})
"""The index in front of a version's first file, as older and newer sources write it."""
_AFTER_LAST: Final = 1 << 62
"""Larger ones stand behind a version's last file."""

_PASSING_OVER: Final = frozenset(
    {"ignoredeletes", "ignorechanges", "ignorefiledeletion", "skipchangecommits", "readchangefeed", "readchangedata"}
)
"""Without these, a stream ends with an error at a commit that removes rows."""
_UNSEEN_START: Final = (
    "Delta doesn't show at which version this stream began: begin it with a number as startingVersion, or without one"
)


@dataclass(frozen=True)
class _StreamPosition:
    """How far was read: all of this version, or of its files those below an index."""

    version: int
    index: int | None = None
    is_state: bool = False
    """The files are those of the table's whole state at that version."""

    @property
    def text(self) -> str | None:
        return None if self.index is None else f"{self.version}:{self.index}"


def versions_of_batch(node: PlanNode, offsets: OffsetRange) -> tuple[ReadVersion, ...]:
    end = _parse_position(offsets.end)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    start = _parse_position(offsets.start)
    if start is None:
        return (_first_position(node, end),)
    since = RangeStart(snapshot=start.version, version=start.text)
    return (ReadVersion(end.version, end.text, since, changes=not end.is_state),)


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    options = stream_options(node)
    asked = options.get("startingversion", "")
    if asked.isdecimal():
        return StreamStart(snapshot=int(asked), reason=StartReason.REQUESTED)
    if asked == "latest":
        return StreamStart(reason=StartReason.LATEST)
    if "startingtimestamp" in options:
        return StreamStart(reason=StartReason.REQUESTED)
    end = _parse_position(offsets.end)
    return StreamStart(snapshot=end.version if end and end.is_state else None, reason=StartReason.EARLIEST)


def _first_position(node: PlanNode, end: _StreamPosition) -> ReadVersion:
    """What is read first, with nothing before it: a state, or changes from a version on that was asked for."""
    options = stream_options(node)
    asked = options.get("startingversion")
    if asked is None and "startingtimestamp" not in options:
        return ReadVersion(end.version, end.text)
    if asked is None or not asked.isdecimal():
        return ReadVersion(end.version, end.text, changes=True, why=_UNSEEN_START)
    if int(asked) == 0 and _PASSING_OVER.isdisjoint(options):
        return ReadVersion(end.version, end.text)  # each commit only added rows, so all of them are the state
    return ReadVersion(end.version, end.text, RangeStart(snapshot=int(asked) - 1), changes=True)


def _parse_position(offset: str | None) -> _StreamPosition | None:
    if offset is None:
        return None
    try:
        fields = json.loads(offset)
        version, index = int(fields["reservoirVersion"]), int(fields["index"])
        is_state = bool(fields.get("isStartingVersion", False))
    except (ValueError, KeyError, TypeError):
        return None
    if index in _BEFORE_FIRST:
        return _StreamPosition(version - 1) if not is_state else _StreamPosition(version, -1, is_state=True)
    return _StreamPosition(version, None if index > _AFTER_LAST else index, is_state)


_FORMAT: Final = "delta"
_TRANSPARENT: Final = frozenset({"SubqueryAlias", "Project", "View", "Deduplicate"})
_MAX_CANDIDATES: Final = 1_000


def versions_of(source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    path = source.hints["path"]
    if source.hints.get("command"):
        return _versions_of_command(source.hints["command"], path, facts)
    if source.hints.get("target"):
        return _versions_of_target(path, facts)
    leaves = _scanned_leaves(source, plan, facts)
    known = [leaf for leaf in leaves if "version" in leaf or leaf.get("changes")]
    if source.hints.get("changes"):
        return _without_duplicates(_versions_of_changes(leaf, facts) for leaf in known) or (
            ReadVersion(changes=True, why=_unseen_version("change feed")),
        )
    if known:
        counted = scanned_versions(facts, path) if known[0] in facts.nested_reads else []
        return _without_duplicates(ReadVersion(leaf["version"]) for leaf in (*known, *counted))
    return _unscanned_versions(source, plan, facts, leaves)


def _scanned_leaves(source: SourceRelation, plan: Plan, facts: StatementFacts) -> list[Mapping[str, Any]]:
    """Leaves of nested executions come first: a write of Delta's plans its query a second time and reads it there."""
    path, changes = source.hints["path"], bool(source.hints.get("changes"))

    def same(each: Mapping[str, Any]) -> bool:
        return each.get("format") == _FORMAT and each.get("path") == path and bool(each.get("changes")) == changes

    nested = [read for read in facts.nested_reads if same(read)]
    if nested:
        return nested
    own = [read for read in facts.reads if same(read)]
    attributes = set(plan.nodes[source.node].output)
    matching = [read for read in own if attributes.intersection(read.get("attributes", ()))]
    return matching or own


def _unscanned_versions(
    source: SourceRelation, plan: Plan, facts: StatementFacts, leaves: Sequence[Mapping[str, Any]]
) -> tuple[ReadVersion, ...]:
    """Statistics in the log can answer a query. Where it is part of another format's write, Delta prepares no scan, and
    looks for the newest version when the rows are read. Else it wasn't read at all."""
    path = source.hints["path"]
    notes = scanned_versions(facts, path)
    if notes:
        return _without_duplicates(ReadVersion(note["version"]) for note in notes)
    asked = [leaf["asked"] for leaf in leaves if "asked" in leaf]
    if asked:
        return _without_duplicates(map(ReadVersion, asked))
    if _may_be_counted(source.node, plan):
        return _candidates_between(version_bounds(facts, path), "metadata")
    return _candidates_between(version_bounds(facts, path), "table") if leaves else ()


def _may_be_counted(index: int, plan: Plan) -> bool:
    """Whether an aggregate of the whole table stands right above: Delta answers some without a scan."""
    above = {child: node for node in plan.nodes for child in node.inputs}
    node = above.get(index)
    while node is not None and node.name in _TRANSPARENT:
        node = above.get(node.index)
    return node is not None and node.name == "Aggregate" and not node.expressions_of("groupingExpressions")


def _versions_of_target(path: str, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    """What a MERGE, UPDATE, DELETE or OPTIMIZE writes it has read, as its transaction began."""
    read = [commit.read_version for commit in commits_of(facts) if commit.path == path]
    if read:
        return (ReadVersion(read[0]),) if read[0] >= 0 else ()
    if is_watched(facts):
        return ()
    return _candidates_between(version_bounds(facts, path), "table")


def _versions_of_command(name: str, path: str, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    """RESTORE and CLONE say in the log what they were made from."""
    if name == "CloneTableCommand":
        versions = [commit.parameters.get("sourceVersion") for commit in commits_of(facts)]
    else:
        versions = [commit.parameters.get("version") for commit in commits_of(facts) if commit.path == path]
        versions.append(facts.looked_up.get(_FORMAT, {}).get("restored"))
    found = [int(number) for number in versions if number is not None]
    return (ReadVersion(found[0]),) if found else (ReadVersion(why="which version it was made from can't be seen"),)


def _versions_of_changes(fields: Mapping[str, Any], facts: StatementFacts) -> ReadVersion:
    start, end = fields.get("from"), fields.get("to")
    since = RangeStart(snapshot=start - 1) if start else None
    lowest, highest = fields["lowest"], before_own_commits(fields["highest"], fields["path"], facts)
    if end is not None:
        lowest, highest = min(end, lowest), min(end, highest)
    if lowest == highest:
        return ReadVersion(highest, since=since, changes=True)
    found = _candidates_between((lowest, highest), "change feed")[0]
    return ReadVersion(since=since, changes=True, candidates=found.candidates, why=found.why)


def _candidates_between(fields: tuple[int, int] | None, what: str) -> tuple[ReadVersion, ...]:
    """Exact where nobody has committed in between."""
    if fields is None:
        return (ReadVersion(why=_unseen_version(what)),)
    lowest, highest = fields
    if lowest == highest:
        return (ReadVersion(highest),)
    candidates = tuple(range(max(lowest, highest - _MAX_CANDIDATES + 1), highest + 1))
    return (ReadVersion(candidates=candidates, why=_unseen_version(what)),)


def _unseen_version(what: str) -> str:
    return f"Delta doesn't show at which version this {what} was read"


def _without_duplicates(versions: Iterable[ReadVersion]) -> tuple[ReadVersion, ...]:
    return tuple(dict.fromkeys(versions))
