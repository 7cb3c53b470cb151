"""The store as tables of Iceberg or Delta, for lineage that outgrows a database. Spark writes it, any engine reads it.

address         `iceberg:CATALOG.NAMESPACE`, `delta:CATALOG.NAMESPACE`
formats         the statements of each table format
merging         the tables, and the MERGE of each, from the declarations of rows
dbapi           the DB-API, as both dialects share it
dialect         DuckDB for SQLAlchemy, so that the questions can be asked
reading         opens a lake to ask it: DuckDB reads the tables' files
spark_dialect   Spark's SQL for SQLAlchemy
spark_reading   opens a lake to ask it with a session of Spark

Nothing here imports pyspark: `headwater.consumers.spark.pipeline.lake` writes.
"""

from headwater.lineage.lake.address import LakeAddress

__all__ = ["LakeAddress"]
