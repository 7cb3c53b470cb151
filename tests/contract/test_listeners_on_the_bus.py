"""The listeners that keep the contract, and those that break it, on the real bus with a real spool.

The suites beside this one hand records over as the bus is said to; here the bus itself does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.events.envelope import Event
from headwater.spi import EventRecord
from headwater.testing.examples import DRAFTS
from headwater.testing.memory import DurableMemoryListener, MemoryListener, MemoryTarget
from tests.kit.bus.memory_listeners import Hasty, Partitioned, Swallowing, Transactional
from tests.kit.bus.scripts import bus_of, emit_all, firsts, ids
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

Make = Callable[[MemoryTarget[Any]], Any]
SOUND: list[Make] = [DurableMemoryListener, Partitioned, Transactional]


def by_key(records: list[EventRecord]) -> dict[bytes, list[Any]]:
    """The first copies of the records of each key, in order."""
    first = {record.event_id: record for record in reversed(records)}
    keys = {record.key for record in records}
    return {key: [each for each in firsts(records) if first[each].key == key] for key in keys}


def arrived_right(target: MemoryTarget[EventRecord], emitted: list[Event]) -> bool:
    found = by_key(target.items)
    return all(each == sorted(each) for each in found.values()) and sorted(firsts(target.items)) == sorted(ids(emitted))


@pytest.mark.parametrize("make", [DurableMemoryListener, Partitioned], ids=lambda make: make.__name__)
def test_a_target_that_refuses_and_one_that_stalls_cost_nothing(tmp_path: Path, make: Make) -> None:
    target: MemoryTarget[EventRecord] = MemoryTarget()
    with bus_of(tmp_path, {"mine": lambda _: make(target)}) as bus:
        emitted = emit_all(bus, DRAFTS[:10])
        with target.refusing():
            emitted += emit_all(bus, DRAFTS[10:20])
            bus.flush(0.1)
        with target.stalling():
            emitted += emit_all(bus, DRAFTS[20:])
            bus.flush(0.1)
        assert bus.flush(60)
        assert bus.stop(60)
    assert arrived_right(target, emitted)


@pytest.mark.parametrize("make", SOUND, ids=lambda make: make.__name__)
def test_what_one_bus_could_not_deliver_the_next_one_does(tmp_path: Path, make: Make) -> None:
    target: MemoryTarget[EventRecord] = MemoryTarget()
    with bus_of(tmp_path, {"mine": lambda _: make(target)}) as bus:
        emitted = emit_all(bus, DRAFTS[:5])
        assert bus.flush(60)
        with target.refusing():
            emitted += emit_all(bus, DRAFTS[5:])
            assert not bus.stop(0.3)
    with bus_of(tmp_path, {"mine": lambda _: make(target)}) as bus:
        until(lambda: len(set(ids(target.items))) == len(emitted))
        until(lambda: [each.name for each in tmp_path.iterdir()] == [bus.spool.name if bus.spool else ""])
    assert sorted(set(ids(target.items))) == sorted(ids(emitted))


def test_one_that_breaks_its_word_is_set_aside(tmp_path: Path) -> None:
    target: MemoryTarget[EventRecord] = MemoryTarget()
    other: MemoryTarget[EventRecord] = MemoryTarget()
    scripts = {"broken": lambda _: Hasty(target), "other": lambda _: DurableMemoryListener(other)}
    with bus_of(tmp_path, scripts) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: bus.report().listeners[0].failures)
        until(lambda: firsts(other.items) == ids(emitted))
        assert "InvalidAcknowledgementError" in bus.report().listeners[0].last_error


def test_what_the_bus_cannot_see_the_suite_does(tmp_path: Path) -> None:
    """A listener that swallows errors loses events, and says that all is well: that is why there are suites."""
    target: MemoryTarget[EventRecord] = MemoryTarget()
    with bus_of(tmp_path, {"mine": lambda _: Swallowing(target)}) as bus, target.refusing():
        emit_all(bus, DRAFTS)
        assert bus.flush(60)
    assert target.items == []


def test_plain_listeners_get_everything_where_the_target_comes_back(tmp_path: Path) -> None:
    target: MemoryTarget[Event] = MemoryTarget()
    with bus_of(tmp_path, {"mine": lambda _: MemoryListener(target)}) as bus:
        with target.stalling():
            emitted = emit_all(bus, DRAFTS)
            until(lambda: bus.report().listeners[0].lag == 0)
        assert bus.flush(60)
    assert target.items == emitted
