"""The pipeline on Spark into a lake: rows as Iceberg tables, merged by Spark's MERGE.

tables   a lake's tables in a Spark session: makes them, merges rows, reads offsets
arrow    rows as Arrow data, on executors and on the driver
meta     what the driver itself writes: offsets, gaps, deletions
writer   has a micro-batch read by tasks and merged
upkeep   compacts and expires, by Iceberg's procedures

The address, the tables and the statements are in `headwater.lineage.lake`.
"""

from headwater.consumers.spark.pipeline.lake.tables import LakeTables
from headwater.consumers.spark.pipeline.lake.upkeep import compact, expire

__all__ = ["LakeTables", "compact", "expire"]
