"""Replay: rebuilds a lineage store from its events, and puts the rebuilt one in the place of the old one.

ranges       the interface of a bus that is read from offsets to offsets
kafka_range, log_range, archive_range   the buses
coverage     what the sources no longer have of what a store has read
filling      runs the writer's pipelines from a source into fresh tables
replay       a whole replay: fill, compare, catch up, switch over
progress     how far it is, and how long it will take

The tables themselves are the room `headwater.lineage.replacement`.
"""
