"""Replay: rebuilds a lineage store from its events, and puts the rebuilt one in the place of the old one.

ranges       the interface of a bus that is read from offsets to offsets, and a local log as one
kafka_range, archive_range   the other buses
filling      runs the writer's pipelines from a source into fresh tables, and shows how far they are
preparation  what is checked before: the live store's version, the same sources, and no hole in what they have
replay       a whole replay: fill, lock, read the rest, switch over

The tables themselves are the room `headwater.lineage.replacement`.
"""
