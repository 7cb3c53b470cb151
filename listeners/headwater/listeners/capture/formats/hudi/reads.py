"""Which state of a table was really read.

A relation of Hudi's keeps the timeline that it loaded, and may be refreshed by whoever writes the table in its session:
what it has seen by now may be more than what was read. What was read lies between the relation's making, or the newest
file that was scanned, and what it has seen before the statement itself committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.events import Since
from headwater.listeners.capture.formats.hudi.places import placed
from headwater.listeners.capture.formats.hudi.timelines import FORMAT, Instant, instants, looked_up, noted
from headwater.listeners.capture.formats.protocol import Described, Version
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import Facts

_MOST_CANDIDATES: Final = 100
_REFRESHED: Final = "the table was refreshed meanwhile: Hudi doesn't show which of its states was read"

_COMPACTED: Final = "a read-optimized query leaves out what wasn't compacted yet: that is no state of the table"


def versions_of(source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
    if source.hints.get("empty"):
        return ()
    told = _leaves(source, plan, facts)
    if not told and not _was_run(facts):
        return (Version(why="Hudi doesn't show which state of this table was read"),)
    found = (_version(each, source, facts) for each in told)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _was_run(facts: Facts) -> bool:
    return bool(facts.reads or facts.nested_reads)


def _leaves(source: Described, plan: Plan, facts: Facts) -> list[Mapping[str, Any]]:
    """Of what was executed, if that can be seen; what was optimized away wasn't read."""
    own = [each for each in (*facts.reads, *facts.nested_reads) if _is_same(each, source)]
    attributes = set(plan.nodes[source.node].output)
    own = [each for each in own if attributes.intersection(each.get("attributes", ()))] or own
    executed = [each for each in own if each.get("in") != "optimized"]
    if executed or own:
        return executed or own
    related = [each for each in looked_up(facts).get("relations", ()) if _is_same(each, source)]
    wanted = source.hints.get("asked")
    return [each for each in related if each.get("asked") == wanted] or related


def _is_same(told: Mapping[str, Any], source: Described) -> bool:
    if told.get("format") != FORMAT or bool(told.get("changes")) != bool(source.hints.get("changes")):
        return False
    return bool(told.get("path") == source.hints["path"])


def _version(told: Mapping[str, Any], source: Described, facts: Facts) -> Version | None:
    seen = _before_own(instants(told.get("seen", ())), source, facts)
    if told.get("changes"):
        return _changes(told, seen)
    if told.get("compacted"):
        return Version(why=_COMPACTED)
    if told.get("asked"):
        return _as_of(int(told["asked"].ljust(17, "0")[:17]), seen)
    return _state(told, seen, facts)


def _before_own(seen: Sequence[Instant], source: Described, facts: Facts) -> list[Instant]:
    """A statement reads before it commits, and before whatever this driver commits after it."""
    site, dataset = source.hints["site"], source.source.dataset
    own = {each.number for each in noted(facts) if placed(each.path, site) == dataset}
    ended = looked_up(facts).get("ended", 0)
    later = [n for n, each in enumerate(seen) if each.number in own or (each.own and each.completed > ended)]
    return list(seen[: later[0]]) if later else list(seen)


def _state(told: Mapping[str, Any], seen: Sequence[Instant], facts: Facts) -> Version | None:
    if not seen:
        return None
    created = int(told.get("created") or 0)
    made = [n for n, each in enumerate(seen) if each.number <= created]
    scanned = {int(each) for each in told.get("files", ())}
    lowest = max([0, *(n for n, each in enumerate(seen) if each.number == created or each.number in scanned)])
    began = looked_up(facts).get("began", -1)
    if made and all(each.number <= created and each.completed <= began for each in seen[lowest:]):
        return Version(seen[-1].number)
    return _one_of(seen[lowest:])


def _as_of(asked: int, seen: Sequence[Instant]) -> Version:
    """Time travel goes by the time at which instants were asked for."""
    found = [each.number for each in seen if each.number <= asked]
    return (
        Version(max(found)) if found else Version(why="the timeline doesn't go back to the instant that was asked for")
    )


def _changes(told: Mapping[str, Any], seen: Sequence[Instant]) -> Version | None:
    """Which instants they are of was found when the relation was made."""
    if "of" not in told:
        return Version(changes=True, why="Hudi doesn't show of which instants the changes were read")
    wanted = {each.number for each in instants(told["of"])}
    if not wanted:
        return None
    places = [n for n, each in enumerate(seen) if each.number in wanted]
    if len(places) < len(wanted):
        return Version(max(wanted), changes=True)
    since = Since(snapshot=seen[places[0] - 1].number) if places[0] else None
    return Version(seen[places[-1]].number, since=since, changes=True)


def _one_of(found: Sequence[Instant]) -> Version:
    if len(found) == 1:
        return Version(found[0].number)
    return Version(candidates=tuple(sorted(each.number for each in found[-_MOST_CANDIDATES:])), why=_REFRESHED)
