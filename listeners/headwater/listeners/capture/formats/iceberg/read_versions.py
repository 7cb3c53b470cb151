"""Which snapshots a statement really read of a table.

The report of a scan says which snapshot it planned, however long ago the table was loaded and whoever committed since.
A question that was answered from metadata alone has no such report; there the hook's note of the scan says it.

What a stream read of an Iceberg table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and how many of the files that it added were read. Whether those are all of them, and which
snapshot came before, the table's metadata tells: the extractor looks it up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from headwater.events import Format, TableName
from headwater.events.jobs import RangeStart, SourceSchema, StartReason
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.iceberg.table_refs import MAIN, SnapshotSelector, dataset_at, generation_of
from headwater.listeners.capture.formats.protocol import RddSource, ReadVersion, SourceRelation, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact, OffsetRange, StatementFacts

_Fields: TypeAlias = Mapping[str, int]
_BEFORE_FIRST: Final = -1
"""Iceberg gives an offset this snapshot while a table has none."""
_UNSEEN_START: Final = "the table doesn't tell any more with which snapshot this stream began"
_PASSED_OVER: Final = "this stream passed over commits after the state that it began with"


@dataclass(frozen=True)
class _Offset:
    snapshot: int
    position: int
    is_state: bool
    """All files of the snapshot's state are read, not only those that it added."""

    @property
    def text(self) -> str:
        return f"{self.snapshot}:{self.position}"


