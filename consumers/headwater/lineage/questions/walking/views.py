"""Views as they are defined now, or were at a time: what they are defined on, and their columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.events.names import DatasetId
from headwater.lineage.law.telling import dataset_hash
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import table_of

_KINDS: Final = ("CreateView", "AlterView", "DropView")


@dataclass(frozen=True)
class Definition:
    """A view, with the sources in their order; one without identity is none."""

    view: bytes
    sources: Sequence[bytes | None]
    columns: Sequence[dict[str, Any]]
    first: int
    last: int
    job_namespace: str | None = None
    job: str | None = None


def defined_on(connection: Connection, views: Collection[bytes], as_of: int) -> Iterator[Definition]:
    """The definitions that hold of these, as far as they are views."""
    row = table_of(t.MODIFICATION).c
    wanted = select(row.dataset, row.kind, row.time, row.producer, row.sequence, row.detail)
    wanted = wanted.where(row.kind.in_(_KINDS), row.effect == "APPLIED", row.time <= as_of)
    newest: dict[bytes, Any] = {}
    for each in sorted(among(connection, wanted, row.dataset, views), key=_order):
        if each.kind == "DropView" or _view_in(each) is not None:
            newest[bytes(each.dataset)] = each
    for view, each in newest.items():
        definition = None if each.kind == "DropView" else _view_in(each)
        if definition is not None:
            yield _definition(view, definition, each.time)


def views_on(connection: Connection, sources: Collection[bytes], as_of: int) -> Iterator[Definition]:
    """Those that are defined on any of these."""
    row = table_of(t.VIEW_EDGE).c
    once = {bytes(each[0]) for each in among(connection, select(row.view), row.source, sources)}
    wanted = set(sources)
    return (each for each in defined_on(connection, once, as_of) if wanted & {*each.sources})


def _view_in(each: Any) -> dict[str, Any] | None:
    told = json.loads(each.detail or "{}")
    found: dict[str, Any] | None = told.get("view" if each.kind == "CreateView" else "new_view")
    return found


def _definition(view: bytes, told: dict[str, Any], time: int) -> Definition:
    sources = [_hash(each.get("dataset")) for each in told.get("sources", ())]
    return Definition(view, sources, told.get("lineage", ()), time, time)


def _hash(told: dict[str, str] | None) -> bytes | None:
    return None if told is None else dataset_hash(DatasetId(**told))


def _order(each: Any) -> tuple[int, bytes, int]:
    return (each.time, bytes(each.producer), each.sequence)
