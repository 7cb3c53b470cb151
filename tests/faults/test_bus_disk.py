"""A disk that is full, fails or is damaged: what is lost by it is told, and nothing else is lost."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TransientError
from headwater.events import Gap, GapReason, Heartbeat
from headwater.events.base import Counts
from headwater.events.envelope import Event, Family
from headwater.listeners.bus import Bus
from headwater.spi import Batch, Position, Record
from headwater.testing.examples import DRAFTS
from tests.faults.full_disk import FaultyDisk
from tests.unit.bus.kit import QUICK, Taking, bus_of, firsts, ids, tell_all, until


def gaps_in(records: list[Record], reason: GapReason = GapReason.SPOOL_FAILED) -> list[Gap]:
    events = (record.event for record in records)
    return [event for event in events if isinstance(event, Gap) and event.reason is reason]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_a_disk_refused_is_told_when_it_takes_records_again(tmp_path: Path, number: int) -> None:
    disk, listener = FaultyDisk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        before = tell_all(bus, DRAFTS[:5])
        disk.error = number
        refused = [bus.tell(draft) for draft in DRAFTS[5:15]]
        assert refused == [()] * 10
        assert bus.dropped() == Counts({"spool": 10})
        assert not bus.flush(0.05)
        disk.error = None
        after = tell_all(bus, DRAFTS[15:])
        assert bus.flush(60)
    gaps = gaps_in(listener.records)
    announced = gaps[:-1] if number == errno.ENOSPC else []
    assert [gap.missed for gap in announced] == ([None] if number == errno.ENOSPC else [])
    (made_up,) = gaps[len(announced) :]
    assert made_up.missed == 10
    assert made_up.first_time is not None
    assert made_up.last_time is not None
    assert before[-1].time <= made_up.first_time <= made_up.last_time <= made_up.time
    told = [each for each in ids(listener.records) if each not in ids(gaps)]
    assert told == ids([*before, *after])
    sequences = [record.event_id.sequence for record in listener.records]
    assert sequences == list(range(1, len(sequences) + 1)), "what is surely not in leaves no hole"


def test_the_first_refusal_is_told_at_once_out_of_the_room_set_aside(tmp_path: Path) -> None:
    disk, listener = FaultyDisk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        tell_all(bus, DRAFTS[:5])
        disk.error = errno.ENOSPC
        assert bus.tell(Heartbeat()) == ()
        until(lambda: gaps_in(listener.records))
        (gap,) = gaps_in(listener.records)
        assert "No space left on device" in gap.detail
        assert "how much is missing is told" in gap.detail
        disk.error = None


def test_what_could_not_be_told_is_told_later(tmp_path: Path) -> None:
    """There is room for one record, and not for the Gap behind it."""
    disk, listener = FaultyDisk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        disk.error = errno.EIO
        assert [bus.tell(Heartbeat()) for _ in range(3)] == [()] * 3
        disk.spare = 1
        assert bus.tell(Heartbeat())
        assert [bus.tell(Heartbeat()) for _ in range(2)] == [()] * 2
        disk.error = None
        assert bus.tell(Heartbeat())
        assert bus.flush(60)
    (gap,) = gaps_in(listener.records)
    assert gap.missed == 5


def test_where_it_is_unknown_whether_a_record_is_in_its_place_stays_taken(tmp_path: Path) -> None:
    class Unreadable(FaultyDisk):
        def read(self, descriptor: int, count: int, position: int) -> bytes:
            if self.error is not None and threading.current_thread() is threading.main_thread():
                raise OSError(self.error, os.strerror(self.error))
            return super().read(descriptor, count, position)

    disk, listener = Unreadable(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        tell_all(bus, DRAFTS[:5])
        disk.error = errno.EIO
        assert bus.tell(Heartbeat()) == ()
        disk.error = None
        (event,) = bus.tell(Heartbeat())
        assert event.sequence == 7
        assert bus.flush(60)
        (gap,) = gaps_in(listener.records)
        assert (gap.missed, gap.missed_family) == (1, Family.JOB)


class Gate:
    """Listeners are made when it opens."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener
        self.is_open = threading.Event()

    def __call__(self, _: object) -> Any:
        self.is_open.wait(60)
        return self.listener


