"""Definitions of views, now or at a time: their sources and columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.events.names import DatasetId, TableName
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.identities import FOREVER, Identities, IdentityMembers
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

_KINDS: Final = ("CreateView", "AlterView", "DropView")


@dataclass(frozen=True)
class ViewDefinition:
    """The definition of a view, with its sources in order. A source without identity is None, and has a name."""

    view: bytes
    """Under its current identity."""
    sources: Sequence[bytes | None]
    columns: Sequence[dict[str, Any]]
    first: int
    last: int
    job_namespace: str | None = None
    job: str | None = None
    names: Sequence[str] = ()
    """Of the sources without identity."""


class _Newest:
    """The definition of one view while its changes are read, the oldest first."""

    def __init__(self) -> None:
        self.content: dict[str, Any] | None = None
        self.time = 0

    def change(self, row: Any) -> None:
        content = _view_in(row)
        if row.kind != "DropView" and (content is None or self._is_same_query(row, content)):
            return
        self.content, self.time = content, row.time

    def _is_same_query(self, row: Any, content: Mapping[str, Any]) -> bool:
        """Return whether a change left the query alone. Who doesn't know what a view reads reports its text only."""
        known = self.content
        is_text_only = row.kind == "AlterView" and not content.get("sources")
        return is_text_only and known is not None and known.get("sql") == content.get("sql")


def defined_on(connection: Connection, members: IdentityMembers, as_of: int) -> Iterator[ViewDefinition]:
    """Yield the current definitions of those tables that are views. `members` are their identities."""
    row = table_of(t.MODIFICATION).c
    query = select(row.dataset, row.kind, row.time, row.producer, row.sequence, row.detail)
    query = query.where(row.kind.in_(_KINDS), row.effect == "APPLIED", row.time <= as_of)
    found: dict[bytes, _Newest] = {}
    for change in sorted(select_by_keys(connection, query, row.dataset, members), key=_order):
        for view, era in members[bytes(change.dataset)]:
            if era.since < change.time <= era.until:
                found.setdefault(view, _Newest()).change(change)
    for view, newest in found.items():
        if newest.content is not None:
            yield _definition(view, newest.content, newest.time)


def views_on(
    connection: Connection, identities: Identities, sources: IdentityMembers, as_of: int
) -> Iterator[ViewDefinition]:
    """Yield the views that are defined on any of these tables."""
    row = table_of(t.VIEW_EDGE).c
    once = {bytes(view[0]) for view in select_by_keys(connection, select(row.view), row.source, sources)}
    if not once:
        return
    views = {identities.one(view) for view in identities.linked(once)}
    for definition in defined_on(connection, identities.members(views), as_of):
        if not sources.keys().isdisjoint(filter(None, definition.sources)):
            yield definition


def add_source_limits(definition: ViewDefinition, limits: LimitCollector) -> None:
    """Add the sources of a view that can't be followed."""
    for name in definition.names:
        what = f"{name} is known by its name only, and isn't followed"
        limits.add_snapshot(LimitReason.OPAQUE, definition.view, None, what)


def add_view_limit(connection: Connection, identities: Identities, dataset: bytes, limits: LimitCollector) -> None:
    """Add what an answer about what is made from a view lacks, if this is one."""
    if any(defined_on(connection, identities.members([dataset]), FOREVER)):
        limits.add_snapshot(
            LimitReason.THROUGH_VIEW, dataset, None, "jobs that read it are listed with the tables that it reads"
        )


def _view_in(change: Any) -> dict[str, Any] | None:
    definition_json = json.loads(change.detail or "{}")
    if change.kind == "DropView":
        return None
    found: dict[str, Any] | None = definition_json.get("view" if change.kind == "CreateView" else "new_view")
    return found


def _definition(view: bytes, definition_json: dict[str, Any], time: int) -> ViewDefinition:
    written = definition_json.get("sources", ())
    sources = [_hash(source.get("dataset")) for source in written]
    names = [_name(source["table"]) for source in written if source.get("dataset") is None and source.get("table")]
    return ViewDefinition(view, sources, definition_json.get("lineage", ()), time, time, names=names)


def _name(definition_json: dict[str, str]) -> str:
    return str(TableName(**definition_json))


def _hash(definition_json: dict[str, str] | None) -> bytes | None:
    return None if definition_json is None else dataset_hash(DatasetId(**definition_json))


def _order(change: Any) -> tuple[int, bytes, int]:
    return (change.time, bytes(change.producer), change.sequence)
