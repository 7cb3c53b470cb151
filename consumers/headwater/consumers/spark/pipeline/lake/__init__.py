"""The pipeline on Spark into a lake: rows as tables of Iceberg or Delta, merged by Spark's MERGE.

tables   a lake's tables in a Spark session: makes them, merges rows, reads offsets, compacts and expires
meta     what the driver itself writes: offsets, gaps, deletions
writer   has a micro-batch read by tasks and merged

The address, the tables and the statements are in `headwater.lineage.lake`.
"""

from headwater.consumers.spark.pipeline.lake.tables import LakeTables, compact, expire

__all__ = ["LakeTables", "compact", "expire"]
