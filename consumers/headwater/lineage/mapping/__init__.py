"""Turns events into rows: what one event says about the store, independent of the order in which events arrive.

events                                  `map_event`, the entry point: what the rows of an event are
row_builder                             builds the rows of one event: times, stamps, keys
catalog, commits, jobs, administration  the rows of each family of events
batch_mapper                            maps the bytes of many events, with the same result as `map_event`
event_templates                         recognises events of a known shape
row_comparison                          finds out where the values of rows come from
row_templates                           renders rows from the values of an event
repeated_rows                           rows that many events repeat
"""

from headwater.lineage.mapping.batch_mapper import BatchMapper, MappedBatch
from headwater.lineage.mapping.events import map_event

__all__ = ["BatchMapper", "MappedBatch", "map_event"]
