"""One level of a walk between tables. All questions about tables take their steps here, so all know the same identities
and none takes for an origin what was merely read beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.lineage.mapping.commits import EXACT
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.gaps.model import format_job
from headwater.lineage.questions.traversal.identities import FOREVER, Identities, IdentityMembers
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_edges import edges_between
from headwater.lineage.questions.traversal.views import ViewDefinition, add_source_limits, defined_on, views_on


class TableStep(NamedTuple):
    """A job made one table from another, or one is a view on the other. Both stand here under their current
    identities."""

    near: bytes
    """The end at which the walk was."""
    far: bytes
    edge: Any

    @property
    def is_view(self) -> bool:
        return isinstance(self.edge, ViewDefinition)


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

    def steps(self, members: IdentityMembers) -> Iterator[list[TableStep]]:
        """Yield all steps from these tables, in portions. What can't be followed becomes a limit."""
        for edges in edges_between(
            self._connection, members, self._limits, upward=self._upward, as_of=self._as_of, job=self._job
        ):
            yield list(self._follow(edges, members))
        if self._job is None:
            yield list(self._view_steps(members))

    def _view_steps(self, members: IdentityMembers) -> Iterator[TableStep]:
        one = self.identities.one
        if self._upward:
            for view in defined_on(self._connection, members, self._as_of):
                add_source_limits(view, self._limits)
                yield from (TableStep(view.view, one(source), view) for source in view.sources if source is not None)
            return
        for view in views_on(self._connection, self.identities, members, self._as_of):
            for source in filter(None, view.sources):
                yield from (TableStep(near, view.view, view) for near, _ in members.get(source, ()))

    def _follow(self, edges: Sequence[Any], members: IdentityMembers) -> Iterator[TableStep]:
        met: list[tuple[bytes, bytes, Any]] = []
        for edge in edges:
            here, there = (edge.target, edge.source) if self._upward else (edge.source, edge.target)
            for one, era in members[bytes(here)]:
                if edge.first <= era.until and edge.last > era.since and self._leads_on(one, there, edge):
                    met.append((one, bytes(there), edge))
        self.identities.load({there for _, there, _ in met})
        for one, there, edge in met:
            yield TableStep(one, self.identities.one(there, None, edge.last), edge)

    def _leads_on(self, one: bytes, there: Any, edge: Any) -> bool:
        """Return whether an edge certainly leads to a dataset. Anything else is a limit."""
        why, what = LimitReason.OPAQUE, f"something was read that Spark doesn't show: {edge.opaque}"
        if edge.certainty != EXACT:
            job = format_job(edge.job_namespace, edge.job)
            why = LimitReason.UNKNOWN_SOURCES
            what = f"a commit of {job} read other tables beside it, and what it is made from isn't known"
        elif there is not None:
            return True
        elif edge.opaque is None:
            name = edge.source_name if self._upward else edge.target_name
            what = f"{name} is known by its name only, and isn't followed"
        self._limits.add_snapshot(why, one, None, what)
        return False
