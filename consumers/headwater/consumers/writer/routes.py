"""Decides which stores an event's rows go to, where several share a bus.

A store is for some catalogs, by their names. The main store is for all others, and for tables without a catalog.

- An event about tables goes to the stores of all of their catalogs, with all of its rows. So a commit that reads from
  one catalog and writes to another is complete in both.
- An event about no table (runs, heartbeats, gaps, deletions, unifications) goes to all stores.
- That an event arrived is recorded in all stores; otherwise a store would report it as missing.

The route depends only on the event, so a replay of the bus leads to the same rows in each store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from headwater.events.administration import CatalogOptionsDeclared
from headwater.events.avro import Codec, UnknownEvent
from headwater.events.catalog import CatalogModification
from headwater.events.envelope import Event
from headwater.events.jobs import Committed, JobLineage, StatementFailed
from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t

MAIN_STORE: Final = ""
"""The name of the main store."""
SHARED_KINDS: Final[frozenset[RowKind]] = frozenset({t.ARRIVAL})
"""Rows that all stores get."""


class Routes:
    """Decides routes, for one thread at a time."""

    def __init__(self, catalogs: Collection[str], codec: Codec) -> None:
        """A store of its own has the name of its catalog."""
        self._codec = codec
        self.stores: Final = frozenset({MAIN_STORE, *catalogs})

    def of_data(self, data: bytes) -> frozenset[str]:
        """Return the stores of an encoded event. What can't be decoded becomes a dead letter of the main store."""
        try:
            return self._of_decoded(data)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - whoever makes rows of it says what is wrong with it
            return frozenset({MAIN_STORE})

    def of_event(self, event: Event) -> frozenset[str]:
        if isinstance(event, (Committed, JobLineage, StatementFailed)):
            places = (*event.inputs, *event.outputs)
            return self._of_catalogs(each.table.catalog if each.table else None for each in places)
        if isinstance(event, (CatalogModification, CatalogOptionsDeclared)):
            return self._of_catalogs([event.context.name])
        return self.stores

    def _of_decoded(self, data: bytes) -> frozenset[str]:
        found = self._codec.decode(data)
        event = found.known if isinstance(found, UnknownEvent) else found
        return self.of_event(event) if isinstance(event, Event) else frozenset({MAIN_STORE})

    def _of_catalogs(self, names: Iterable[str | None]) -> frozenset[str]:
        return (
            frozenset(name if name is not None and name in self.stores else MAIN_STORE for name in names) or self.stores
        )
