"""Which versions were really read: those that were scanned, never what the analysis saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headwater.events import Since
from headwater.listeners.capture.formats.delta.commits import (
    before_own_commits,
    bounds,
    commits_of,
    is_watched,
    scanned,
)
from headwater.listeners.capture.formats.protocol import Described, Version
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import Facts

_FORMAT: Final = "delta"
_TRANSPARENT: Final = frozenset({"SubqueryAlias", "Project", "View", "Deduplicate"})
_MOST_CANDIDATES: Final = 1_000


def versions_of(source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
    path = source.hints["path"]
    if source.hints.get("command"):
        return _of_command(source.hints["command"], path, facts)
    if source.hints.get("target"):
        return _of_target(path, facts)
    leaves = _leaves(source, plan, facts)
    told = [each for each in leaves if "version" in each or each.get("changes")]
    if source.hints.get("changes"):
        return _unique(_changes(each, facts) for each in told) or (Version(changes=True, why=_unseen("change feed")),)
    if told:
        counted = scanned(facts, path) if told[0] in facts.nested_reads else []
        return _unique(Version(each["version"]) for each in (*told, *counted))
    return _not_scanned(source, plan, facts, leaves)


def _leaves(source: Described, plan: Plan, facts: Facts) -> list[Mapping[str, Any]]:
    """Leaves of nested executions come first: a write of Delta's plans its query a second time and reads it there."""
    path, changes = source.hints["path"], bool(source.hints.get("changes"))

    def same(each: Mapping[str, Any]) -> bool:
        return each.get("format") == _FORMAT and each.get("path") == path and bool(each.get("changes")) == changes

    nested = [each for each in facts.nested_reads if same(each)]
    if nested:
        return nested
    own = [each for each in facts.reads if same(each)]
    attributes = set(plan.nodes[source.node].output)
    matching = [each for each in own if attributes.intersection(each.get("attributes", ()))]
    return matching or own


def _not_scanned(
    source: Described, plan: Plan, facts: Facts, leaves: Sequence[Mapping[str, Any]]
) -> tuple[Version, ...]:
    """Statistics in the log can answer a query. Where it is part of another format's write, Delta prepares no scan, and
    looks for the newest version when the rows are read. Else it wasn't read at all."""
    path = source.hints["path"]
    notes = scanned(facts, path)
    if notes:
        return _unique(Version(note["version"]) for note in notes)
    asked = [each["asked"] for each in leaves if "asked" in each]
    if asked:
        return _unique(map(Version, asked))
    if _may_be_counted(source.node, plan):
        return _between(bounds(facts, path), "metadata")
    return _between(bounds(facts, path), "table") if leaves else ()


def _may_be_counted(index: int, plan: Plan) -> bool:
    """Whether an aggregate of the whole table stands right above: Delta answers some without a scan."""
    above = {child: node for node in plan.nodes for child in node.inputs}
    node = above.get(index)
    while node is not None and node.name in _TRANSPARENT:
        node = above.get(node.index)
    return node is not None and node.name == "Aggregate" and not node.expressions_of("groupingExpressions")


def _of_target(path: str, facts: Facts) -> tuple[Version, ...]:
    """What a MERGE, UPDATE, DELETE or OPTIMIZE writes it has read, as its transaction began."""
    read = [commit.read_version for commit in commits_of(facts) if commit.path == path]
    if read:
        return (Version(read[0]),) if read[0] >= 0 else ()
    if is_watched(facts):
        return ()
    return _between(bounds(facts, path), "table")


def _of_command(name: str, path: str, facts: Facts) -> tuple[Version, ...]:
    """RESTORE and CLONE say in the log what they were made from."""
    if name == "CloneTableCommand":
        told = [commit.parameters.get("sourceVersion") for commit in commits_of(facts)]
    else:
        told = [commit.parameters.get("version") for commit in commits_of(facts) if commit.path == path]
        told.append(facts.looked_up.get(_FORMAT, {}).get("restored"))
    found = [int(each) for each in told if each is not None]
    return (Version(found[0]),) if found else (Version(why="which version it was made from can't be seen"),)


def _changes(told: Mapping[str, Any], facts: Facts) -> Version:
    start, end = told.get("from"), told.get("to")
    since = Since(snapshot=start - 1) if start else None
    lowest, highest = told["lowest"], before_own_commits(told["highest"], told["path"], facts)
    if end is not None:
        lowest, highest = min(end, lowest), min(end, highest)
    if lowest == highest:
        return Version(highest, since=since, changes=True)
    found = _between((lowest, highest), "change feed")[0]
    return Version(since=since, changes=True, candidates=found.candidates, why=found.why)


def _between(told: tuple[int, int] | None, what: str) -> tuple[Version, ...]:
    """Exact where nobody has committed in between."""
    if told is None:
        return (Version(why=_unseen(what)),)
    lowest, highest = told
    if lowest == highest:
        return (Version(highest),)
    candidates = tuple(range(max(lowest, highest - _MOST_CANDIDATES + 1), highest + 1))
    return (Version(candidates=candidates, why=_unseen(what)),)


def _unseen(what: str) -> str:
    return f"Delta doesn't show at which version this {what} was read"


def _unique(versions: Iterable[Version]) -> tuple[Version, ...]:
    return tuple(dict.fromkeys(versions))
