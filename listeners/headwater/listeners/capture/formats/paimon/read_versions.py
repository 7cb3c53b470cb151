"""Which snapshot was read: each file that a task got says it. Where no file was left to read, time may tell.

What a stream read of a Paimon table, by the offsets that its source writes into the checkpoint.

An offset is a snapshot, and the last of its splits that was read. A batch ends within a snapshot only where the query
limits how much one may take.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.paimon.tables import location_key
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

_LIMITS: Final = "read.stream."
_START_OPTIONS: Final = ("scan.snapshot-id", "scan.timestamp", "scan.timestamp-millis", "scan.tag-name", "scan.version")


@dataclass(frozen=True)
class _StreamOffset:
    snapshot: int
    index: int
    is_state: bool
    """The snapshot's whole state is read, not what it added."""


def versions_of_batch(node: PlanNode, offsets: OffsetRange) -> tuple[ReadVersion, ...]:
    end, start = _parse_offset(offsets.end), _parse_offset(offsets.start)
    if end is None:
        return (ReadVersion(why="the offset of this stream can't be read"),)
    limited = any(key.startswith(_LIMITS) for key in stream_options(node))
    since = None if start is None else _range_start(start, end, limited=limited)
    version = f"{end.snapshot}:{end.index}" if limited else None
    return (ReadVersion(end.snapshot, version, since, changes=not end.is_state),)


def _range_start(start: _StreamOffset, end: _StreamOffset, *, limited: bool) -> RangeStart | None:
    """Before a snapshot's first split nothing of it was read, and snapshots are numbered one after the other. Behind
    snapshot 0 are all changes that there are."""
    if start.index >= 0:
        return RangeStart(snapshot=start.snapshot, version=f"{start.snapshot}:{start.index}" if limited else None)
    return None if end.is_state or start.snapshot < 1 else RangeStart(snapshot=start.snapshot - 1)


def start_of(node: PlanNode, offsets: OffsetRange) -> StreamStart:
    options = stream_options(node)
    end = _parse_offset(offsets.end)
    snapshot = end.snapshot if end is not None and end.is_state else None
    if any(key in options for key in _START_OPTIONS):
        return StreamStart(snapshot, reason=StartReason.REQUESTED)
    latest = options.get("scan.mode") == "latest"
    return StreamStart(snapshot, reason=StartReason.LATEST if latest else StartReason.EARLIEST)


def _parse_offset(text: str | None) -> _StreamOffset | None:
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return _StreamOffset(int(fields["snapshotId"]), int(fields["index"]), bool(fields.get("scanSnapshot", False)))
    except (ValueError, KeyError, TypeError):
        return None


_CLOCK_SKEW_MILLIS: Final = 600_000
"""In milliseconds: by so much another host's clock may be wrong."""
_NO_FILE_READ: Final = "no file of the table had to be read, so its snapshot can't be known"

_SCAN_NOT_SEEN: Final = "the scan of the table isn't in any plan that could be read"


