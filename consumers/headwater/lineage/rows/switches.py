"""Catalogs whose options switch lineage off: `table-lineage` the tables that jobs use, `data-lineage` their versions.

The options are immutable: of several declarations the first one holds, by the events' times, whichever came first. What
a driver reports that was started with other options is stored and isn't shown. `sql.tombstones` implements the same
rules in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from headwater.lineage.rows.catalogs import CatalogNames
from headwater.lineage.rows.model import Row
from headwater.lineage.rows.tombstones import DATA, DeletionSubject

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
