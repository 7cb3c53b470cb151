"""Which stores an event's rows go to, where several share a bus.

A store is for some catalogs, by their names; the main one is for all others, and for tables that have no catalog.

- An event that is about tables goes to the stores of all of their catalogs, with all of its rows: so a commit that
  reads from one catalog and writes to another is whole in both.
- One that is about none (runs, heartbeats, gaps, deletions, unifications) goes to all stores.
- That an event came is told to all of them, wherever it went: a store that didn't know would take it for missing.

An event alone says where it goes, so a replay of the bus ends in the same rows in each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headwater.events.administration import CatalogOptionsDeclared
from headwater.events.avro import Codec, UnknownEvent
from headwater.events.avro.plain import kind_of, record_of
from headwater.events.catalog import CatalogModification
from headwater.events.envelope import Event
from headwater.events.jobs import Committed, JobLineage, StatementFailed
from headwater.lineage.rows import Kind
from headwater.lineage.rows import tables as t

MAIN: Final = ""
"""What the main store is called here."""
EVERYWHERE: Final[frozenset[Kind]] = frozenset({t.RECEIVED, t.PART})
"""Rows that all stores get."""
_COMMITTED: Final = Committed.__name__


class Routes:
    """For one thread at a time."""

    def __init__(self, of_catalogs: Mapping[str, str], codec: Codec) -> None:
        """The name of its store, by a catalog's."""
        self._of = dict(of_catalogs)
        self._codec = codec
        self.stores: Final = frozenset({MAIN, *self._of.values()})

    def of_data(self, data: bytes) -> frozenset[str]:
        """What isn't to be understood is a dead letter, and those are the main store's."""
        try:
            return self._quickly(data) or self._of_decoded(data)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - whoever makes rows of it says what is wrong with it
            return frozenset({MAIN})

    def of_event(self, event: Event) -> frozenset[str]:
        if isinstance(event, (Committed, JobLineage, StatementFailed)):
            places = (*event.inputs, *event.outputs)
            return self._of_catalogs(each.table.catalog if each.table else None for each in places)
        if isinstance(event, (CatalogModification, CatalogOptionsDeclared)):
            return self._of_catalogs([event.context.name])
        return self.stores

    def _quickly(self, data: bytes) -> frozenset[str] | None:
        """Of a commit, which most events are, without making an event of it."""
        record: Any = record_of(data, _COMMITTED) if kind_of(data) == _COMMITTED else None
        if record is None:
            return None
        tables = (each["table"] for each in (*record["inputs"], *record["outputs"]))
        return self._of_catalogs(None if each is None else each["catalog"] for each in tables)

    def _of_decoded(self, data: bytes) -> frozenset[str]:
        found = self._codec.decode(data)
        event = found.known if isinstance(found, UnknownEvent) else found
        return self.of_event(event) if isinstance(event, Event) else frozenset({MAIN})

    def _of_catalogs(self, names: Iterable[str | None]) -> frozenset[str]:
        return frozenset(self._stores_of(names)) or self.stores

    def _stores_of(self, names: Iterable[str | None]) -> Iterator[str]:
        return (MAIN if name is None else self._of.get(name, MAIN) for name in names)
