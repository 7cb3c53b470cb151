"""Which snapshot was read: each file that a task got says it. Where no file was left to read, time may tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events import Since
from headwater.listeners.capture.formats.paimon.tables import place_of
from headwater.listeners.capture.formats.protocol import Described, Version
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import Facts

_SKEW: Final = 600_000
"""In milliseconds: by so much another host's clock may be wrong."""
_NOTHING: Final = "no file of the table had to be read, so its snapshot can't be known"

_UNSEEN: Final = "the scan of the table isn't in any plan that could be read"


def reads(source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
    if not source.versioned:
        return (Version(),)
    found = [_version(fact, source, facts) for fact in _told(facts) if _is_of(fact, source, plan)]
    if not found and _is_blind(facts):
        return (Version(why=_UNSEEN),)
    return tuple(dict.fromkeys(version for versions in found for version in versions))


def _is_blind(facts: Facts) -> bool:
    """Where rows were given to buckets as they came, the query is no part of any plan: a scan without files leaves no
    trace. And a plan may not have been readable."""
    seen = facts.looked_up.get("paimon", {})
    return "behind" in seen or "unreadable" in seen or any("unreadable" in hint for hint in facts.hints)


def _told(facts: Facts) -> Iterator[Mapping[str, Any]]:
    for fact in (*facts.reads, *facts.nested_reads):
        if fact.get("format") == "paimon":
            yield fact
    yield from facts.looked_up.get("paimon", {}).get("reads", ())


def _is_of(fact: Mapping[str, Any], source: Described, plan: Plan) -> bool:
    """One table may be read at several versions: what was asked for tells which read is which."""
    if place_of(fact) != source.hints["place"]:
        return False
    if set(source.hints["asked"].values()) != set(fact.get("asked", {}).values()):
        return False
    attributes = set(fact.get("attributes", ()))
    return not attributes or not attributes.isdisjoint(plan.nodes[source.node].output)


def _version(fact: Mapping[str, Any], source: Described, facts: Facts) -> tuple[Version, ...]:
    asked = fact.get("asked", {})
    if "fallback" in fact:
        return (Version(why=f"files of branch {fact['fallback']} may have been read with the table's own"),)
    snapshots = fact["snapshots"] or _without_files(fact, asked)
    if "incremental-between" in asked or "incremental-between-timestamp" in asked:
        return _changes(snapshots, asked)
    if snapshots:
        return tuple(Version(snapshot) for snapshot in snapshots)
    if asked or "newest" not in fact:
        return (Version(why=_NOTHING),)
    return (_by_time(fact, facts),)


def _without_files(fact: Mapping[str, Any], asked: Mapping[str, str]) -> list[int]:
    """A number that was asked for is what was read, even if there was nothing in it."""
    number = asked.get("scan.snapshot-id", "")
    end = asked.get("incremental-between", "").rpartition(",")[2].strip()
    return [int(each) for each in (number, end) if each.isdigit()]


def _changes(snapshots: list[int], asked: Mapping[str, str]) -> tuple[Version, ...]:
    """Between tags or times, the beginning stands nowhere."""
    start = asked.get("incremental-between", "").partition(",")[0].strip()
    since = Since(snapshot=int(start)) if start.isdigit() else None
    if not snapshots:
        return (Version(since=since, changes=True, why=_NOTHING),)
    return tuple(Version(snapshot, since=since, changes=True) for snapshot in snapshots)


def _by_time(fact: Mapping[str, Any], facts: Facts) -> Version:
    """The newest snapshot is the one, if it was that before the scan was planned and nothing changed since."""
    planned = facts.looked_up.get("paimon", {}).get("planned")
    own = _own_snapshots(fact, facts)
    newest = [each for each in fact["newest"] if each["snapshot"] not in own]
    if not newest:
        return Version()  # a table without a snapshot, or whose first one this statement made
    unchanged = len(newest) < len(fact["newest"]) or fact["changed"] <= (planned or 0)
    if planned and unchanged and _is_older(newest[0], planned):
        return Version(newest[0]["snapshot"])
    return Version(candidates=tuple(sorted(_since(newest, planned or 0))), why=_NOTHING)


def _is_older(snapshot: Mapping[str, Any], planned: int) -> bool:
    return bool(snapshot["time"] + (0 if snapshot["own"] else _SKEW) < planned)


def _since(newest: list[Mapping[str, Any]], planned: int) -> Iterator[int]:
    """Down to the first that was there for sure."""
    for each in newest:
        yield each["snapshot"]
        if _is_older(each, planned):
            return


def _own_snapshots(fact: Mapping[str, Any], facts: Facts) -> set[int]:
    """What this statement itself committed to the table."""
    writers = facts.looked_up.get("paimon", {}).get("writers", ())
    users = {each["user"] for each in writers if place_of(each) == place_of(fact)}
    told = {note["snapshot"] for note in facts.noted if note.get("user") in users}
    return told | {each["snapshot"] for w in writers if w["user"] in users for each in w.get("snapshots", ())}
