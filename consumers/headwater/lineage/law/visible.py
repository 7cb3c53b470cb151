"""What was deleted as a set: a tombstone names the set, and covers all that was told of it up to a time.

`sql.visible` says the same in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from headwater.events.administration import LineageScope
from headwater.lineage.law.catalogs import Catalogs
from headwater.lineage.rows import Row
from headwater.lineage.rows.values import Value

TABLES_OF: Final = {
    "SOURCE": (LineageScope.ALL.value, LineageScope.TABLES.value, LineageScope.SOURCE_TABLES.value),
    "SINK": (LineageScope.ALL.value, LineageScope.TABLES.value, LineageScope.SINK_TABLES.value),
}
"""The scopes that table lineage of a side is in."""
DATA: Final = (LineageScope.ALL.value, LineageScope.DATA.value)
"""Those that data lineage is in."""


@dataclass(frozen=True)
class Subject:
    """What can be deleted: something that a job told."""

    scopes: tuple[str, ...]
    last: int
    job: tuple[Value, Value]
    parent: tuple[Value, Value]
    run: Value
    dataset: Value
    catalog: Value = None
    """As the table's name has it."""
    life: Value = None
    snapshot: Value = None


def subject_of(row: Row, scopes: tuple[str, ...], by: dict[str, Any] | None = None) -> Subject:
    """What a row is to tombstones; of data lineage its commit says who told it."""
    values = row.named
    by = values if by is None else by
    return Subject(
        scopes=scopes,
        last=row.span.last,
        job=(by["job_namespace"], by["job"]),
        parent=(by["parent_namespace"], by["parent_job"]),
        run=by["run"],
        dataset=values["dataset"],
        catalog=values["catalog"],
        life=values.get("life"),
        snapshot=values.get("snapshot"),
    )


def is_hidden(subject: Subject, tombstones: Iterable[Row], catalogs: Catalogs) -> bool:
    """Looking at each."""
    return any(stone.span.deleted >= subject.last and _covers(stone.named, subject, catalogs) for stone in tombstones)


class Tombstones:
    """All of a store, by what they name: there may be one for each run."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._by: dict[tuple[str, Any], list[tuple[int, dict[str, Value]]]] = {}
        for row in rows:
            self._by.setdefault(_place_of(row.named), []).append((row.span.deleted, row.named))

    def hide(self, subject: Subject, catalogs: Catalogs) -> bool:
        return any(
            deleted >= subject.last and _covers(stone, subject, catalogs)
            for place in _places_of(subject)
            for deleted, stone in self._by.get(place, ())
        )


def _place_of(stone: dict[str, Value]) -> tuple[str, Any]:
    if stone["run"] is not None:
        return "run", stone["run"]
    if stone["job"] is not None:
        return "job", (stone["job_namespace"], stone["job"])
    return "dataset", stone["dataset"]


def _places_of(subject: Subject) -> Iterator[tuple[str, Any]]:
    yield "run", subject.run
    yield "job", subject.job
    yield "job", subject.parent
    yield "dataset", subject.dataset
    if subject.dataset is not None:
        yield "dataset", None


def _covers(stone: dict[str, Value], subject: Subject, catalogs: Catalogs) -> bool:
    if stone["scope"] not in subject.scopes:
        return False
    job = (stone["job_namespace"], stone["job"])
    is_about = job in {(None, None), subject.job} or (stone["steps"] and subject.parent == job)
    if not is_about:
        return False
    if not all(stone[name] in {None, getattr(subject, name)} for name in ("run", "dataset", "life")):
        return False
    if stone["catalog_id"] is not None and not catalogs.is_of(stone["catalog_id"], subject.catalog, subject.dataset):
        return False
    up_to, snapshot = stone["up_to_snapshot"], subject.snapshot
    return up_to is None or (isinstance(up_to, int) and isinstance(snapshot, int) and snapshot <= up_to)
