"""The rows in a database: PostgreSQL, MySQL or MariaDB, SQLite.

tables   the tables, made from the kinds of rows
indexes  what is looked for in them, attached to the same metadata
upsert   merging rows into them, as `rows.kinds.merged` does in memory
stored   rows as they come back
seed_views   Paimon PIP-5's tables, for whoever asks by SQL
troubles     what databases say of troubles, in our words
"""

from headwater.lineage.sql.indexes import INDEXES
from headwater.lineage.sql.seed_views import create_views
from headwater.lineage.sql.stored import digest_of, rows_in
from headwater.lineage.sql.tables import METADATA, table_of
from headwater.lineage.sql.upsert import merge_into

__all__ = ["INDEXES", "METADATA", "create_views", "digest_of", "merge_into", "rows_in", "table_of"]
