"""The stores that are here, behind the interface of `headwater.lineage.api`.

told       calls become events, as everything that changes the store is one
evented    what all stores have in common that keep rows
memory     rows in memory, for tests
database   rows in a database
on_threads any of them for an event loop
opening    one by its name
"""

from headwater.lineage.meta.database import DatabaseLineageMeta
from headwater.lineage.meta.memory import MemoryLineageMeta, MemoryLineageMetaFactory
from headwater.lineage.meta.on_threads import LineageMetaOnThreads
from headwater.lineage.meta.opening import open_async_lineage_meta, open_lineage_meta

__all__ = [
    "DatabaseLineageMeta",
    "LineageMetaOnThreads",
    "MemoryLineageMeta",
    "MemoryLineageMetaFactory",
    "open_async_lineage_meta",
    "open_lineage_meta",
]
