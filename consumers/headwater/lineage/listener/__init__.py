"""The listener `jdbc`: events straight from a driver's spool into the store, for those without a bus.

config      what stands under `spark.headwater.jdbc.`
listener    what the listener bus sees
writing     one batch into the store, on a thread of its own
records     records of a spool as what they tell, and as dead letters
cutting     connections that don't answer are cut, and taken to be dead
examining   what `headwater doctor` finds out about a store
"""

from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.listener.listener import JdbcFactory, JdbcListener

__all__ = ["JdbcConfig", "JdbcFactory", "JdbcListener"]
