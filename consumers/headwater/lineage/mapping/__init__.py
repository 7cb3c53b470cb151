"""Turns events into rows: what one event says about the store, independent of the order in which events arrive.

events                                  `map_event`, the entry point
row_builder                             builds the rows of one event: times, stamps, keys
catalog, commits, jobs, administration  the rows of each family of events
"""

from headwater.lineage.mapping.events import map_event

__all__ = ["map_event"]
