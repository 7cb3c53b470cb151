"""Deletions of sets of rows. A tombstone names a set and hides everything that events said about it up to a time.

`sql.tombstones` implements the same rules in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from headwater.events.administration import LineageScope
from headwater.lineage.rows import Row
from headwater.lineage.rows.catalogs import CatalogNames
from headwater.lineage.rows.values import Value

TABLES_OF: Final = {
    "SOURCE": (LineageScope.ALL.value, LineageScope.TABLES.value, LineageScope.SOURCE_TABLES.value),
    "SINK": (LineageScope.ALL.value, LineageScope.TABLES.value, LineageScope.SINK_TABLES.value),
}
"""The deletion scopes that include table lineage, by side."""
DATA: Final = (LineageScope.ALL.value, LineageScope.DATA.value)
"""The deletion scopes that include data lineage."""


@dataclass(frozen=True)
class DeletionSubject:
    """What a tombstone is compared with: a fact that a job reported."""

    scopes: tuple[str, ...]
    last: int
    job: tuple[Value, Value]
    parent: tuple[Value, Value]
    run: Value
    dataset: Value
    catalog: Value = None
    """The catalog's name, as it stands in the table's name."""
    generation: Value = None
    snapshot: Value = None


def deletion_subject(
    row: Row, scopes: tuple[str, ...], by: dict[str, Any] | None = None, place: Row | None = None
) -> DeletionSubject:
    """Describe a row for tombstones. `by` has the columns of its commit, where the row itself doesn't say which job
    reported it. A read or a write comes with its place."""
    values = row.as_dict if place is None else row.as_dict | place.as_dict
    by = values if by is None else by
    return DeletionSubject(
        scopes=scopes,
        last=row.times.last,
        job=(by["job_namespace"], by["job"]),
        parent=(by["parent_namespace"], by["parent_job"]),
        run=by["run"],
        dataset=values["dataset"],
        catalog=values["catalog"],
        generation=values.get("generation"),
        snapshot=values.get("snapshot"),
    )


def is_hidden(subject: DeletionSubject, tombstones: Iterable[Row], catalogs: CatalogNames) -> bool:
    """Return whether any of these tombstones hides the subject."""
    return any(
        stone.times.deleted >= subject.last and _covers(stone.as_dict, subject, catalogs) for stone in tombstones
    )


class TombstoneIndex:
    """All tombstones of a store, indexed by what they name. There can be one for each run."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._by: dict[tuple[str, Any], list[tuple[int, dict[str, Value]]]] = {}
        for row in rows:
            self._by.setdefault(_place_of(row.as_dict), []).append((row.times.deleted, row.as_dict))

    def hide(self, subject: DeletionSubject, catalogs: CatalogNames) -> bool:
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


def _places_of(subject: DeletionSubject) -> Iterator[tuple[str, Any]]:
    yield "run", subject.run
    yield "job", subject.job
    yield "job", subject.parent
    yield "dataset", subject.dataset
    if subject.dataset is not None:
        yield "dataset", None


def _covers(stone: dict[str, Value], subject: DeletionSubject, catalogs: CatalogNames) -> bool:
    if stone["scope"] not in subject.scopes:
        return False
    job = (stone["job_namespace"], stone["job"])
    is_about = job in {(None, None), subject.job} or (stone["with_steps"] and subject.parent == job)
    if not is_about:
        return False
    if not all(stone[name] in {None, getattr(subject, name)} for name in ("run", "dataset", "generation")):
        return False
    if stone["catalog_id"] is not None and not catalogs.is_of(stone["catalog_id"], subject.catalog, subject.dataset):
        return False
    up_to, snapshot = stone["up_to_snapshot"], subject.snapshot
    return up_to is None or (isinstance(up_to, int) and isinstance(snapshot, int) and snapshot <= up_to)
