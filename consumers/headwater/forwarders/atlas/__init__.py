"""Events to Apache Atlas, by its REST API or by the topic that its hooks write to.

options    where changes go, and how qualified names end
types      the types that headwater registers
names      types and qualified names of datasets, columns, databases, jobs and runs
entities, changes, datasets, jobs, edges, mapping    from an event to changes: pure functions
resolving  from changes, and what Atlas has, to what is written: pure functions
messages   from changes to messages of the topic: pure functions
batches, rest, targets  how they get there
forwarder  the forwarder itself
"""

from headwater.forwarders.atlas.forwarder import AtlasForwarder

__all__ = ["AtlasForwarder"]
