"""The rows in a database: PostgreSQL, MySQL or MariaDB, SQLite.

tables           the tables, generated from the kinds of rows, their indexes, and the reading of rows
writer_tables    the tables that a writer keeps for itself, and those of aligned jobs and corrections
upsert           statements that merge rows as `rows.model.combine_rows` does in memory
key_lookup       selects rows by many keys at once
tombstones       which rows are hidden by a deletion, in SQL
catalogs         which catalog a table's name belongs to, in SQL
entity_queries   the entities of `lineage.api`, with predicates in SQL
pip5_*           Paimon PIP-5's tables as views
errors           translates errors of databases
locking          lets one process at a time change a schema

Importing this package completes METADATA: all tables of a store are in it.
"""

from headwater.lineage.sql.pip5_catalog import PIP5_DATABASES
from headwater.lineage.sql.pip5_views import create_views
from headwater.lineage.sql.tables import INDEXES, METADATA, select_rows, store_digest, table_of
from headwater.lineage.sql.writer_tables import DECISION_TABLES, WRITER_TABLES

__all__ = [
    "DECISION_TABLES",
    "INDEXES",
    "METADATA",
    "PIP5_DATABASES",
    "WRITER_TABLES",
    "create_views",
    "select_rows",
    "store_digest",
    "table_of",
]
