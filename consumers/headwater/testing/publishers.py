"""What a publisher must do beside what every durable listener must: it passes events on, and changes nothing in them.

    class TestMine(PublisherContract):
        def create(self): return MyPublisher(...)
        def passed_on(self, listener): return [PassedOn(each.key, each.headers, each.value) for each in my_topic()]
        def refusing(self): return my_server_stopped()
        def stalling(self): return my_server_paused()

A listener that makes something else of events, rows of a database say, has `DurableListenerContract` to keep.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headwater.events.envelope import EventId
from headwater.events.keys import PRODUCER, SEQUENCE
from headwater.spi import EventRecord
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import PATIENCE, DurableListenerContract, batch, from_the_future


@dataclass(frozen=True)
class PublishedRecord:
    """An event as it lies on a bus. What the bus adds itself, schemas for its readers say, isn't one."""

    key: bytes
    headers: dict[str, bytes]
    data: bytes

    @property
    def event_id(self) -> EventId:
        return EventId(UUID(self.headers[PRODUCER].decode()), int(self.headers[SEQUENCE]))


class PublisherContract(DurableListenerContract):
    """For durable listeners that put events on a bus."""

    def passed_on(self, listener: Any) -> list[PublishedRecord]:
        """What has arrived, in order; copies too. Also of a listener that is closed."""
        raise AssertionError("a suite says what its publisher put on its bus")

    def delivered(self, listener: Any) -> list[EventId]:
        return [each.event_id for each in self.passed_on(listener)]

    def test_events_arrive_as_they_were(self) -> None:
        """Byte for byte, with their key, and with headers that tell what they are to who doesn't decode them."""
        records = batch(EXAMPLES).records
        self._assert_passed_on(records)

    def test_what_is_not_known_here_arrives_as_it_was(self) -> None:
        """A driver of a later version left it: nothing but its bytes is right."""
        self._assert_passed_on([from_the_future(record) for record in batch(EXAMPLES[:3]).records])

    def test_a_large_event_arrives(self) -> None:
        """The largest that there are: longer ones are cut into parts when they are made."""
        (record,) = batch(EXAMPLES[:1]).records
        large = EventRecord(record.position, record.data + bytes(300_000), record.key, record.headers, record.decode)
        self._assert_passed_on([large])

    def _assert_passed_on(self, records: Iterable[EventRecord]) -> None:
        spool = self.drive(records)
        spool.hand_over()
        spool.flush(PATIENCE)
        spool.settle()
        self.assert_closes(spool.listener)
        arrived = {each.event_id: each for each in self.passed_on(spool.listener)}
        for each in spool.delivered:
            expected = PublishedRecord(each.key, dict(each.headers), each.data)
            assert arrived[each.event_id] == expected, f"the {each.kind} {each.event_id} was changed on its way"
