"""Turns events into rows: what one event says about the store, independent of the order in which events arrive.

events                                  the entry points: the rows of one event, or of many encoded ones
row_builder                             builds the rows of one event: times, stamps, keys
catalog, commits, jobs, administration  the rows of each family of events
"""

from headwater.lineage.mapping.events import BatchMapper, MappedBatch, map_event

__all__ = ["BatchMapper", "MappedBatch", "map_event"]
