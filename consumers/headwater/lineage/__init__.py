"""The lineage store and the questions it answers.

client           `Lineage` and `AsyncLineage`: ask a store
questions        each question, as a function of a connection
store            opens a store: addresses, engines, migrations
api, meta        Paimon PIP-5's interface and its implementations
mapping          turns events into rows
rows, sql        the tables, in memory and in databases
bulk             writes many rows at once
maintenance      deletes, erases and removes what is old, and makes partitions
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Import the client only when somebody asks for it: a driver that only writes doesn't need it."""
    if name not in {"AsyncLineage", "Lineage"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("headwater.lineage.client"), name)
