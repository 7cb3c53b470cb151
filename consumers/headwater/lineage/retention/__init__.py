"""Deleting lineage, expiring it, and erasing from disk what is hidden.

deletion   the events that delete, expire or unify, and how much each would hide
purge      erases hidden rows from disk, without changing what is visible
aging      removes old records of runs
"""

from headwater.lineage.retention.aging import REMOVED_BY, count_old, remove_old
from headwater.lineage.retention.deletion import count_hidden, delete_job, expire_before, expire_snapshots, unify
from headwater.lineage.retention.purge import PurgeResult, count_erasable, purge

__all__ = [
    "REMOVED_BY",
    "PurgeResult",
    "count_erasable",
    "count_hidden",
    "count_old",
    "delete_job",
    "expire_before",
    "expire_snapshots",
    "purge",
    "remove_old",
    "unify",
]
