"""Which catalog a table's name belongs to. `sql.catalogs` implements the same rules in SQL.

A table's name contains the name of its catalog as one application called it. A catalog is identified by what it points
at: it can have several names, and one name can stand for several catalogs. In that case a table belongs to the catalog
whose location contains its data, and to none if that is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.lineage.rows import Row
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
