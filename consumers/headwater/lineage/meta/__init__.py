"""The implementations of `headwater.lineage.api.LineageMeta`.

event_based    calls become events, events become rows: in a database, or in memory for tests
factories      opens one of them by name, also for event loops
"""

from headwater.lineage.meta.event_based import DatabaseLineageMeta, MemoryLineageMeta
from headwater.lineage.meta.factories import (
    AsyncLineageMeta,
    JdbcLineageMetaFactory,
    MemoryLineageMetaFactory,
    ThreadedLineageMeta,
    open_async_lineage_meta,
    open_lineage_meta,
)

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
