"""Which snapshots a statement really read of a table.

The report of a scan says which snapshot it planned, however long ago the table was loaded and whoever committed since.
A question that was answered from metadata alone has no such report; there the hook's note of the scan says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import Since
from headwater.listeners.capture.formats.iceberg.places import MAIN, Asked
from headwater.listeners.capture.formats.protocol import Described, Version
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import Facts

_FORMAT: Final = "iceberg"
_STAGED: Final = "SparkStagedScan"
_LOCAL: Final = "SparkLocalScan"
_CHANGES: Final = "SparkChangelogScan"

Read = Mapping[str, Any]


def versions_of(source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
    if source.hints.get("metadata"):
        return (Version(),)
    asked: Asked = source.hints["asked"]
    others = _asked_elsewhere(source, plan)
    scans = [read for read in _scans(facts) if _is_of(read, source, plan, others)]
    found = [version for scan in scans for version in _version(scan, asked, source, facts)]
    if not found and not scans:
        found = list(_unseen(source, asked, facts))
    return tuple(dict.fromkeys(found))


def _scans(facts: Facts) -> Iterator[Read]:
    for read in (*facts.reads, *facts.nested_reads):
        if read.get("format") == _FORMAT and read.get("scan") != _STAGED and "metadata" not in read:
            yield read


def _is_of(read: Read, source: Described, plan: Plan, others: set[int]) -> bool:
    """By the attributes it gives where it gives some of the relation's; else by what was asked of which table."""
    if read["location"] != source.hints["location"]:
        return False
    own = set(read.get("attributes", ())) & set(plan.nodes[source.node].output)
    return bool(own) or _is_asked(read, source.hints["asked"], others)


def _is_asked(read: Read, asked: Asked, others: set[int]) -> bool:
    if (read["scan"] == _CHANGES or "start" in read) != asked.changes:
        return False
    if read["scan"] in {_LOCAL, _CHANGES}:
        return True
    if (_own(read.get("branch")), read.get("tag")) != (asked.branch, asked.tag if "tag" in read else None):
        return False
    pinned = read.get("asked")
    if asked.snapshot is not None or asked.changes:
        return pinned == asked.snapshot
    return pinned is None or pinned not in others


def _own(branch: str | None) -> str | None:
    return None if branch == MAIN else branch


def _asked_elsewhere(source: Described, plan: Plan) -> set[int]:
    """Snapshots of the same table that other relations of the plan ask for. A row-level command pins its own."""
    found: set[int] = set()
    for node in plan.nodes:
        table = node.args.get("table")
        told = table.get("iceberg") if isinstance(table, Mapping) else None
        if told is not None and told["location"] == source.hints["location"] and told.get("snapshot") is not None:
            found.add(told["snapshot"])
    return found


def _version(scan: Read, asked: Asked, source: Described, facts: Facts) -> Iterator[Version]:
    if asked.changes:
        yield from _range(scan, source, facts)
    elif "read" in scan:
        yield Version(snapshot=scan["read"])
    elif "pinned" in scan:
        yield Version(snapshot=scan["pinned"])
    elif scan["scan"] == _LOCAL:
        yield from _local(asked, source, facts)
    elif scan["planned"]:
        yield Version()


def _local(asked: Asked, source: Described, facts: Facts) -> Iterator[Version]:
    """An answer from metadata: the scan is gone, what it planned was noted."""
    if asked.snapshot is not None:
        yield Version(snapshot=asked.snapshot)
        return
    noted = _noted("scanned", source, facts)
    told = {read["read"] for read in _scans(facts) if read["location"] == source.hints["location"] and "read" in read}
    snapshots = {note["snapshot"] for note in noted}
    rest = snapshots - told if len(snapshots) > 1 else snapshots
    if len(rest) == 1:
        yield Version(snapshot=rest.pop())
    elif rest:
        yield Version(candidates=tuple(sorted(rest)), why="several snapshots were read, and not which for what")
    elif not facts.looked_up.get(_FORMAT, {}).get("hooked", True):
        yield Version(why="a question was answered from metadata, and without hooks nobody sees of which snapshot")
    else:
        yield Version()


def _range(scan: Read, source: Described, facts: Facts) -> Iterator[Version]:
    """What came between two snapshots. An end that wasn't asked for is the newest when the scan was planned."""
    start, end = scan.get("start"), scan.get("end")
    noted = [n for n in _noted("ranged", source, facts) if end in {None, n["to"]}]
    fitting = [n for n in noted if start is None or n["from"] == start]
    since = None if start is None else Since(snapshot=start)
    ends = {end} if end is not None else {n["to"] for n in fitting}
    if len(ends) == 1:
        yield Version(snapshot=ends.pop(), since=since, changes=True)
    elif ends:
        yield Version(
            since=since, changes=True, candidates=tuple(sorted(ends)), why="changes were read to several ends"
        )
    elif not facts.looked_up.get(_FORMAT, {}).get("hooked", True):
        yield Version(since=since, changes=True, why="changes were read to an end that only a hook sees")


def _unseen(source: Described, asked: Asked, facts: Facts) -> Iterator[Version]:
    """No leaf of a plan shows it any more: what was noted of its scans was read nevertheless."""
    if asked.changes:
        yield from _range({}, source, facts)
        return
    for note in _noted("scanned", source, facts):
        if asked.snapshot in {None, note["snapshot"]}:
            yield Version(snapshot=note["snapshot"])


def _noted(what: str, source: Described, facts: Facts) -> Sequence[Read]:
    name = source.hints["name"]
    return [n for n in _of_hook(facts.noted) if n.get("did") == what and n.get("table") == name]


def _of_hook(noted: Iterable[Read]) -> Iterator[Read]:
    return (note for note in noted if note.get("hook") == _FORMAT)
