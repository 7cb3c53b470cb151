"""A disk that is full, fails or is damaged: what is lost by it is told, and nothing else is lost."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TransientError
from headwater.events import Gap, GapReason, Heartbeat
from headwater.events.base import Counts
from headwater.events.envelope import Event, Family
from headwater.journal import OsFiles
from headwater.listeners.bus import Bus
from headwater.spi import Batch, Position, Record
from headwater.testing.examples import DRAFTS
from tests.unit.bus.kit import QUICK, Taking, bus_of, firsts, ids, tell_all, until


class Disk(OsFiles):
    """The real one, which can be full, or refuse all writes to segments. What is set aside on it can be given back."""

    def __init__(self) -> None:
        self.error: int | None = None
        self.spare = 0
        self._segments: set[int] = set()

    def open(self, path: Path, flags: int) -> int:
        descriptor = super().open(path, flags)
        (self._segments.add if ".segment" in path.name else self._segments.discard)(descriptor)
        return descriptor

    @property
    def write(self) -> Callable[[int, bytes, int], int]:  # type: ignore[override]  # the real one costs no frame
        return self._write

    def _write(self, descriptor: int, data: bytes, position: int) -> int:
        if self.error is not None and descriptor in self._segments:
            if self.spare < 1:
                raise OSError(self.error, os.strerror(self.error))
            self.spare -= 1
        return os.pwrite(descriptor, data, position)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.spare += path.name == "reserve"  # room for one record


def gaps_in(records: list[Record], reason: GapReason = GapReason.SPOOL_FAILED) -> list[Gap]:
    events = (record.event for record in records)
    return [event for event in events if isinstance(event, Gap) and event.reason is reason]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_a_disk_refused_is_told_when_it_takes_records_again(tmp_path: Path, number: int) -> None:
    disk, listener = Disk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        before = tell_all(bus, DRAFTS[:5])
        disk.error = number
        refused = [bus.tell(draft) for draft in DRAFTS[5:15]]
        assert refused == [()] * 10
        assert bus.dropped() == Counts({"spool": 10})
        assert not bus.flush(0.05)
        disk.error = None
        after = tell_all(bus, DRAFTS[15:])
        assert bus.flush(5)
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
    disk, listener = Disk(), Taking()
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
    disk, listener = Disk(), Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}, options=replace(QUICK, files=disk)) as bus:
        disk.error = errno.EIO
        assert [bus.tell(Heartbeat()) for _ in range(3)] == [()] * 3
        disk.spare = 1
        assert bus.tell(Heartbeat())
        assert [bus.tell(Heartbeat()) for _ in range(2)] == [()] * 2
        disk.error = None
        assert bus.tell(Heartbeat())
        assert bus.flush(5)
    (gap,) = gaps_in(listener.records)
    assert gap.missed == 5


def test_where_it_is_unknown_whether_a_record_is_in_its_place_stays_taken(tmp_path: Path) -> None:
    class Unreadable(Disk):
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
        assert bus.flush(5)
        (gap,) = gaps_in(listener.records)
        assert (gap.missed, gap.missed_family) == (1, Family.JOB)


class Gate:
    """Listeners are made when it opens."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener
        self.is_open = threading.Event()

    def __call__(self, _: object) -> Any:
        self.is_open.wait(20)
        return self.listener


def lost_by(bus: Bus, listener: Taking, told: list[Event]) -> list[Event]:
    assert bus.flush(10)
    arrived = set(ids(listener.records))
    return [event for event in told if event.event_id not in arrived]


def test_at_the_limit_each_listener_is_told_what_it_missed(tmp_path: Path) -> None:
    quick, slow, changes = Taking(), Taking(), Taking()
    gates = {"slow": Gate(slow), "changes": Gate(changes)}
    scripts: dict[str, Callable[[Any], Any]] = {"quick": lambda _: quick, **gates}
    module = "tests.unit.bus.kit:ScriptFactory"
    keys = {
        "spool.max.bytes": str(64 * 1024),
        "listeners": f"quick={module},slow={module}",
        "catalog.listeners": f"changes={module}",
    }
    with bus_of(tmp_path, scripts, keys) as bus:
        told: list[Event] = []
        for _ in range(20):
            told += tell_all(bus, DRAFTS)
            until(lambda: bus.report().listeners[0].lag == 0)
        for gate in gates.values():
            gate.is_open.set()
        until(lambda: bus.report().listeners[1].lag == bus.report().listeners[2].lag == 0)
        assert not lost_by(bus, quick, told)
        missed = lost_by(bus, slow, told)
        missed_changes = [each for each in lost_by(bus, changes, told) if each.family is not Family.JOB]
    assert len(missed) > len(DRAFTS)
    gaps = gaps_in(quick.records, GapReason.SPOOL_LIMIT)
    for name, of_one in {"slow": missed, "changes": missed_changes}.items():
        gap = check_gap([gap for gap in gaps if gap.listener == name], of_one)
        assert (gap.first_sequence, gap.last_sequence) == (missed[0].sequence, missed[-1].sequence)
    assert {gap.listener for gap in gaps} == {"slow", "changes"}


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
