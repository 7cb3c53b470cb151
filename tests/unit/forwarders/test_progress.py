"""Where a forwarder begins, what it keeps of its place, and what it says of records that the bus lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from headwater.consumers.sources import OffsetGap, SourceBatch
from headwater.consumers.sources.group_start import GroupStart
from headwater.errors import TransientError
from headwater.events.health import Gap, GapReason
from headwater.forwarders.configuration import read_settings
from headwater.forwarders.metrics import ForwardersHealth
from headwater.forwarders.process import ForwarderProcess, HostedForwarder
from headwater.forwarders.starting import FROM_BEGINNING, FROM_END, ForwarderStart
from headwater.forwarders.state import ForwarderState
from headwater.forwarders.status import ForwarderProgress
from headwater.lineage.bulk import BusPartition
from tests.kit.forwarders.stage import MemoryBus, MemorySource, ScriptedForwarder, Stage, commit
from tests.kit.forwarders.targets import recorded

TYPE = "tests.kit.forwarders.targets:Recorder"
P0 = BusPartition("cluster", "topic", 0)


class GroupedBus:
    """A bus in memory whose group has begun once it has offsets."""

    name = "memory:topic"

    def __init__(self, bus: MemoryBus) -> None:
        self.bus = bus
        self.begun: list[tuple[GroupStart | None, Mapping[BusPartition, int]]] = []

    def open(self, group: str) -> MemorySource:
        return MemorySource(self.bus)

    def has_begun(self, group: str) -> bool:
        return bool(self.bus.committed)

    def begin(self, group: str, start: GroupStart | None, offsets: Mapping[BusPartition, int]) -> None:
        self.begun.append((start, offsets))
        for number, records in enumerate(self.bus.partitions):
            where = BusPartition("cluster", "topic", number)
            at = offsets.get(where, {GroupStart.END: len(records), GroupStart.BEGINNING: 0, None: None}[start])
            if where not in self.bus.committed and at is not None:
                self.bus.committed[where] = at


class Snapshot:
    """Two events that stand before the bus."""

    def __init__(self, offsets: Mapping[BusPartition, int]) -> None:
        self.offsets = offsets

    def open(self) -> MemorySource:
        bus = MemoryBus()
        bus.append(commit(101, "snapshot"))
        bus.append(commit(102, "snapshot"))
        return MemorySource(bus)


@pytest.fixture
def bus() -> GroupedBus:
    created = MemoryBus()
    for number in range(1, 4):
        created.append(commit(number))
    return GroupedBus(created)


def forwarded(bus: GroupedBus, folder: Path, start: ForwarderStart) -> list[int]:
    """Run until the end, and return the sequence numbers that arrived since the folder is there."""
    settings = read_settings("one", {"type": TYPE, "file": str(folder / "file")})
    hosted = HostedForwarder(settings, folder, bus, start=start, until_end=True)
    hosted.run()
    assert hosted.error is None
    return [int(event.rpartition("-")[2]) for event, _ in recorded(folder / "file")]


def test_it_begins_where_it_is_told_and_then_goes_on(bus: GroupedBus, tmp_path: Path) -> None:
    assert forwarded(bus, tmp_path, FROM_END) == []
    bus.bus.append(commit(4))
    assert forwarded(bus, tmp_path, FROM_BEGINNING) == [4]


def test_a_group_that_has_offsets_goes_on_whatever_is_said(bus: GroupedBus, tmp_path: Path) -> None:
    bus.bus.committed[P0] = 1
    assert forwarded(bus, tmp_path, FROM_END) == [2, 3]


def test_a_new_state_of_a_group_that_has_read_all_is_said(
    bus: GroupedBus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It sends nothing, which looks as if there were nothing to send."""
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    assert forwarded(bus, tmp_path / "first", FROM_BEGINNING) == [1, 2, 3]
    assert caplog.messages == []

    assert forwarded(bus, tmp_path / "second", FROM_BEGINNING) == []

    [message] = caplog.messages
    assert "one goes on where its group headwater-forward-one is on memory:topic" in message
    assert f"forwarders.NEW.type = {TYPE}" in message
    assert forwarded(bus, tmp_path / "second", FROM_BEGINNING) == []
    assert len(caplog.messages) == 1


def test_a_bus_that_forgot_the_group_is_read_from_where_it_was(bus: GroupedBus, tmp_path: Path) -> None:
    """Else a forwarder that began at the end would miss what came meanwhile."""
    assert forwarded(bus, tmp_path, FROM_END) == []
    bus.bus.append(commit(4))
    assert forwarded(bus, tmp_path, FROM_END) == [4]
    bus.bus.committed.clear()
    bus.bus.append(commit(5))
    assert forwarded(bus, tmp_path, FROM_END) == [4, 5]


