"""Which tables are made from which, around one table. For questions that need the path without its details."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_edges import visible_edges
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

AT_MOST: Final = 10_000


class TableStep(NamedTuple):
    """A job wrote one table from another."""

    source: bytes
    target: bytes
    job: tuple[str | None, str | None]


@dataclass
class ReachableTables:
    """Tables by distance, each under the identity by which it was found first."""

    depths: dict[bytes, int] = field(default_factory=dict)
    steps: set[TableStep] = field(default_factory=set)
    identities: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    is_cut: bool = False


def find_reachable_tables(
    connection: Connection, keys: Collection[bytes], *, up: bool, depth: int, at_most: int = AT_MOST
) -> ReachableTables:
    """Return all tables upstream or downstream of a table with these identities. The table itself has distance 0."""
    found = ReachableTables()
    canonical: dict[bytes, bytes] = {}
    new = _of_one(keys, found, canonical, 0)
    for level in range(1, depth + 1):
        new_steps = list(_steps(connection, new, up=up))
        ends = {step.source if up else step.target for step in new_steps}
        unknown = sorted(ends - canonical.keys())
        if len(found.depths) + len(unknown) > at_most:
            found.is_cut = True
            return found
        new = []
        for several in _group_linked(connection, unknown):
            new += _of_one(several, found, canonical, level)
        for step in new_steps:
            found.steps.add(TableStep(canonical[step.source], canonical[step.target], step.job))
        if not new:
            return found
    found.is_cut = any(True for _ in _steps(connection, new, up=up))
    return found


def _of_one(keys: Collection[bytes], found: ReachableTables, canonical: dict[bytes, bytes], depth: int) -> list[bytes]:
    """Register a dataset, unless it is known under another of its identities."""
    several = list(keys)
    known = next((canonical[each] for each in several if each in canonical), None)
    one = several[0] if known is None else known
    canonical.update(dict.fromkeys(several, one))
    if known is None:
        found.depths[one] = depth
        found.identities[one] = tuple(several)
        return several
    return []


def _steps(connection: Connection, keys: Collection[bytes], *, up: bool) -> Iterator[TableStep]:
    """Load the visible edges of these tables."""
    row = table_of(t.TABLE_EDGE).c
    query = select(*(column for column in row if column.name != "id"))
    query = query.where(row.last > row.deleted, row.source.is_not(None), row.target.is_not(None))
    found = list(select_by_keys(connection, query, row.target if up else row.source, keys))
    for each in visible_edges(connection, found, LimitCollector()):
        yield TableStep(bytes(each.source), bytes(each.target), (each.job_namespace, each.job))


def _group_linked(connection: Connection, keys: Collection[bytes]) -> list[list[bytes]]:
    """Group these identities with all that are linked to them."""
    row = table_of(t.DATASET_LINK).c
    of: dict[bytes, set[bytes]] = {key: {key} for key in keys}
    new: Collection[bytes] = keys
    while new:
        pairs: list[Any] = []
        for one in (row.old, row.new):
            pairs += select_by_keys(connection, select(row.old, row.new), one, new)
        before = set(of)
        for old, fresh in pairs:
            united = of.setdefault(bytes(old), {bytes(old)}) | of.setdefault(bytes(fresh), {bytes(fresh)})
            for each in united:
                of[each] = united
        new = sorted(of.keys() - before)
    groups = {min(several): sorted(several, key=lambda each: (each not in keys, each)) for several in of.values()}
    return [groups[key] for key in sorted(groups)]
