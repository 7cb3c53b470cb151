"""A disk that is full, fails or is damaged: what is lost by it is reported, and nothing else is lost."""

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
from headwater.events import Gap, Heartbeat
from headwater.events.base import CountMap
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import GapReason
from headwater.listeners.bus import Bus
from headwater.spi import EventRecord, RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import QUICK, Taking, bus_of, emit_all, firsts, ids
from tests.kit.faults.full_disk import FaultyDisk
from tests.kit.waiting import until


def gaps_in(records: list[EventRecord], reason: GapReason = GapReason.SPOOL_FAILED) -> list[Gap]:
    events = (record.event for record in records)
    return [event for event in events if isinstance(event, Gap) and event.reason is reason]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_a_disk_refused_is_reported_when_it_takes_records_again(tmp_path: Path, number: int) -> None:
    disk, listener = FaultyDisk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        before = emit_all(bus, DRAFTS[:5])
        disk.error = number
        refused = [bus.emit(draft) for draft in DRAFTS[5:15]]
        assert refused == [()] * 10
        assert bus.dropped() == CountMap({"spool": 10})
        assert not bus.flush(0.05)
        disk.error = None
        after = emit_all(bus, DRAFTS[15:])
        assert bus.flush(60)
    gaps = gaps_in(listener.records)
    announced = gaps[:-1] if number == errno.ENOSPC else []
    assert [gap.missed for gap in announced] == ([None] if number == errno.ENOSPC else [])
    (made_up,) = gaps[len(announced) :]
    assert made_up.missed == 10
    assert made_up.first_time is not None
    assert made_up.last_time is not None
    assert before[-1].time <= made_up.first_time <= made_up.last_time <= made_up.time
    emitted = [each for each in ids(listener.records) if each not in ids(gaps)]
    assert emitted == ids([*before, *after])
    sequences = [record.event_id.sequence for record in listener.records]
    assert sequences == list(range(1, len(sequences) + 1)), "what is surely not in leaves no hole"


def test_the_first_refusal_is_reported_at_once_out_of_the_room_set_aside(tmp_path: Path) -> None:
    disk, listener = FaultyDisk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        emit_all(bus, DRAFTS[:5])
        disk.error = errno.ENOSPC
        assert bus.emit(Heartbeat()) == ()
        until(lambda: gaps_in(listener.records))
        (gap,) = gaps_in(listener.records)
        assert "No space left on device" in gap.detail
        assert "how much is missing is reported" in gap.detail
        disk.error = None


def test_what_could_not_be_reported_is_reported_later(tmp_path: Path) -> None:
    """There is room for one record, and not for the Gap behind it."""
    disk, listener = FaultyDisk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        disk.error = errno.EIO
        assert [bus.emit(Heartbeat()) for _ in range(3)] == [()] * 3
        disk.spare = 1
        assert bus.emit(Heartbeat())
        assert [bus.emit(Heartbeat()) for _ in range(2)] == [()] * 2
        disk.error = None
        assert bus.emit(Heartbeat())
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
        emit_all(bus, DRAFTS[:5])
        disk.error = errno.EIO
        assert bus.emit(Heartbeat()) == ()
        disk.error = None
        (event,) = bus.emit(Heartbeat())
        assert event.sequence == 7
        assert bus.flush(60)
        (gap,) = gaps_in(listener.records)
        assert (gap.missed, gap.missed_family) == (1, EventFamily.JOB)


