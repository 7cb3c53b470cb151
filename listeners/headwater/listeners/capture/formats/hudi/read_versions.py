"""Which state of a table was really read.

A relation of Hudi's keeps the timeline that it loaded, and may be refreshed by whoever writes the table in its session:
what it has seen by now may be more than what was read. What was read lies between the relation's making, or the newest
file that was scanned, and what it has seen before the statement itself committed.

Hudi in structured streaming: what a source's offsets say was read.

An offset is the time at which the newest instant that was read had been completed, so that an instant which was asked
for earlier and completed later is read in the next batch. Sources of older tables count by the time at which instants
were asked for. The offset in front of a query's first batch isn't in Spark's log but in the source's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.events.jobs import RangeStart, StartReason
from headwater.listeners.capture.formats.hudi.table_refs import place_path
from headwater.listeners.capture.formats.hudi.timelines import (
    COMMITS,
    FORMAT,
    HudiInstant,
    parse_instants,
    recorded_commits,
    timeline,
    timeline_facts,
)
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

_OFFSET: Final = "offsetCommitTime"
_START: Final = "000"
"""What Hudi calls the time before the first instant."""
_BEFORE_FIRST: Final = RangeStart(snapshot=-1)
_START_OPTION: Final = "hoodie.datasource.streaming.startoffset"
_START_WORDS: Final = {"earliest": StartReason.EARLIEST, "latest": StartReason.LATEST}
_FALLBACK: Final = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
"""Without it a stream may leave out what only archived instants wrote."""
_NOT_IN_TIMELINE: Final = "the timeline doesn't have the instant that this stream read last"
_UNSEEN_START: Final = "Hudi doesn't show where this stream began"
_PARTIAL: Final = f"with {_FALLBACK}=false a stream may leave out what was written by archived instants"


def versions_of_batch(
    path: str, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
) -> tuple[ReadVersion, ...]:
    if offsets.end is None:
        return ()
    begins = {offset for of, offset in timeline_facts(facts).get("begins", ()) if of == path}
    start = offsets.start or (begins.pop() if len(begins) == 1 else None)
    is_partial = stream_options(node).get(_FALLBACK, "true").strip().lower() == "false"
    found = range_of(start, offsets.end, timeline(facts, path) or (), is_partial=is_partial)
    return () if found is None else (found,)


def start_of(node: PlanNode) -> StreamStart:
    """Why a new query begins where it does."""
    asked = stream_options(node).get(_START_OPTION, "earliest").strip().lower()
    return StreamStart(reason=_START_WORDS.get(asked, StartReason.REQUESTED))


def range_of(
    start: str | None, end: str, line: Sequence[HudiInstant], *, is_partial: bool = False
) -> ReadVersion | None:
    """What a batch between two offsets read, by the table's timeline; None where they are the same: nothing was.

    Without a start it is unknown where the batch began. Behind the first offset are all changes that there are, in as
    far as archived instants are read too. They aren't the table's state: a row that is changed while the batch reads is
    in the next one alone.
    """
    last = offset_of(end)
    if last is None or (start is not None and offset_of(start) == last):
        return None
    newest = _newest_commit(last, line)
    why = None if newest is not None else _NOT_IN_TIMELINE
    if start is None:
        return ReadVersion(newest, str(last), changes=True, why=why or _UNSEEN_START)
    first = offset_of(start)
    if first is not None:
        since = RangeStart(snapshot=_newest_commit(first, line), version=str(first))
    elif is_partial:
        return ReadVersion(newest, str(last), changes=True, why=why or _PARTIAL)
    else:
        since = _BEFORE_FIRST
    return ReadVersion(newest, str(last), since, changes=True, why=why)


def offset_of(text: str) -> int | None:
    """The number in a source's offset; None at the beginning."""
    found = str(json.loads(text)[_OFFSET])
    return None if found == _START or not found.isdecimal() or int(found) == 0 else int(found)


def _newest_commit(offset: int, line: Sequence[HudiInstant]) -> int | None:
    """The newest commit that an offset includes. What was completed then may be another instant: a clean changes no
    row."""
    commits = [instant for instant in line if instant.action in COMMITS]
    if any(instant.at == offset for instant in line):
        found = [instant for instant in commits if instant.at <= offset]
    elif any(instant.number == offset for instant in line):
        found = [instant for instant in commits if instant.number <= offset]
    else:
        return None
    return found[-1].number if found else None


_MAX_CANDIDATES: Final = 100
_REFRESHED: Final = "the table was refreshed meanwhile: Hudi doesn't show which of its states was read"

_COMPACTED: Final = "a read-optimized query leaves out what wasn't compacted yet: that is no state of the table"


