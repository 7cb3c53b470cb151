"""A driver is killed; the next one on the host delivers what it reported, and says once that its runs were killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.events import Closed, Gap, Heartbeat, JobStarted, JobStatusChanged
from headwater.events.envelope import EventId
from headwater.events.health import GapReason
from headwater.events.jobs import JobStatus, JobType
from headwater.listeners.bus import Bus
from headwater.spi import EventRecord, RecordBatch, SpoolPosition
from tests.kit.bus.left_spools import killed_driver, lines_of
from tests.kit.bus.scripts import QUICK, Taking, bus_of, firsts
from tests.kit.bus.victim import ENDED, OPEN
from tests.kit.waiting import until

CUT = 3_000


def only_own_spool_is_left(bus: Bus, spools: Path) -> bool:
    return [each for each in spools.iterdir() if each.is_dir()] == [bus.spool]


def ends(records: list[EventRecord]) -> dict[EventId, JobStatusChanged]:
    events = [record.event for record in records]
    return {each.event_id: each for each in events if isinstance(each, JobStatusChanged) and each.inferred}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("delivered", "lines"), [(0, 60), (40, 150), (CUT, CUT)])
@pytest.mark.slow
def test_the_next_driver_delivers_what_a_killed_one_reported(tmp_path: Path, delivered: int, lines: int) -> None:
    """After so many of them the spool has been cut: the runs' beginnings are no longer in it."""
    spools = tmp_path / "spools"
    emitted = killed_driver(spools, tmp_path / "victim", delivered=delivered, lines=lines)
    (left,) = [each for each in spools.iterdir() if each.is_dir()]
    assert left.name.startswith("application_7-")
    assert delivered < CUT or not (left / f"{0:020}.segment").exists(), "it wasn't cut, and this test shows nothing"
    shipped = Taking()
    made: list[Taking] = []

    def make(_: object) -> Taking:
        made.append(Taking() if not made else shipped)
        return made[-1]

    with bus_of(spools, {"noting": make}) as bus:
        until(lambda: only_own_spool_is_left(bus, spools), "shipping")
    arrived = {*lines_of(tmp_path / "victim" / "arrived"), *map(str, firsts(shipped.records))}
    assert not [line for line in emitted if line not in arrived], "emitted, and never arrived"
    inferred = ends(shipped.records)
    assert {each.run: each.job for each in inferred.values()} == OPEN
    assert ENDED not in OPEN
    assert {each.status for each in inferred.values()} == {JobStatus.KILLED}
    last = max(
        (record for record in shipped.records if record.event_id not in inferred), key=lambda each: each.position
    )
    assert [each.sequence for each in inferred] == [last.event_id.sequence + 1, last.event_id.sequence + 2]
    assert {each.time for each in inferred.values()} == {last.event.time}  # type: ignore[union-attr]  # known kinds
    assert made[0].records == [], "what a dead driver left has an instance of its own"


@pytest.mark.slow
def test_a_shipper_that_is_killed_too_changes_nothing(tmp_path: Path) -> None:
    """The first shipper tells the ends and delivers a part; the second makes the same events, and tells them once."""
    spools = tmp_path / "spools"
    killed_driver(spools, tmp_path / "victim", delivered=0, lines=60)
    first, second = Taking(), Taking()

    class Stopping(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            first.records.extend(batch)
            if not ends(first.records):  # the driver was quick: they come in a later batch
                return batch.end
            raise KeyError("it goes no further")

    deliver: list[Callable[[], Any]] = [Taking, Stopping]
    with bus_of(spools, {"noting": lambda _: (deliver.pop(0) if deliver else Stopping)()}) as bus:
        until(lambda: ends(first.records))
        assert bus.stop(60)
    assert len([each for each in spools.iterdir() if each.is_dir()]) == 1
    instances = [Taking(), second]
    with bus_of(spools, {"noting": lambda _: instances.pop(0)}) as bus:
        until(lambda: only_own_spool_is_left(bus, spools), "shipping")
    assert ends(second.records) == ends(first.records)
    inferred = ends(second.records)
    assert len([each for each in second.records if each.event_id in inferred]) == len(OPEN), "one for each open run"


def test_nobody_is_killed_who_said_that_he_closes(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"mine": lambda _: _Away()}) as bus:
        bus.emit(JobStarted(job_type=JobType.BATCH, run=ENDED))
        bus.emit(Closed(complete=bus.flush(0.1)))
        assert not bus.stop(0.5)
    instances = [Taking(), second := Taking()]
    with bus_of(tmp_path, {"mine": lambda _: instances.pop(0)}) as bus:
        until(lambda: only_own_spool_is_left(bus, tmp_path), "shipping")
    assert [record.kind for record in second.records] == ["JobStarted", "Closed"]
    assert not second.records[1].event.complete  # type: ignore[union-attr]  # it is a Closed


def test_what_nobody_here_can_ship_is_left_alone(tmp_path: Path) -> None:
    left, known = _left_spool(tmp_path), _left_spool(tmp_path, "another")
    instances = [Taking(), Taking()]
    with bus_of(tmp_path, {"another": lambda _: instances.pop(0)}):
        until(lambda: not known.exists(), "shipping the other, which comes behind it")
        assert left.exists()
    instances = [Taking(), second := Taking()]
    with bus_of(tmp_path, {"mine": lambda _: instances.pop(0)}) as bus:
        until(lambda: only_own_spool_is_left(bus, tmp_path), "shipping")
    assert len(second.records) == 1


@pytest.mark.slow
def test_what_nobody_ships_takes_bounded_room_and_its_going_is_reported(tmp_path: Path) -> None:
    left = [_left_spool(tmp_path) for _ in range(3)]
    for age, each in enumerate(left):
        for segment in each.glob("*.segment"):
            os.utime(segment, (1_700_000_000 + age, 1_700_000_000 + age))
    room = sum(file.stat().st_size for file in left[2].iterdir() if file.is_file())
    another = Taking()
    keys = {"spool.max.bytes": str(room + room // 2)}
    with bus_of(tmp_path, {"another": lambda _: another}, keys, replace(QUICK, dead_spools=1)) as bus:
        until(lambda: len(another.records) == 2)
        gaps = [record.event for record in another.records]
        assert all(isinstance(gap, Gap) and gap.reason is GapReason.SPOOL_LIMIT for gap in gaps)
        assert [str(gap.missed_producer) for gap in gaps if isinstance(gap, Gap)] == [
            each.name.removeprefix("application_1-") for each in left[:2]
        ]
        assert [each.exists() for each in left] == [False, False, True]
        assert bus.flush(60)


class _Away(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise KeyError("away")


def _left_spool(spools: Path, listener: str = "mine") -> Path:
    with bus_of(spools, {listener: lambda _: _Away()}) as bus:
        bus.emit(Heartbeat())
        left = bus.spool
        assert not bus.stop(0.2)
    assert left is not None
    return left
