"""What a catalog's options say about lineage: whether the tables that jobs read and write are reported
(`table-lineage`), and the versions of them (`data-lineage`). They are immutable: in one driver the first declared
value holds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.events import CatalogOptionsDeclared
from headwater.events.base import StringMap
from headwater.listeners.capture.context import SessionNamedCatalog

_LOG = logging.getLogger(__name__)
TABLE_LINEAGE: Final = "table-lineage"
DATA_LINEAGE: Final = "data-lineage"
_DECLARED_KEYS: Final = (TABLE_LINEAGE, DATA_LINEAGE, "lineage-meta")
_ON: Final = "true"
_OFF: Final = "false"


class LineageSwitches(NamedTuple):
    """What isn't recorded of a catalog's tables."""

    table_lineage: bool = False
    """Its tables don't occur in what jobs read and wrote: neither shapes nor commits have them."""
    data_lineage: bool = False
    """Commits have its tables without the versions that were read or made."""


def switches_of(catalog: SessionNamedCatalog) -> LineageSwitches:
    """What this catalog's options switch off. Without table lineage there is nothing that versions could belong to."""
    table, data = (_switch(catalog, key) for key in (TABLE_LINEAGE, DATA_LINEAGE))
    return LineageSwitches(table_lineage=not table, data_lineage=not (table and data))


def _switch(catalog: SessionNamedCatalog, key: str) -> bool:
    """On, unless it says `false`."""
    return _option(catalog.options, key).lower() != _OFF


def _option(options: Mapping[str, str], key: str) -> str:
    found = next((text for name, text in options.items() if name.lower() == key), _ON)
    return found.strip()


class CatalogDeclarations:
    """For one producer: each catalog is reported once, when it is first used."""

    def __init__(self) -> None:
        self._first: dict[object, SessionNamedCatalog] = {}
        self._warned: set[object] = set()

    def of(self, catalog: SessionNamedCatalog) -> tuple[CatalogOptionsDeclared, ...]:
        """What has to be reported of a catalog that is used: nothing, when it is known."""
        known = self._first.get(_identity(catalog))
        if known is None:
            self._first[_identity(catalog)] = catalog
            return (_declare(catalog),)
        self._warn(known, catalog)
        return ()

    def _warn(self, known: SessionNamedCatalog, catalog: SessionNamedCatalog) -> None:
        """Once for each value that isn't the first one."""
        first, now = _declared_options(known), _declared_options(catalog)
        changed = (_identity(catalog), tuple(now.items()))
        if first == now or changed in self._warned:
            return
        self._warned.add(changed)
        _LOG.warning(
            "catalog %s: %s were declared as %s and are %s now: they can't be changed, so what was declared first "
            "holds; use another catalog, or another driver, for other values",
            catalog.name,
            " and ".join(_DECLARED_KEYS[:2]),
            first,
            now,
        )

    def omits(self, catalog: SessionNamedCatalog) -> LineageSwitches:
        """By the options that were declared first."""
        return switches_of(self._first.get(_identity(catalog), catalog))


def _identity(catalog: SessionNamedCatalog) -> object:
    """What it points at; a catalog of which that isn't known is its name and class."""
    return catalog.context.id or (catalog.name, catalog.class_name)


def _declare(catalog: SessionNamedCatalog) -> CatalogOptionsDeclared:
    return CatalogOptionsDeclared(
        context=catalog.context,
        table_lineage=_switch(catalog, TABLE_LINEAGE),
        data_lineage=_switch(catalog, DATA_LINEAGE),
        options=StringMap(_declared_options(catalog)),
    )


def _declared_options(catalog: SessionNamedCatalog) -> dict[str, str]:
    """What concerns lineage, apart from how to reach the store: that never rides on the bus."""
    return {key.lower(): text for key, text in catalog.options.items() if key.lower() in _DECLARED_KEYS}
