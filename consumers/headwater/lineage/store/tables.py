"""All tables of a store, with their indexes: whatever opens one needs them complete."""

from __future__ import annotations

from headwater.lineage.bulk.tables import OWN
from headwater.lineage.sql.indexes import INDEXES
from headwater.lineage.sql.seed_catalog import DATABASES
from headwater.lineage.sql.tables import METADATA

__all__ = ["DATABASES", "INDEXES", "METADATA", "OWN"]
