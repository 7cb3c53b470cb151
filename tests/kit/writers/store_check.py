"""Whether the rows of a store are those of the events that were reported, each applied once: what differs, by its
kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS, Row, RowKind, RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.tables import select_rows

_MANY = 3


@dataclass(frozen=True)
class Difference:
    """Of one kind."""

    kind: str
    lost: int
    made_up: int
    wrong: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        counts = f"{self.kind}: {self.lost} lost, {self.made_up} made up, {self.wrong} wrong"
        return "\n    ".join([counts, *self.examples])


def state_of(messages: Iterable[bytes]) -> RowSet:
    """By the law, and by the codec that users have: nothing of the writer is in it. No clock is so far ahead that the
    bus's would cap it."""
    codec, state, seen = Codec(), RowSet(), set[object]()
    for message in messages:
        event = codec.decode(message)
        if isinstance(event, Event) and event.event_id not in seen:
            seen.add(event.event_id)
            state.merge(map_event(event))
    return state


def check_store(engine: Engine, truth: RowSet) -> int:
    """How many rows there are, all as they should be. An AssertionError counts those that aren't."""
    with engine.connect() as connection:
        if store_digest(connection) == truth.digest():
            return sum(1 for _ in truth.rows())
        differences = list(_differences(connection, truth))
    raise AssertionError("\n".join(["the store isn't what was emitted:", *map(str, differences)]))


def _differences(connection: Connection, truth: RowSet) -> Iterator[Difference]:
    for kind in KINDS:
        should = {row.id: row for row in truth.rows(kind)}
        there = {row.id: row for row in select_rows(connection, kind)}
        if should != there:
            yield _difference(kind, should, there)


def _difference(kind: RowKind, should: dict[bytes, Row], there: dict[bytes, Row]) -> Difference:
    lost = [f"lost {_shown(should[each])}" for each in should.keys() - there.keys()]
    made_up = [f"made up {_shown(there[each])}" for each in there.keys() - should.keys()]
    wrong = [
        f"it is {_shown(there[each])}, and should be {_shown(should[each])}"
        for each in should.keys() & there.keys()
        if should[each] != there[each]
    ]
    examples = (*lost[:_MANY], *made_up[:_MANY], *wrong[:_MANY])
    return Difference(kind.name, len(lost), len(made_up), len(wrong), examples)


def _shown(row: Row) -> str:
    return f"{row.key} {row.times} {row.groups} {row.bits}"[:400]
