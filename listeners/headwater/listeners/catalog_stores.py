"""Options of catalogs that choose a lineage store, as Paimon PIP-5 has them: refused where they would do nothing.

A driver delivers to its listeners, and events of all catalogs go the same way. So `spark.sql.catalog.<name>.jdbc.url`
holds only as long as the listener `jdbc` writes there; anything else is an error that says what to set.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from headwater.errors import ConfigurationError

_OPTION: Final = re.compile(
    r"spark\.sql\.catalog\.(?P<catalog>[^.]+)\.(?P<option>lineage-meta|jdbc\.url)", re.IGNORECASE
)
_URL: Final = "jdbc.url"
_META: Final = "lineage-meta"
_LISTENER: Final = "jdbc"
_LISTENER_URL: Final = "spark.headwater.jdbc.url"


def find_catalog_stores(conf: Mapping[str, str], listeners: Collection[str]) -> Iterator[ConfigurationError]:
    """Yield an error for each catalog whose options choose a store that nothing in this driver fills.

    Other options that begin with `jdbc.` are those of a catalog itself: Iceberg's JdbcCatalog has `jdbc.user`.
    """
    chosen: dict[str, dict[str, str]] = {}
    for key, value in conf.items():
        found = _OPTION.fullmatch(key)
        if found is not None:
            chosen.setdefault(found["catalog"], {})[found["option"].lower()] = value.strip()
    for catalog, options in sorted(chosen.items()):
        meta = options.get(_META, _LISTENER)
        key = f"spark.sql.catalog.{catalog}.{_URL if _URL in options else _META}"
        if meta != _LISTENER:
            yield ConfigurationError(
                f"{key} chooses no store: a driver fills none of its own kind. Let its events go to a bus "
                f"(spark.headwater.listeners=kafka), and fill the store by `headwater writer run --lineage-meta {meta}`"
            )
        elif _LISTENER not in listeners or options.get(_URL, conf.get(_LISTENER_URL)) != conf.get(_LISTENER_URL):
            yield ConfigurationError(
                f"{key} chooses no store: events go where the driver's listeners send them. Set "
                f"spark.headwater.listeners=jdbc and {_LISTENER_URL} to the same; or let a writer "
                f"fill a store of this catalog alone: `headwater writer run --catalog-store {catalog}=URL`"
            )
