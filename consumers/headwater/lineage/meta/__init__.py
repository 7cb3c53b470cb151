"""The implementations of `headwater.lineage.api.LineageMeta`.

event_based    base class: calls become events, events become rows
memory         rows in memory, for tests
database       rows in a database
factories      opens one of them by name, also for event loops
"""

from headwater.lineage.meta.database import DatabaseLineageMeta
from headwater.lineage.meta.factories import (
    AsyncLineageMeta,
    JdbcLineageMetaFactory,
    MemoryLineageMetaFactory,
    ThreadedLineageMeta,
    open_async_lineage_meta,
    open_lineage_meta,
)
from headwater.lineage.meta.memory import MemoryLineageMeta

__all__ = [
    "AsyncLineageMeta",
    "DatabaseLineageMeta",
    "JdbcLineageMetaFactory",
    "MemoryLineageMeta",
    "MemoryLineageMetaFactory",
    "ThreadedLineageMeta",
    "open_async_lineage_meta",
    "open_lineage_meta",
]