def lost_by(bus: Bus, listener: Taking, told: list[Event]) -> list[Event]:
    assert bus.flush(60)
    arrived = set(ids(listener.records))
    return [event for event in told if event.event_id not in arrived]


LIMITED = {
    "spool.max.bytes": str(64 * 1024),
    "listeners": "quick=tests.unit.bus.kit:ScriptFactory,slow=tests.unit.bus.kit:ScriptFactory",
    "catalog.listeners": "changes=tests.unit.bus.kit:ScriptFactory",
}
"""Of three listeners one is told changes of the catalog only."""


def tell_beyond_the_limit(bus: Bus, quick: int = 0) -> list[Event]:
    """Of all that is told the listener with that number is handed everything."""
    told: list[Event] = []
    for _ in range(20):
        told += tell_all(bus, DRAFTS)
        until(lambda: bus.report().listeners[quick].lag == 0)
    return told


@pytest.mark.slow
def test_at_the_limit_each_listener_is_told_what_it_missed(tmp_path: Path) -> None:
    """The Gap of one is an event too: with it the limit may be passed once more before the other is made, which misses
    more then."""
    quick, slow, changes = Taking(), Taking(), Taking()
    gates = {"slow": Gate(slow), "changes": Gate(changes)}
    scripts: dict[str, Callable[[Any], Any]] = {"quick": lambda _: quick, **gates}
    with bus_of(tmp_path, scripts, LIMITED) as bus:
        told = tell_beyond_the_limit(bus)
        for gate in gates.values():
            gate.is_open.set()
        until(lambda: bus.report().listeners[1].lag == bus.report().listeners[2].lag == 0)
        assert not lost_by(bus, quick, told)
        missed = lost_by(bus, slow, told)
        missed_changes = lost_by(bus, changes, told)
        until(lambda: are_told(quick, slow=missed, changes=missed_changes))
    assert len(missed) > len(DRAFTS)
    gaps = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    assert {gap.listener for gap in gaps} == {"slow", "changes"}
    gap = check_gap([gap for gap in gaps if gap.listener == "slow"], missed)
    assert (gap.first_sequence, gap.last_sequence) == (missed[0].sequence, missed[-1].sequence)
    check_changes([gap for gap in gaps if gap.listener == "changes"], missed_changes)


@pytest.mark.slow
def test_the_range_of_a_hole_is_that_of_its_own_listener(tmp_path: Path) -> None:
    """One came a good deal later than the other, and so it missed more."""
    quick, slow, changes = Taking(), Taking(), Taking()
    gates = {"slow": Gate(slow), "changes": Gate(changes)}
    scripts: dict[str, Callable[[Any], Any]] = {"quick": lambda _: quick, **gates}
    with bus_of(tmp_path, scripts, LIMITED) as bus:
        told = tell_beyond_the_limit(bus)
        gates["slow"].is_open.set()
        until(lambda: bus.report().listeners[1].lag == 0)
        before = list(told)
        told += tell_beyond_the_limit(bus, quick=1)
        gates["changes"].is_open.set()
        until(lambda: bus.report().listeners[2].lag == 0)
        missed, missed_changes = lost_by(bus, slow, before), lost_by(bus, changes, told)
        until(lambda: are_told(quick, slow=missed, changes=missed_changes))
    gaps = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    first = check_gap([gap for gap in gaps if gap.listener == "slow"], missed)
    second = check_changes([gap for gap in gaps if gap.listener == "changes"], missed_changes)
    assert (first.first_sequence, first.last_sequence) == (missed[0].sequence, missed[-1].sequence)
    assert second.last_sequence is not None
    assert second.last_sequence > missed[-1].sequence


def are_told(quick: Taking, **missed: list[Event]) -> bool:
    """Whether Gaps account for so many of each listener's."""
    gaps = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    counts = {name: sum(gap.missed or 0 for gap in gaps if gap.listener == name) for name in missed}
    return all(counts[name] >= len(its_own(name, events)) for name, events in missed.items())


def its_own(listener: str, told: list[Event]) -> list[Event]:
    return told if listener == "slow" else [event for event in told if event.family is not Family.JOB]


