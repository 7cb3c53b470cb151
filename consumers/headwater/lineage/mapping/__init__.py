"""Turns events into rows: what one event says about the store, independent of the order in which events arrive.

events                                  `map_event`, the entry point: what the rows of an event are
row_builder                             builds the rows of one event: times, stamps, keys
catalog, commits, jobs, administration  the rows of each family of events
batch_mapper                            maps the bytes of many events
"""

from headwater.lineage.mapping.batch_mapper import BatchMapper, MappedBatch
from headwater.lineage.mapping.events import map_event

__all__ = ["BatchMapper", "MappedBatch", "map_event"]
