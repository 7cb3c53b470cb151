"""What hides rows: deletions of sets of rows, and catalogs whose options switch lineage off.

A tombstone names a set and hides everything that events said about it up to a time.

The options are `table-lineage`, the tables that jobs use, and `data-lineage`, their versions. They are immutable: of
several declarations the first one holds, by the events' times, whichever came first. What a driver reports that was
started with other options is stored and isn't shown.

A table's name contains the name of its catalog as one application called it. A catalog is identified by what it points
at: it can have several names, and one name can stand for several catalogs. In that case a table belongs to the catalog
whose location contains its data, and to none if that is unknown.

`sql.tombstones` and `sql.catalogs` implement the same rules in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events.administration import LineageScope
from headwater.lineage.rows.model import Row
from headwater.lineage.rows.values import Value

SERVED: Final = "jdbc"
"""The type of catalogs that name their datasets `<location>.<table>`, and not by a path below the location."""


class CatalogNames:
    """The catalogs of a store in memory, with all names that they have had."""

    def __init__(self, catalogs: Iterable[Row], names: Iterable[Row], datasets: Mapping[bytes, Row]) -> None:
        self._places: dict[Value, dict[str, Any]] = {row.id: row.as_dict for row in catalogs}
        self._datasets = datasets
        self._of: dict[Value, set[Value]] = {}
        for row in names:
            self._of.setdefault(row.as_dict["name"], set()).add(row.as_dict["catalog_id"])

    def is_of(self, catalog: Value, name: Value, dataset: Value) -> bool:
        """Return whether a table with this catalog name and dataset belongs to the catalog."""
        meant = self._of.get(name, set())
        return catalog in meant and (len(meant) == 1 or self._lies_under(catalog, dataset))

    def _lies_under(self, catalog: Value, dataset: Value) -> bool:
        place, row = self._places.get(catalog), self._datasets.get(bytes(dataset)) if dataset else None  # type: ignore[arg-type]
        if place is None or row is None:
            return False
        namespace, name = (str(each) for each in row.key)
        whole = f"{namespace}{name}" if name.startswith("/") else f"{namespace}/{name}"
        return whole.startswith(f"{place['location']}{'.' if place['type'] == SERVED else '/'}")


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


TABLE_LINEAGE: Final = "table-lineage"
DATA_LINEAGE: Final = "data-lineage"
SWITCHES: Final = (TABLE_LINEAGE, DATA_LINEAGE)
OFF: Final = "false"


def switches_over(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options that switch off what deletions of these scopes hide. Without tables there are no versions."""
    return SWITCHES if scopes == DATA else (TABLE_LINEAGE,)


class CatalogSwitches:
    """The options of a store's catalogs that switch lineage off, as they were declared first."""

    def __init__(self, options: Iterable[Row]) -> None:
        first: dict[tuple[Any, ...], Row] = {}
        for row in options:
            catalog, name, option, _ = row.key
            if option in SWITCHES:
                key = (option, catalog, None if catalog else name)
                first[key] = min(first.get(key, row), row, key=lambda each: (each.times.first, each.id))
        keys = (row.key for row in first.values())
        self._off = [(option, catalog, name) for catalog, name, option, value in keys if value == OFF]

    def __bool__(self) -> bool:
        """Whether any catalog has lineage switched off."""
        return bool(self._off)

    def hide(self, subject: DeletionSubject, catalogs: CatalogNames) -> bool:
        """Return whether the lineage of the subject's catalog is switched off. A catalog of which it isn't known what
        it points at is known by its name."""
        switches = switches_over(subject.scopes)
        return any(
            option in switches
            and (catalogs.is_of(catalog, subject.catalog, subject.dataset) if catalog else subject.catalog == name)
            for option, catalog, name in self._off
        )
