"""Opens a store: finds the database, connects, and checks that it has the tables that this version needs.

options          where a store is, as people configure it
urls, jdbc       parse JDBC URLs, SQLAlchemy URLs and paths
engines          connections with each database's settings
store            an open store
opening          opens a store for writing or reading
creation         creates the tables and the PIP-5 views, tells their version, and runs the scripts of migrations
migrations       the versions, and the scripts between them
migration_steps  idempotent steps of the scripts
status           how much a store holds, and its state
"""

from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.store.opening import open_store
from headwater.lineage.store.options import StoreOptions
from headwater.lineage.store.store import BorrowedStore, Store

__all__ = ["BorrowedStore", "Store", "StoreOptions", "open_store", "translate_errors"]