def versions_of(source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    if source.hints.get("empty"):
        return ()
    leaves = _read_leaves(source, plan, facts)
    if not leaves and not _has_executed(facts):
        return (ReadVersion(why="Hudi doesn't show which state of this table was read"),)
    found = (_version_of(leaf, source, facts) for leaf in leaves)
    return tuple(dict.fromkeys(version for version in found if version is not None))


def _has_executed(facts: StatementFacts) -> bool:
    return bool(facts.reads or facts.nested_reads)


def _read_leaves(source: SourceRelation, plan: Plan, facts: StatementFacts) -> list[Mapping[str, Any]]:
    """Of what was executed, if that can be seen; what was optimized away wasn't read."""
    own = [read for read in (*facts.reads, *facts.nested_reads) if _is_same(read, source)]
    attributes = set(plan.nodes[source.node].output)
    own = [read for read in own if attributes.intersection(read.get("attributes", ()))] or own
    executed = [read for read in own if read.get("in") != "optimized"]
    if executed or own:
        return executed or own
    related = [relation for relation in timeline_facts(facts).get("relations", ()) if _is_same(relation, source)]
    wanted = source.hints.get("asked")
    return [relation for relation in related if relation.get("asked") == wanted] or related


def _is_same(fields: Mapping[str, Any], source: SourceRelation) -> bool:
    if fields.get("format") != FORMAT or bool(fields.get("changes")) != bool(source.hints.get("changes")):
        return False
    return bool(fields.get("path") == source.hints["path"])


def _version_of(fields: Mapping[str, Any], source: SourceRelation, facts: StatementFacts) -> ReadVersion | None:
    seen = _version_before_own_commits(parse_instants(fields.get("seen", ())), source, facts)
    if fields.get("changes"):
        return _version_of_changes(fields, seen)
    if fields.get("compacted"):
        return ReadVersion(why=_COMPACTED)
    if fields.get("asked"):
        return _version_as_of(int(fields["asked"].ljust(17, "0")[:17]), seen)
    return _version_of_state(fields, seen, facts)


def _version_before_own_commits(
    seen: Sequence[HudiInstant], source: SourceRelation, facts: StatementFacts
) -> list[HudiInstant]:
    """A statement reads before it commits, and before whatever this driver commits after it."""
    environment, dataset = source.hints["environment"], source.source.dataset
    own = {commit.number for commit in recorded_commits(facts) if place_path(commit.path, environment) == dataset}
    ended = timeline_facts(facts).get("ended", 0)
    later = [
        n for n, instant in enumerate(seen) if instant.number in own or (instant.own and instant.completed > ended)
    ]
    return list(seen[: later[0]]) if later else list(seen)


def _version_of_state(
    fields: Mapping[str, Any], seen: Sequence[HudiInstant], facts: StatementFacts
) -> ReadVersion | None:
    if not seen:
        return None
    created = int(fields.get("created") or 0)
    made = [n for n, instant in enumerate(seen) if instant.number <= created]
    scanned = {int(number) for number in fields.get("files", ())}
    lowest = max([0, *(n for n, instant in enumerate(seen) if instant.number == created or instant.number in scanned)])
    began = timeline_facts(facts).get("began", -1)
    if made and all(instant.number <= created and instant.completed <= began for instant in seen[lowest:]):
        return ReadVersion(seen[-1].number)
    return _candidates(seen[lowest:])


def _version_as_of(asked: int, seen: Sequence[HudiInstant]) -> ReadVersion:
    """Time travel goes by the time at which instants were asked for."""
    found = [instant.number for instant in seen if instant.number <= asked]
    return (
        ReadVersion(max(found))
        if found
        else ReadVersion(why="the timeline doesn't go back to the instant that was asked for")
    )


def _version_of_changes(fields: Mapping[str, Any], seen: Sequence[HudiInstant]) -> ReadVersion | None:
    """Which instants they are of was found when the relation was made."""
    if "of" not in fields:
        return ReadVersion(changes=True, why="Hudi doesn't show of which instants the changes were read")
    wanted = {instant.number for instant in parse_instants(fields["of"])}
    if not wanted:
        return None
    places = [n for n, instant in enumerate(seen) if instant.number in wanted]
    if len(places) < len(wanted):
        return ReadVersion(max(wanted), changes=True)
    since = RangeStart(snapshot=seen[places[0] - 1].number) if places[0] else None
    return ReadVersion(seen[places[-1]].number, since=since, changes=True)


def _candidates(found: Sequence[HudiInstant]) -> ReadVersion:
    if len(found) == 1:
        return ReadVersion(found[0].number)
    return ReadVersion(candidates=tuple(sorted(instant.number for instant in found[-_MAX_CANDIDATES:])), why=_REFRESHED)