def versions_of(source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    if not source.versioned:
        return (ReadVersion(),)
    found = [_version_of(fact, source, facts) for fact in _read_facts(facts) if _is_of(fact, source, plan)]
    if not found and _is_scan_hidden(facts):
        return (ReadVersion(why=_SCAN_NOT_SEEN),)
    return tuple(dict.fromkeys(version for versions in found for version in versions))


def _is_scan_hidden(facts: StatementFacts) -> bool:
    """Where rows were given to buckets as they came, the query is no part of any plan: a scan without files leaves no
    trace. And a plan may not have been readable."""
    seen = facts.looked_up.get("paimon", {})
    return "behind" in seen or "unreadable" in seen or any(nested.why is not None for nested in facts.nested_facts)


def _read_facts(facts: StatementFacts) -> Iterator[Mapping[str, Any]]:
    for fact in (*facts.reads, *facts.nested_reads):
        if fact.get("format") == "paimon":
            yield fact
    yield from facts.looked_up.get("paimon", {}).get("reads", ())


def _is_of(fact: Mapping[str, Any], source: SourceRelation, plan: Plan) -> bool:
    """One table may be read at several versions: what was asked for tells which read is which."""
    if location_key(fact) != source.hints["place"]:
        return False
    if set(source.hints["asked"].values()) != set(fact.get("asked", {}).values()):
        return False
    attributes = set(fact.get("attributes", ()))
    return not attributes or not attributes.isdisjoint(plan.nodes[source.node].output)


def _version_of(fact: Mapping[str, Any], source: SourceRelation, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    asked = fact.get("asked", {})
    if "fallback" in fact:
        return (ReadVersion(why=f"files of branch {fact['fallback']} may have been read with the table's own"),)
    snapshots = fact["snapshots"] or _version_without_files(fact, asked)
    if "incremental-between" in asked or "incremental-between-timestamp" in asked:
        return _version_of_changes(snapshots, asked)
    if snapshots:
        return tuple(ReadVersion(snapshot) for snapshot in snapshots)
    if asked or "newest" not in fact:
        return (ReadVersion(why=_NO_FILE_READ),)
    return (_version_by_time(fact, facts),)


def _version_without_files(fact: Mapping[str, Any], asked: Mapping[str, str]) -> list[int]:
    """A number that was asked for is what was read, even if there was nothing in it."""
    number = asked.get("scan.snapshot-id", "")
    end = asked.get("incremental-between", "").rpartition(",")[2].strip()
    return [int(text) for text in (number, end) if text.isdigit()]


def _version_of_changes(snapshots: list[int], asked: Mapping[str, str]) -> tuple[ReadVersion, ...]:
    """Between tags or times, the beginning stands nowhere."""
    start = asked.get("incremental-between", "").partition(",")[0].strip()
    since = RangeStart(snapshot=int(start)) if start.isdigit() else None
    if not snapshots:
        return (ReadVersion(since=since, changes=True, why=_NO_FILE_READ),)
    return tuple(ReadVersion(snapshot, since=since, changes=True) for snapshot in snapshots)


def _version_by_time(fact: Mapping[str, Any], facts: StatementFacts) -> ReadVersion:
    """The newest snapshot is the one, if it was that before the scan was planned and nothing changed since."""
    planned = facts.looked_up.get("paimon", {}).get("planned")
    own = _own_snapshots(fact, facts)
    newest = [commit for commit in fact["newest"] if commit["snapshot"] not in own]
    if not newest:
        return ReadVersion()  # a table without a snapshot, or whose first one this statement made
    unchanged = len(newest) < len(fact["newest"]) or fact["changed"] <= (planned or 0)
    if planned and unchanged and _is_older(newest[0], planned):
        return ReadVersion(newest[0]["snapshot"])
    return ReadVersion(candidates=tuple(sorted(_candidates_since(newest, planned or 0))), why=_NO_FILE_READ)


def _is_older(snapshot: Mapping[str, Any], planned: int) -> bool:
    return bool(snapshot["time"] + (0 if snapshot["own"] else _CLOCK_SKEW_MILLIS) < planned)


def _candidates_since(newest: list[Mapping[str, Any]], planned: int) -> Iterator[int]:
    """Down to the first that was there for sure."""
    for commit in newest:
        yield commit["snapshot"]
        if _is_older(commit, planned):
            return


def _own_snapshots(fact: Mapping[str, Any], facts: StatementFacts) -> set[int]:
    """What this statement itself committed to the table."""
    writers = facts.looked_up.get("paimon", {}).get("writers", ())
    users = {writer["user"] for writer in writers if location_key(writer) == location_key(fact)}
    noted = {note["snapshot"] for note in facts.hook_facts if note.get("user") in users}
    return noted | {commit["snapshot"] for w in writers if w["user"] in users for commit in w.get("snapshots", ())}
