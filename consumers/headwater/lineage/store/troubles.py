"""What goes wrong with a store: the same words wherever a database says it."""

from __future__ import annotations

from headwater.lineage.sql.troubles import (
    StoreAccessError,
    StoreBrokenError,
    StoreBusyError,
    StoreDataError,
    StoreFullError,
    StoreRightsError,
    StoreSchemaError,
    StoreUnreachableError,
    kind_of,
    trouble_of,
    troubles,
    words_of,
)

__all__ = [
    "StoreAccessError",
    "StoreBrokenError",
    "StoreBusyError",
    "StoreDataError",
    "StoreFullError",
    "StoreRightsError",
    "StoreSchemaError",
    "StoreUnreachableError",
    "kind_of",
    "trouble_of",
    "troubles",
    "words_of",
]
