"""One level of a walk between tables. All questions about tables take their steps here, so all know the same identities
and none takes for an origin what was merely read beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.lineage.mapping.commits import EXACT
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.gaps.model import format_job
from headwater.lineage.questions.traversal.identities import FOREVER, Era, Identities
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_edges import edges_between


class TableStep(NamedTuple):
    """A job made one table from another. Both stand here under their current identities."""

    near: bytes
    """The end at which the walk was."""
    far: bytes
    edge: Any


class TableWalk:
    """Takes steps for one question."""

    def __init__(
        self,
        connection: Connection,
        limits: LimitCollector,
        *,
        upward: bool,
        as_of: int = FOREVER,
        job: str | None = None,
    ) -> None:
        self.identities = Identities(connection)
        self._connection = connection
        self._limits = limits
        self._upward = upward
        self._as_of = as_of
        self._job = job

    def members(self, tables: Collection[bytes]) -> dict[bytes, list[tuple[bytes, Era]]]:
        """Return the identities of these tables: whose each is, and when."""
        self.identities.load(tables)
        members: dict[bytes, list[tuple[bytes, Era]]] = {}
        for one in tables:
            for member, era in self.identities.group(one).items():
                members.setdefault(member, []).append((one, era))
        return members

    def steps(self, members: Mapping[bytes, Sequence[tuple[bytes, Era]]]) -> Iterator[list[TableStep]]:
        """Yield all steps from these tables, in portions. What can't be followed becomes a limit."""
        for edges in edges_between(
            self._connection, members, self._limits, upward=self._upward, as_of=self._as_of, job=self._job
        ):
            yield list(self._follow(edges, members))

    def _follow(
        self, edges: Sequence[Any], members: Mapping[bytes, Sequence[tuple[bytes, Era]]]
    ) -> Iterator[TableStep]:
        met: list[tuple[bytes, bytes, Any]] = []
        for each in edges:
            here, there = (each.target, each.source) if self._upward else (each.source, each.target)
            for one, era in members[bytes(here)]:
                if each.first <= era.until and each.last > era.since and self._leads_on(one, there, each):
                    met.append((one, bytes(there), each))
        self.identities.load({there for _, there, _ in met})
        for one, there, each in met:
            yield TableStep(one, self.identities.one(there, None, each.last), each)

    def _leads_on(self, one: bytes, there: Any, each: Any) -> bool:
        """Return whether an edge certainly leads to a dataset. Anything else is a limit."""
        why, what = LimitReason.OPAQUE, f"something was read that Spark doesn't show: {each.opaque}"
        if each.certainty != EXACT:
            job = format_job(each.job_namespace, each.job)
            why = LimitReason.UNKNOWN_SOURCES
            what = f"a commit of {job} read other tables beside it, and what it is made from isn't known"
        elif there is not None:
            return True
        elif each.opaque is None:
            name = each.source_name if self._upward else each.target_name
            what = f"{name} is known by its name only, and isn't followed"
        self._limits.add_snapshot(why, one, None, what)
        return False