def check_changes(gaps: list[Gap], not_told: list[Event]) -> Gap:
    """The range goes over all families, from what was missed to what wasn't; of its own all of it is missing. Mostly
    that is one hole; but a Gap is an event too, and telling one may fill the spool once more: then there are holes
    behind each other."""
    missed = its_own("changes", not_told)
    assert gaps[0].first_sequence == 1
    for gap, following in pairwise(gaps):
        assert (gap.last_sequence or 0) < (following.first_sequence or 0)
    last = gaps[-1]
    assert last.last_sequence is not None
    assert missed[-1].sequence <= last.last_sequence
    if len(gaps) == 1:
        return check_gap(gaps, missed)
    ranges = [range(gap.first_sequence or 0, (gap.last_sequence or 0) + 1) for gap in gaps]
    assert all(sum(event.sequence in each for each in ranges) == 1 for event in missed)
    return last


def check_gap(gaps: list[Gap], missed: list[Event]) -> Gap:
    """One hole is one Gap, and it names exactly what is missing of the listener's own."""
    (gap,) = gaps
    assert gap.missed_producer == missed[0].producer
    assert gap.missed == len(missed)
    families = {event.family for event in missed}
    numbers = [event.family_sequence for event in missed] if len(families) == 1 else [None]
    assert gap.missed_family == (families.pop() if len(families) == 1 else None)
    assert (gap.first_family_sequence, gap.last_family_sequence) == (numbers[0], numbers[-1])
    return gap


def test_damage_is_told_and_what_is_behind_it_comes(tmp_path: Path) -> None:
    class Stumbling(Taking):
        """Everything comes to it twice, the damage too."""

        def handle(self, batch: Batch) -> Position | None:
            super().handle(batch)
            if len(self.batches) == 2:
                raise TransientError("once more")
            return None if len(self.batches) == 1 else batch.end

    listener, other = Stumbling(), Taking()
    gate = Gate(listener)
    with bus_of(tmp_path, {"mine": gate, "other": lambda _: other}) as bus:
        told = tell_all(bus, DRAFTS)
        until(lambda: len(other.records) == len(told))
        assert bus.spool is not None
        (segment,) = bus.spool.glob("*.segment")
        data = segment.read_bytes()
        at = len(data) // 2
        with segment.open("r+b") as file:
            file.seek(at)
            file.write(bytes(byte ^ 0xFF for byte in data[at : at + 4]))
        gate.is_open.set()
        missed = lost_by(bus, listener, told)
        until(lambda: gaps_in(other.records, GapReason.CORRUPTION))
    assert len(missed) == 1
    gaps = gaps_in(other.records, GapReason.CORRUPTION)
    gap = check_gap(gaps, missed)
    assert gap.listener == "mine"
    assert str(segment) in gap.detail
    assert gap.first_sequence == gap.last_sequence == missed[0].sequence
    assert firsts(listener.records)[: len(told) - 1] == [each.event_id for each in told if each not in missed]


@pytest.mark.slow
def test_a_hole_begins_where_the_listener_had_got_to(tmp_path: Path) -> None:
    """It was handed more than it answered for before it raised, and the limit was reached while it was away."""

    class Halting(Taking):
        def __init__(self) -> None:
            super().__init__()
            self.is_away = False

        def handle(self, batch: Batch) -> Position | None:
            if self.is_away:
                raise TransientError("away")
            super().handle(batch)
            self.is_away = len(self.batches) == 1
            return Position(2) if self.is_away else batch.end

        def flush(self, timeout: float) -> Position | None:
            raise TransientError("away")

    listener, quick = Halting(), Taking()
    gate = Gate(listener)
    scripts: dict[str, Callable[[Any], Any]] = {"mine": gate, "quick": lambda _: quick}
    with bus_of(tmp_path, scripts, {"spool.max.bytes": str(64 * 1024)}) as bus:
        tell_all(bus, DRAFTS)
        gate.is_open.set()
        until(lambda: listener.is_away)
        for _ in range(20):
            tell_all(bus, DRAFTS)
            until(lambda: bus.report().listeners[1].lag == 0)
        listener.is_away = False
        until(lambda: gaps_in(quick.records, GapReason.SPOOL_LIMIT))
    (gap,) = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    assert gap.first_sequence == 4, "the others of that batch were never answered for"
    assert gap.missed is not None
    assert gap.last_sequence == gap.first_sequence + gap.missed - 1
