"""Reads events with Spark. `from_avro` alone can't, because a header precedes each event's bytes.

Importing this package doesn't need pyspark; calling its functions does.
"""

from headwater.consumers.spark.reader import classify, events
from headwater.consumers.spark.session import AVRO_LIMITS, MissingSparkError

__all__ = ["AVRO_LIMITS", "MissingSparkError", "classify", "events"]
