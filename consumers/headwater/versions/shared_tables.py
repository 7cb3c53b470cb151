"""Finds the tables behind which nothing has to be loaded to compare others: all of these contain them.

What is behind a table that all contain is decided by its version. So it needn't be known, unless a table that is
compared, or one on the way to the shared ones, is contained in it as well: then that can be contained in another way,
too, and has to be the same on both.

Edges between tables are read level by level, up to the first tables that all share. Of what is behind these only one
thing is asked: whether it contains a table that was met on the way. That is seen from either end, so both are tried in
turns with a growing limit: a dimension is read by thousands, and a report is made from thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from sqlalchemy import Connection

from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.table_edges import can_load_behind, load_behind, load_neighbors

_FEW_EDGES: Final = 256
_GROWTH: Final = 4


class SharedTables:
    """The nearest tables that all of some tables contain, or are."""

    def __init__(self, connection: Connection, identities: Identities, tables: Collection[bytes]) -> None:
        self._tables = tables
        self._sources = NeighborTables(connection, identities, is_upward=True)
        self._targets = NeighborTables(connection, identities, is_upward=False)
        self._contained_in = {table: 1 << number for number, table in enumerate(tables)}
        """By which of the tables each table upstream is contained, one bit for each, and one for those of `include`."""
        self._by_all = (1 << len(tables)) - 1
        self._is_included = 1 << len(tables)

    def include(self, tables: Collection[bytes]) -> None:
        """Leave out no more these tables and all that they were ever made from."""
        for table in tables:
            self._contained_in[table] = self._contained_in.get(table, 0) | self._is_included
        self._spread(tables)

    def has_edge(self, target: bytes, source: bytes) -> bool:
        """Return whether a table that isn't left out is known to be made from another one, or from itself."""
        return target == source or source in self._sources.known.get(target, ())

    def nearest(self) -> frozenset[bytes]:
        """Return the nearest of them behind which nothing has to be loaded."""
        passed = set[bytes]()
        while True:
            met, nearest = self._walk(passed)
            too_near = self._too_near(nearest, met)
            if not too_near:
                return frozenset(nearest)
            passed |= too_near

    def _walk(self, passed: Collection[bytes]) -> tuple[set[bytes], set[bytes]]:
        """Return the tables that are met up to the nearest that all contain, and these."""
        while True:
            shared = {table for table, mask in self._contained_in.items() if mask == self._by_all}.difference(passed)
            met = _reach(self._tables, self._sources.known, shared)
            unknown = met - shared - self._sources.known.keys()
            if not unknown:
                return met, shared & met
            self._sources.load(unknown)
            self._spread(unknown)

    def _spread(self, tables: Iterable[bytes]) -> None:
        """Tell the tables upstream of these by which tables they are contained."""
        masks, waiting = self._contained_in, list(tables)
        while waiting:
            one = waiting.pop()
            mask = masks.get(one, 0)
            for source in self._sources.known.get(one, ()):
                known = masks.get(source, 0)
                if mask | known != known:
                    masks[source] = mask | known
                    waiting.append(source)

    def _too_near(self, nearest: Collection[bytes], met: Collection[bytes]) -> set[bytes]:
        """Return the shared tables that contain one of those that were met."""
        most = _FEW_EDGES
        while nearest:
            is_known = self._sources.load_all(nearest, most)
            self._spread([*self._sources.known])
            if is_known:
                return {table for table in nearest if not _behind(table, self._sources.known).isdisjoint(met)}
            if self._targets.load_all(met, most):
                made_of_met = {target for table in met for target in _behind(table, self._targets.known)}
                return made_of_met.intersection(nearest)
            most *= _GROWTH
        return set()


class NeighborTables:
    """The tables that others were made from, or that were made from others, as far as they were loaded. Tables that
    were ever linked count as made from each other: their identities can be several tables."""

    def __init__(self, connection: Connection, identities: Identities, *, is_upward: bool) -> None:
        self._connection = connection
        self._identities = identities
        self._is_upward = is_upward
        self.known: dict[bytes, set[bytes]] = {}

    def load(self, tables: Collection[bytes], most: int | None = None) -> int | None:
        """Load the neighbors of tables. Return how many edges that took; None, and load nothing, if there are more than
        `most`."""
        found = load_neighbors(self._connection, tables, is_upward=self._is_upward, most=most)
        if most is not None and len(found) > most:
            return None
        self._identities.load(tables)
        for table in tables:
            self.known[table] = self._identities.linked({table}) - {table}
        for here, there in found:
            if here != there:
                self.known[here].add(there)
        return len(found)

    def load_all(self, tables: Collection[bytes], most: int) -> bool:
        """Load all that is behind tables. Return whether that is known; it isn't if there are more edges than these."""
        unknown = _reach(tables, self.known) - self.known.keys()
        if unknown and can_load_behind(self._connection) and self._identities.are_all_single:
            return self._load_behind(unknown, most)
        reached, waiting = set(tables), set(tables)
        while waiting:
            unknown = waiting - self.known.keys()
            took = self.load(unknown, most) if unknown else 0
            if took is None:
                return False
            most -= took
            waiting = {other for table in waiting for other in self.known[table]} - reached
            reached |= waiting
        return True

    def _load_behind(self, tables: Collection[bytes], most: int) -> bool:
        found = load_behind(self._connection, tables, is_upward=self._is_upward, most=most)
        if len(found) > most:
            return False
        for table in {*tables, *(there for _, there in found)}:
            self.known.setdefault(table, set())
        for here, there in found:
            if here != there:
                self.known[here].add(there)
        return True


class TablesBehind:
    """All tables that some were ever made from."""

    def __init__(self, connection: Connection, identities: Identities) -> None:
        self._sources = NeighborTables(connection, identities, is_upward=True)
        self._known: dict[bytes, set[bytes]] = {}

    def of(self, table: bytes) -> set[bytes]:
        """Return the tables that a table was made from, by any path."""
        known = self._known.get(table)
        if known is None:
            most = _FEW_EDGES
            while not self._sources.load_all([table], most):
                most *= _GROWTH
            known = self._known[table] = _behind(table, self._sources.known)
        return known


def _behind(table: bytes, neighbors: Mapping[bytes, Collection[bytes]]) -> set[bytes]:
    """Return all that is behind a table; the table, too, if it is behind itself."""
    return _reach(neighbors.get(table, ()), neighbors)


def _reach(
    tables: Collection[bytes], neighbors: Mapping[bytes, Collection[bytes]], ends: Collection[bytes] = frozenset()
) -> set[bytes]:
    """Return these tables and all behind them, but for what is behind some of them."""
    found, waiting = set(tables), list(tables)
    while waiting:
        one = waiting.pop()
        if one not in ends:
            new = set(neighbors.get(one, ())) - found
            found |= new
            waiting += new
    return found
