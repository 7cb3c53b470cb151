"""Which catalog a name stands for. `sql.catalogs` says the same in SQL.

A table's name carries the name of its catalog, as one application called it. A catalog is known by what it points at:
it may have several names, and one name may stand for several catalogs. Where it does, a table belongs to the one that
its data lie under, and to none where that can't be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.lineage.rows import Row
from headwater.lineage.rows.values import Value

SERVED: Final = "jdbc"
"""The type of catalogs whose datasets are called `<what it points at>.<table>`, and not by a path under it."""


def identity_text(kind: str, location: str) -> str:
    """A catalog's identity as a person writes it."""
    return f"{kind}:{location}"


class Catalogs:
    """Those of a store in memory."""

    def __init__(self, catalogs: Iterable[Row], names: Iterable[Row], datasets: Mapping[bytes, Row]) -> None:
        self._places: dict[Value, dict[str, Any]] = {row.id: row.named for row in catalogs}
        self._datasets = datasets
        self._of: dict[Value, set[Value]] = {}
        for row in names:
            self._of.setdefault(row.named["name"], set()).add(row.named["catalog_id"])

    def is_of(self, catalog: Value, name: Value, dataset: Value) -> bool:
        """Whether what is called by this name of a catalog, and is this dataset, belongs to a catalog."""
        meant = self._of.get(name, set())
        return catalog in meant and (len(meant) == 1 or self._lies_under(catalog, dataset))

    def _lies_under(self, catalog: Value, dataset: Value) -> bool:
        place, row = self._places.get(catalog), self._datasets.get(bytes(dataset)) if dataset else None  # type: ignore[arg-type]
        if place is None or row is None:
            return False
        namespace, name = (str(each) for each in row.key)
        whole = f"{namespace}{name}" if name.startswith("/") else f"{namespace}/{name}"
        return whole.startswith(f"{place['location']}{'.' if place['type'] == SERVED else '/'}")
