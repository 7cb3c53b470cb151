"""What Spark lacks before it can read events."""

from __future__ import annotations

from headwater.errors import PluginError


class MissingSparkError(PluginError):
    """pyspark, or Spark's Avro data source, isn't there; the message says what to add."""
