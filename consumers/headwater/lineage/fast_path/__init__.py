"""Maps the bytes of many events to merged rows, with the same result as `mapping.map_event`, but ten thousand events a
second.

batch_mapper       maps a batch; whatever isn't a common case is decoded and goes through `map_event`
commit_templates   `Committed`, the most frequent event
repeated_rows      rows that many events repeat
"""

from headwater.lineage.fast_path.batch_mapper import BatchMapper, MappedBatch

__all__ = ["BatchMapper", "MappedBatch"]
