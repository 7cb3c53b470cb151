"""The listener `jdbc`: writes events directly from a driver's spool into the store, for installations without a bus.

config         the options below `spark.headwater.jdbc.`
listener       the listener that the listener bus calls
store_writer   maps spool records to rows and dead letters, and writes them on a thread of its own
diagnosis      what `headwater doctor` checks about a store
"""

from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.listener.listener import JdbcFactory, JdbcListener

__all__ = ["JdbcConfig", "JdbcFactory", "JdbcListener"]
