"""The store as Iceberg tables, for lineage that outgrows a database. Spark writes it, any engine reads it.

address     `iceberg:CATALOG.NAMESPACE`
merging     the tables, and the MERGE of each, from the declarations of rows
dialect     DuckDB for SQLAlchemy, so that the questions can be asked
reading     opens a lake to ask it: DuckDB reads the tables' files

Nothing here imports pyspark: `headwater.consumers.spark.pipeline.lake` writes.
"""

from headwater.lineage.lake.address import LakeAddress

__all__ = ["LakeAddress"]