def versions_of_batch(node: PlanNode, offsets: OffsetRange, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    end, start = _offset(offsets.end), _offset(offsets.start)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    known = facts.looked_up.get("iceberg", {}).get("streamed", {})
    since = _last_snapshot_read(start, known)
    reached = _last_snapshot_read(end, known)
    if reached is None:  # the checkpoint says where it goes on, and the table no longer tells what was before
        return (ReadVersion(version=end.text, since=since, changes=True),)
    if end.is_state or since is not None:
        return (ReadVersion(reached.snapshot, reached.version, since, changes=not end.is_state),)
    return (_first_read(node, start, reached, known.get(_line_key(start, end))),)


def _first_read(node: PlanNode, start: _Offset | None, reached: RangeStart, line: _Fields | None) -> ReadVersion:
    """What is read with nothing before it. Additions since a table's first snapshot are its state, if each commit
    only added rows; else they are the changes since before that one."""
    if line is None or not _is_beginning(node, start, line):
        return ReadVersion(reached.snapshot, reached.version, changes=True, why=_UNSEEN_START)
    is_state = start is not None and start.is_state
    if line["adds_later"] and (is_state or line["adds"]):
        return ReadVersion(reached.snapshot, reached.version)
    if is_state:
        return ReadVersion(reached.snapshot, reached.version, changes=True, why=_PASSED_OVER)
    return ReadVersion(reached.snapshot, reached.version, RangeStart(snapshot=_BEFORE_FIRST), changes=True)


def _is_beginning(node: PlanNode, start: _Offset | None, line: _Fields) -> bool:
    """Whether nothing comes before the line. A stream that found an empty table begins with what is there first, unless
    it asks for a time."""
    if start is not None and start.snapshot >= 0:
        return line["first"] == start.snapshot and (start.is_state or "before" not in line)
    asked = stream_options(node).get("stream-from-timestamp", "0")
    return "before" not in line and asked.isdecimal() and int(asked) <= line["at"]


def _line_key(start: _Offset | None, end: _Offset) -> str:
    return f"{_BEFORE_FIRST if start is None else start.snapshot}..{end.snapshot}"


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    start = _offset(offsets.start)
    asked = "stream-from-timestamp" in stream_options(node)
    reason = StartReason.REQUESTED if asked else StartReason.EARLIEST
    return StreamStart(None if start is None or start.snapshot < 0 else start.snapshot, reason=reason)


def _last_snapshot_read(offset: _Offset | None, known: Mapping[str, _Fields]) -> RangeStart | None:
    """The last snapshot of which something was read, and where in it that ended; none before the first."""
    if offset is None or offset.snapshot < 0:
        return None
    fields = known.get(str(offset.snapshot), {})
    if offset.position == 0:
        return None if offset.is_state or "parent" not in fields else RangeStart(snapshot=fields["parent"])
    whole = not offset.is_state and fields.get("added") == offset.position
    return RangeStart(snapshot=offset.snapshot, version=None if whole else offset.text)


def _offset(text: str | None) -> _Offset | None:
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return _Offset(int(fields["snapshot_id"]), int(fields["position"]), bool(fields.get("scan_all_files", False)))
    except (ValueError, KeyError, TypeError):
        return None


_FORMAT: Final = "iceberg"
_STAGED: Final = "SparkStagedScan"
_LOCAL: Final = "SparkLocalScan"
_CHANGES: Final = "SparkChangelogScan"

Read = Mapping[str, Any]


_UNSEEN_BELOW_RDD: Final = "an RDD of this table doesn't show of which snapshot its files are"


def source_of_rdd(fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
    """The table that an RDD reads. Its catalog says whether it is recorded, so one without a plain name isn't."""
    catalog_name, *spaces, name = str(fact["name"]).split(".")
    catalog = context.catalog_called(catalog_name)
    if catalog is None or len(spaces) != 1:
        return ()
    table = TableName(catalog=catalog.name, database=spaces[0], table=name)
    branch = None if fact.get("branch") == MAIN else fact.get("branch")
    source = SourceSchema(
        dataset=dataset_at(fact["location"], catalog, table, context),
        table=table,
        generation=generation_of(fact),
        format=Format.ICEBERG,
        branch=branch,
        main=branch is None,
    )
    return (RddSource(source, ReadVersion(why=_UNSEEN_BELOW_RDD)),)


def versions_of(source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    if source.hints.get("metadata"):
        return (ReadVersion(),)
    asked: SnapshotSelector = source.hints["asked"]
    others = _snapshots_of_other_relations(source, plan)
    scans = [read for read in _scans(facts) if _is_scan_of(read, source, plan, others)]
    found = [version for scan in scans for version in _version_of_scan(scan, asked, source, facts)]
    if not found and not scans:
        found = list(_version_without_scan(source, asked, facts))
    return tuple(dict.fromkeys(found))


def _scans(facts: StatementFacts) -> Iterator[Read]:
    for read in (*facts.reads, *facts.nested_reads):
        if read.get("format") == _FORMAT and read.get("scan") != _STAGED and "metadata" not in read:
            yield read


def _is_scan_of(read: Read, source: SourceRelation, plan: Plan, others: set[int]) -> bool:
    """By the attributes it gives where it gives some of the relation's; else by what was asked of which table."""
    if read["location"] != source.hints["location"]:
        return False
    own = set(read.get("attributes", ())) & set(plan.nodes[source.node].output)
    return bool(own) or _matches_selector(read, source.hints["asked"], others)


def _matches_selector(read: Read, asked: SnapshotSelector, others: set[int]) -> bool:
    if (read["scan"] == _CHANGES or "start" in read) != asked.changes:
        return False
    if read["scan"] in {_LOCAL, _CHANGES}:
        return True
    if (_branch_or_none(read.get("branch")), read.get("tag")) != (asked.branch, asked.tag if "tag" in read else None):
        return False
    pinned = read.get("asked")
    if asked.changes:
        return pinned == asked.snapshot
    if asked.snapshot is not None:  # later versions of Iceberg's keep what was asked for as what it led to only
        return asked.snapshot in {pinned, read.get("pinned")}
    return pinned is None or pinned not in others


def _branch_or_none(branch: str | None) -> str | None:
    return None if branch == MAIN else branch


def _snapshots_of_other_relations(source: SourceRelation, plan: Plan) -> set[int]:
    """Snapshots of the same table that other relations of the plan ask for. A row-level command pins its own."""
    found: set[int] = set()
    for node in plan.nodes:
        table = node.args.get("table")
        fields = table.get("iceberg") if isinstance(table, Mapping) else None
        if fields is not None and fields["location"] == source.hints["location"] and fields.get("snapshot") is not None:
            found.add(fields["snapshot"])
    return found


def _version_of_scan(
    scan: Read, asked: SnapshotSelector, source: SourceRelation, facts: StatementFacts
) -> Iterator[ReadVersion]:
    if asked.changes:
        yield from _version_of_changes(scan, source, facts)
    elif "read" in scan:
        yield ReadVersion(snapshot=scan["read"])
    elif "pinned" in scan:
        yield ReadVersion(snapshot=scan["pinned"])
    elif scan["scan"] == _LOCAL:
        yield from _version_of_local_scan(asked, source, facts)
    elif scan["planned"]:
        yield ReadVersion()


def _version_of_local_scan(
    asked: SnapshotSelector, source: SourceRelation, facts: StatementFacts
) -> Iterator[ReadVersion]:
    """An answer from metadata: the scan is gone, what it planned was noted."""
    if asked.snapshot is not None:
        yield ReadVersion(snapshot=asked.snapshot)
        return
    noted = _noted_scans("scanned", source, facts)
    scanned = {
        read["read"] for read in _scans(facts) if read["location"] == source.hints["location"] and "read" in read
    }
    snapshots = {note["snapshot"] for note in noted}
    rest = snapshots - scanned if len(snapshots) > 1 else snapshots
    if len(rest) == 1:
        yield ReadVersion(snapshot=rest.pop())
    elif rest:
        yield ReadVersion(candidates=tuple(sorted(rest)), why="several snapshots were read, and not which for what")
    elif not facts.looked_up.get(_FORMAT, {}).get("hooked", True):
        yield ReadVersion(why="a question was answered from metadata, and without hooks nobody sees of which snapshot")
    else:
        yield ReadVersion()


def _version_of_changes(scan: Read, source: SourceRelation, facts: StatementFacts) -> Iterator[ReadVersion]:
    """What came between two snapshots. An end that wasn't asked for is the newest when the scan was planned."""
    start, end = scan.get("start"), scan.get("end")
    noted = [n for n in _noted_scans("ranged", source, facts) if end in {None, n["to"]}]
    fitting = [n for n in noted if start is None or n["from"] == start]
    since = None if start is None else RangeStart(snapshot=start)
    ends = {end} if end is not None else {n["to"] for n in fitting}
    if len(ends) == 1:
        yield ReadVersion(snapshot=ends.pop(), since=since, changes=True)
    elif ends:
        yield ReadVersion(
            since=since, changes=True, candidates=tuple(sorted(ends)), why="changes were read to several ends"
        )
    elif not facts.looked_up.get(_FORMAT, {}).get("hooked", True):
        yield ReadVersion(since=since, changes=True, why="changes were read to an end that only a hook sees")


def _version_without_scan(
    source: SourceRelation, asked: SnapshotSelector, facts: StatementFacts
) -> Iterator[ReadVersion]:
    """No leaf of a plan shows it any more: what was noted of its scans was read nevertheless."""
    if asked.changes:
        yield from _version_of_changes({}, source, facts)
        return
    for note in _noted_scans("scanned", source, facts):
        if asked.snapshot in {None, note["snapshot"]}:
            yield ReadVersion(snapshot=note["snapshot"])


def _noted_scans(what: str, source: SourceRelation, facts: StatementFacts) -> Sequence[Read]:
    name = source.hints["name"]
    return [n for n in _version_of_note(facts.hook_facts) if n.get("action") == what and n.get("table") == name]


def _version_of_note(noted: Iterable[Read]) -> Iterator[Read]:
    return (note for note in noted if note.get("hook") == _FORMAT)
