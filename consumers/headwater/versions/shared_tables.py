"""Finds the tables behind which nothing has to be loaded to compare others: all of these contain them.

What is behind a table that all contain is decided by its version. So it needn't be known, unless a table that is
compared, or one on the way to the shared ones, is contained in it as well: then that can be contained in another way,
too, and has to be the same on both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from sqlalchemy import Connection

from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.table_edges import load_edges_upstream

Edges = frozenset[tuple[bytes, bytes]]
"""Which tables were ever made from which: pairs of target and source."""


def load_edges(connection: Connection, identities: Identities, tables: Collection[bytes]) -> Edges:
    """Load the edges upstream of tables, behind all identities that any of them ever had."""
    found, wanted = set[tuple[bytes, bytes]](), identities.linked(tables)
    known = set[bytes]()
    while wanted:
        known |= wanted
        found |= load_edges_upstream(connection, wanted)
        met = {end for pair in found for end in pair}
        wanted = identities.linked(met) - known - met
        known |= met
    return frozenset(found)


def shared_by_all(
    edges: Edges, identities: Identities, tables: Collection[bytes], needed: Collection[bytes] = ()
) -> frozenset[bytes]:
    """Return the nearest tables that all of these contain, or are, and behind which nothing has to be loaded. `needed`
    are tables behind which it has to be."""
    sources = _sources(edges, identities)
    contained = [_upstream({each}, sources) for each in tables]
    left_out = reduce(set.__and__, contained).difference(needed)
    while True:
        seen = _upstream(tables, sources, left_out)
        nearest = left_out & seen
        too_near = {each for each in nearest if not seen.isdisjoint(_upstream(sources.get(each, ()), sources))}
        if not too_near:
            return frozenset(nearest)
        left_out -= too_near


def with_upstream(edges: Edges, identities: Identities, tables: Collection[bytes]) -> set[bytes]:
    """Return these tables and all that they were ever made from."""
    return _upstream(tables, _sources(edges, identities))


def _sources(edges: Edges, identities: Identities) -> Mapping[bytes, set[bytes]]:
    """Return of what each table was ever made. Tables that were ever linked count as made from each other, and so are
    never left out: their identities can be several tables."""
    found: dict[bytes, set[bytes]] = {}
    for target, source in edges:
        if target != source:
            found.setdefault(target, set()).add(source)
    for each in {end for pair in edges for end in pair}:
        others = identities.linked({each}) - {each}
        if others:
            found.setdefault(each, set()).update(others)
            for other in others:
                found.setdefault(other, set()).add(each)
    return found


def _upstream(
    tables: Collection[bytes], sources: Mapping[bytes, Collection[bytes]], ends: Collection[bytes] = frozenset()
) -> set[bytes]:
    """Return these tables and all upstream of them, but for what is behind some of them."""
    found, waiting = set(tables), list(tables)
    while waiting:
        one = waiting.pop()
        if one not in ends:
            new = set(sources.get(one, ())) - found
            found |= new
            waiting += new
    return found