def test_initial_events_come_first_and_the_bus_goes_on_from_their_offsets(bus: GroupedBus, tmp_path: Path) -> None:
    start = ForwarderStart("store", GroupStart.BEGINNING, lambda: Snapshot({P0: 2}))
    assert forwarded(bus, tmp_path, start) == [101, 102, 3]
    assert forwarded(bus, tmp_path, start) == [101, 102, 3]


def test_initial_events_that_were_interrupted_come_again(bus: GroupedBus, tmp_path: Path) -> None:
    class Broken(Snapshot):
        def open(self) -> MemorySource:
            (tmp_path / "file").with_suffix(".away").touch()
            return super().open()

    settings = read_settings("one", {"type": TYPE, "file": str(tmp_path / "file")})
    start = ForwarderStart("store", GroupStart.BEGINNING, lambda: Broken({P0: 2}))
    hosted = HostedForwarder(settings, tmp_path, bus, start=start, until_end=True)
    hosted.metrics.record_wait = lambda *_: hosted.stop()  # type: ignore[method-assign]
    hosted.run()
    assert not bus.has_begun("")
    (tmp_path / "file").with_suffix(".away").unlink()
    start = ForwarderStart("store", GroupStart.BEGINNING, lambda: Snapshot({P0: 3}))
    assert forwarded(bus, tmp_path, start) == [101, 102]
    assert bus.begun == [(GroupStart.BEGINNING, {P0: 3})]


class LosingSource(MemorySource):
    """Lost the first two records."""

    def poll(self, most: int, timeout: float) -> SourceBatch:
        gaps: tuple[OffsetGap, ...] = ()
        if self._at[0] == 0:
            self._at[0] = 2
            gaps = (OffsetGap(P0, 0, 2, GapReason.LOG_EXPIRED),)
        found = super().poll(most, timeout)
        return SourceBatch(found.records, {P0: 2, **found.next} if gaps else found.next, gaps)


def test_what_the_bus_lost_is_a_gap_that_the_target_gets_and_people_see(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number in range(1, 4):
        stage.bus.append(commit(number))
    target = ScriptedForwarder()
    runner = stage.runner(target)
    runner._source = LosingSource(stage.bus)
    asyncio.run(runner.run())
    gap, event = target.received
    assert isinstance(gap, Gap)
    assert (gap.reason, gap.first_offset, gap.last_offset, gap.missed) == (GapReason.LOG_EXPIRED, 0, 1, 2)
    assert gap.listener == "headwater-forward-target"
    assert event == commit(3)
    assert runner.metrics.lost == 2
    (lost,) = ForwarderProgress(stage.state).lost()
    assert (lost.gap.first, lost.gap.end, lost.gap.reason) == (0, 2, GapReason.LOG_EXPIRED)
    assert 'lost_total{forwarder="target"} 2' in "\n".join(ForwardersHealth([runner.metrics]).render())
    stage.state.close()


def test_a_status_that_can_not_be_written_keeps_no_event_from_its_target(
    bus: GroupedBus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = read_settings("one", {"type": TYPE, "file": str(tmp_path / "file")})
    process = ForwarderProcess([HostedForwarder(settings, tmp_path, bus, until_end=True)], tmp_path / "absent")
    process.start()
    process.wait()
    process.write_status()
    assert len(recorded(tmp_path / "file")) == 3
    assert caplog.text.count("can't be written") == 1


# The state of a forwarder keeps what it was given, also when the power fails or the disk is full.


PARTITION = BusPartition("cluster", "topic", 0)
SYNCHRONOUS_FULL = 2


def test_a_transaction_is_on_the_disk_before_offsets_are_committed(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        assert state.select("PRAGMA synchronous") == [(SYNCHRONOUS_FULL,)]


def test_a_full_disk_is_named_and_writing_goes_on_when_it_has_room(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        state.select("PRAGMA max_page_count = 1")  # as many pages as there are
        with pytest.raises(TransientError, match="disk is full"), state.transaction() as connection:
            connection.execute("INSERT INTO lineage VALUES (x'01', zeroblob(100000), 1)")
        state.select("PRAGMA max_page_count = 100000")
        ForwarderProgress(state).record_positions({PARTITION: 7})
        assert ForwarderProgress(state).positions() == {PARTITION: 7}


def test_an_error_within_a_transaction_takes_all_of_it_back(tmp_path: Path) -> None:
    with ForwarderState(tmp_path, "x") as state:
        with pytest.raises(sqlite3.IntegrityError), state.transaction() as connection:
            connection.executemany("INSERT INTO lineage VALUES (x'01', x'02', ?)", [(1,), (2,)])
        assert state.select("SELECT count(*) FROM lineage") == [(0,)]
