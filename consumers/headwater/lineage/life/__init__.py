"""Lineage is deleted, expires, and goes from the disk.

deleting   drafts of the events that delete, and how much each would hide
purging    what is hidden goes from the disk, without changing what is visible
unifying   drafts of the event that makes one dataset of several
"""

from headwater.lineage.life.deleting import delete_job, expire_before, expire_snapshots, hidden_by
from headwater.lineage.life.purging import Purged, purge
from headwater.lineage.life.unifying import unify

__all__ = ["Purged", "delete_job", "expire_before", "expire_snapshots", "hidden_by", "purge", "unify"]
