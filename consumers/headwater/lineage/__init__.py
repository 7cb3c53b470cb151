"""The lineage store and the questions asked of it.

asking, asking_async   `Lineage` and `AsyncLineage`: a store that is asked
questions              each question, as a function of a connection
store                  opening a store
api, meta              the store's interface for others, and those that implement it
law, rows, sql         how events become rows, in memory and in databases
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {"AsyncLineage": "headwater.lineage.asking_async", "Lineage": "headwater.lineage.asking"}


def __getattr__(name: str) -> Any:
    """Whoever only tells events to a store doesn't import what asks it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
