"""Events for Spark: `from_avro` alone can't read them, because a header stands before each event's bytes.

Importing this needs no pyspark; calling it does.
"""

from headwater.consumers.spark.errors import MissingSparkError
from headwater.consumers.spark.reader import classify, events, schemas_in
from headwater.consumers.spark.session import AVRO_LIMITS

__all__ = ["AVRO_LIMITS", "MissingSparkError", "classify", "events", "schemas_in"]