class Gate:
    """Listeners are made when it opens."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener
        self.is_open = threading.Event()

    def __call__(self, _: object) -> Any:
        self.is_open.wait(60)
        return self.listener


def lost_by(bus: Bus, listener: Taking, emitted: list[Event]) -> list[Event]:
    assert bus.flush(60)
    arrived = set(ids(listener.records))
    return [event for event in emitted if event.event_id not in arrived]


LIMITED = {
    "spool.max.bytes": str(64 * 1024),
    "listeners": "quick=tests.kit.bus.scripts:ScriptFactory,slow=tests.kit.bus.scripts:ScriptFactory",
    "catalog.listeners": "changes=tests.kit.bus.scripts:ScriptFactory",
}
"""Of three listeners one receives changes of the catalog only."""


def tell_beyond_the_limit(bus: Bus, quick: int = 0) -> list[Event]:
    """Of all that is reported the listener with that number is handed everything."""
    emitted: list[Event] = []
    for _ in range(20):
        emitted += emit_all(bus, DRAFTS)
        until(lambda: bus.report().listeners[quick].lag == 0)
    return emitted


@pytest.mark.slow
def test_at_the_limit_each_listener_is_told_what_it_missed(tmp_path: Path) -> None:
    """The Gap of one is an event too: with it the limit may be passed once more before the other is made, which misses
    more then."""
    quick, slow, changes = Taking(), Taking(), Taking()
    gates = {"slow": Gate(slow), "changes": Gate(changes)}
    scripts: dict[str, Callable[[Any], Any]] = {"quick": lambda _: quick, **gates}
    with bus_of(tmp_path, scripts, LIMITED) as bus:
        emitted = tell_beyond_the_limit(bus)
        for gate in gates.values():
            gate.is_open.set()
        until(lambda: bus.report().listeners[1].lag == bus.report().listeners[2].lag == 0)
        assert not lost_by(bus, quick, emitted)
        missed = lost_by(bus, slow, emitted)
        missed_changes = lost_by(bus, changes, emitted)
        until(lambda: are_reported(quick, slow=missed, changes=missed_changes))
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
        emitted = tell_beyond_the_limit(bus)
        gates["slow"].is_open.set()
        until(lambda: bus.report().listeners[1].lag == 0)
        before = list(emitted)
        emitted += tell_beyond_the_limit(bus, quick=1)
        gates["changes"].is_open.set()
        until(lambda: bus.report().listeners[2].lag == 0)
        missed, missed_changes = lost_by(bus, slow, before), lost_by(bus, changes, emitted)
        until(lambda: are_reported(quick, slow=missed, changes=missed_changes))
    gaps = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    first = check_gap([gap for gap in gaps if gap.listener == "slow"], missed)
    second = check_changes([gap for gap in gaps if gap.listener == "changes"], missed_changes)
    assert (first.first_sequence, first.last_sequence) == (missed[0].sequence, missed[-1].sequence)
    assert second.last_sequence is not None
    assert second.last_sequence > missed[-1].sequence


def are_reported(quick: Taking, **missed: list[Event]) -> bool:
    """Whether Gaps account for so many of each listener's."""
    gaps = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    counts = {name: sum(gap.missed or 0 for gap in gaps if gap.listener == name) for name in missed}
    return all(counts[name] >= len(its_own(name, events)) for name, events in missed.items())


def its_own(listener: str, emitted: list[Event]) -> list[Event]:
    return emitted if listener == "slow" else [event for event in emitted if event.family is not EventFamily.JOB]


def check_changes(gaps: list[Gap], not_reported: list[Event]) -> Gap:
    """The range goes over all families, from what was missed to what wasn't; of its own all of it is missing. Mostly
    that is one hole; but a Gap is an event too, and telling one may fill the spool once more: then there are holes
    behind each other."""
    missed = its_own("changes", not_reported)
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


def test_damage_is_reported_and_what_is_behind_it_comes(tmp_path: Path) -> None:
    class Stumbling(Taking):
        """Everything comes to it twice, the damage too."""

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            if len(self.batches) == 2:
                raise TransientError("once more")
            return None if len(self.batches) == 1 else batch.end

    listener, other = Stumbling(), Taking()
    gate = Gate(listener)
    with bus_of(tmp_path, {"mine": gate, "other": lambda _: other}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: len(other.records) == len(emitted))
        assert bus.spool is not None
        (segment,) = bus.spool.glob("*.segment")
        data = segment.read_bytes()
        at = len(data) // 2
        with segment.open("r+b") as file:
            file.seek(at)
            file.write(bytes([data[at] ^ 0xFF]))  # more than one byte may be of two records
        gate.is_open.set()
        missed = lost_by(bus, listener, emitted)
        until(lambda: gaps_in(other.records, GapReason.CORRUPTION))
    assert len(missed) == 1
    gaps = gaps_in(other.records, GapReason.CORRUPTION)
    gap = check_gap(gaps, missed)
    assert gap.listener == "mine"
    assert str(segment) in gap.detail
    assert gap.first_sequence == gap.last_sequence == missed[0].sequence
    assert firsts(listener.records)[: len(emitted) - 1] == [each.event_id for each in emitted if each not in missed]


@pytest.mark.slow
def test_a_hole_begins_where_the_listener_had_got_to(tmp_path: Path) -> None:
    """It was handed more than it answered for before it raised, and the limit was reached while it was away."""

    class Halting(Taking):
        def __init__(self) -> None:
            super().__init__()
            self.is_away = False

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            if self.is_away:
                raise TransientError("away")
            super().handle(batch)
            self.is_away = len(self.batches) == 1
            return SpoolPosition(2) if self.is_away else batch.end

        def flush(self, timeout: float) -> SpoolPosition | None:
            raise TransientError("away")

    listener, quick = Halting(), Taking()
    gate = Gate(listener)
    scripts: dict[str, Callable[[Any], Any]] = {"mine": gate, "quick": lambda _: quick}
    with bus_of(tmp_path, scripts, {"spool.max.bytes": str(64 * 1024)}) as bus:
        emit_all(bus, DRAFTS)
        gate.is_open.set()
        until(lambda: listener.is_away)
        for _ in range(20):
            emit_all(bus, DRAFTS)
            until(lambda: bus.report().listeners[1].lag == 0)
        listener.is_away = False
        until(lambda: gaps_in(quick.records, GapReason.SPOOL_LIMIT))
    (gap,) = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    assert gap.first_sequence == 4, "the others of that batch were never answered for"
    assert gap.missed is not None
    assert gap.last_sequence == gap.first_sequence + gap.missed - 1
