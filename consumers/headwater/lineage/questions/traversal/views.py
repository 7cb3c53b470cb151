"""Definitions of views, now or at a time: their sources and columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.events.names import DatasetId
from headwater.lineage.mapping.row_builder import dataset_hash
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

_KINDS: Final = ("CreateView", "AlterView", "DropView")


@dataclass(frozen=True)
class ViewDefinition:
    """The definition of a view, with its sources in order. A source without identity is None."""

    view: bytes
    sources: Sequence[bytes | None]
    columns: Sequence[dict[str, Any]]
    first: int
    last: int
    job_namespace: str | None = None
    job: str | None = None


def defined_on(connection: Connection, views: Collection[bytes], as_of: int) -> Iterator[ViewDefinition]:
    """Yield the current definitions of those datasets that are views."""
    row = table_of(t.MODIFICATION).c
    query = select(row.dataset, row.kind, row.time, row.producer, row.sequence, row.detail)
    query = query.where(row.kind.in_(_KINDS), row.effect == "APPLIED", row.time <= as_of)
    newest: dict[bytes, Any] = {}
    for each in sorted(select_by_keys(connection, query, row.dataset, views), key=_order):
        if each.kind == "DropView" or _view_in(each) is not None:
            newest[bytes(each.dataset)] = each
    for view, each in newest.items():
        definition = None if each.kind == "DropView" else _view_in(each)
        if definition is not None:
            yield _definition(view, definition, each.time)


def views_on(connection: Connection, sources: Collection[bytes], as_of: int) -> Iterator[ViewDefinition]:
    """Yield the views that are defined on any of these datasets."""
    row = table_of(t.VIEW_EDGE).c
    once = {bytes(each[0]) for each in select_by_keys(connection, select(row.view), row.source, sources)}
    query = set(sources)
    return (each for each in defined_on(connection, once, as_of) if query & {*each.sources})


def _view_in(each: Any) -> dict[str, Any] | None:
    definition_json = json.loads(each.detail or "{}")
    found: dict[str, Any] | None = definition_json.get("view" if each.kind == "CreateView" else "new_view")
    return found


def _definition(view: bytes, definition_json: dict[str, Any], time: int) -> ViewDefinition:
    sources = [_hash(each.get("dataset")) for each in definition_json.get("sources", ())]
    return ViewDefinition(view, sources, definition_json.get("lineage", ()), time, time)


def _hash(definition_json: dict[str, str] | None) -> bytes | None:
    return None if definition_json is None else dataset_hash(DatasetId(**definition_json))


def _order(each: Any) -> tuple[int, bytes, int]:
    return (each.time, bytes(each.producer), each.sequence)
