"""Opening a store: where it is, by whom, and that its tables are those that this code knows.

options      what says where a store is, as people write it
urls, jdbc   JDBC's URLs, SQLAlchemy's and paths, as one
engines      connections as each database needs them
opening      a store, ready to be written or asked
creating     its tables where there are none
versions     which version of them there is
migrations   the versions, and the scripts from one to the next
migrating    running these
steps        what they are made of
partitions   PostgreSQL's, by month
views        the seed-shaped ones, made by whoever may
factories    the entry point `jdbc`
size         how much it holds
status       how it stands, also where it can't be opened
troubles     the words of sql.troubles
"""

from headwater.lineage.sql.troubles import troubles
from headwater.lineage.store.factories import JdbcLineageMetaFactory
from headwater.lineage.store.opening import Store, open_store
from headwater.lineage.store.options import StoreOptions

__all__ = ["JdbcLineageMetaFactory", "Store", "StoreOptions", "open_store", "troubles"]
