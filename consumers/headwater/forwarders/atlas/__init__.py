"""Events to Apache Atlas, by its REST API or by the topic that its hooks write to.

options    where changes go, and how qualified names end
types      the types that headwater registers
names      types and qualified names of datasets, columns, databases, jobs and runs
entities, changes, datasets, jobs, edges    from an event to changes: pure functions
resolving  from changes, and what Atlas has, to what is written: pure functions
messages   from changes to batches and messages of the topic: pure functions
rest       how they get there by the API
forwarder  the forwarder itself, and what it sends for an event
"""

from headwater.forwarders.atlas.forwarder import AtlasForwarder

__all__ = ["AtlasForwarder"]
