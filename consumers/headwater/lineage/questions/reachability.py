"""Which tables are made from which, around one table. For questions that need the path without its details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlalchemy import Connection

from headwater.lineage.questions.traversal.identities import Era
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_steps import TableWalk

AT_MOST: Final = 10_000


class TableLink(NamedTuple):
    """A job wrote one table from another. Without a job the target is a view on the source."""

    source: bytes
    target: bytes
    job: tuple[str | None, str | None]


@dataclass
class ReachableTables:
    """Tables by distance, under their current identities."""

    start: bytes
    depths: dict[bytes, int]
    links: set[TableLink] = field(default_factory=set)
    eras: dict[bytes, Mapping[bytes, Era]] = field(default_factory=dict)
    """The identities of each table, with the times for which they hold."""
    views: set[bytes] = field(default_factory=set)
    limits: LimitCollector = field(default_factory=LimitCollector)
    """What the walk met and couldn't follow."""
    is_cut: bool = False


def find_reachable_tables(
    connection: Connection, dataset: bytes, *, up: bool, depth: int, at_most: int = AT_MOST
) -> ReachableTables:
    """Return all tables upstream or downstream of a table. The table itself has distance 0."""
    limits = LimitCollector()
    walk = TableWalk(connection, limits, upward=up)
    start = walk.identities.one(dataset)
    found = ReachableTables(start, {start: 0}, eras={start: walk.identities.group(start)}, limits=limits)
    new = {start}
    for level in range(1, depth + 1):
        steps = [step for portion in walk.steps(walk.identities.members(new)) for step in portion]
        new = {step.far for step in steps} - found.depths.keys()
        if len(found.depths) + len(new) > at_most:
            found.is_cut = True
            return found
        found.depths.update(dict.fromkeys(new, level))
        for step in steps:
            source, target = (step.far, step.near) if up else (step.near, step.far)
            found.links.add(TableLink(source, target, (step.edge.job_namespace, step.edge.job)))
            if step.is_view:
                found.views.add(target)
        if not new:
            return found
        walk.identities.load(new)
        found.eras.update((key, walk.identities.group(key)) for key in new)
    found.is_cut = any(
        step.far not in found.depths for portion in walk.steps(walk.identities.members(new)) for step in portion
    )
    return found
