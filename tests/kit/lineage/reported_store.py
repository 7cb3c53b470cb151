"""A store that a few reported events are in, and its digest."""

from __future__ import annotations

from headwater.events import Event
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store
from headwater.testing.examples import EXAMPLES

REPORTED: list[Event] = list(EXAMPLES)


def rows_of(events: list[Event]) -> list[Row]:
    return [row for event in events for row in map_event(event)]


def digest(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def digest_in_memory(events: list[Event]) -> str:
    state = RowSet()
    state.merge(rows_of(events))
    return state.digest()
