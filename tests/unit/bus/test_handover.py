"""Handing over what isn't delivered, and taking it up: what fails, hangs, or is done by two at once loses nothing."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from headwater.errors import TransientError
from headwater.events import Gap, Heartbeat, JobStarted
from headwater.events.envelope import Event, EventId
from headwater.events.health import GapReason
from headwater.events.jobs import JobType
from headwater.listeners.bus import Bus
from headwater.spi import EventRecord, RecordBatch, RefusedRecordError, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import QUICK, Script, Taking, bus_of, emit_all, firsts, ids
from tests.kit.bus.shelf import URI, FailingAt, Hanging, Shelf
from tests.kit.faults.full_disk import FaultyDisk
from tests.kit.waiting import PATIENCE, until

pytestmark = pytest.mark.slow


class Away(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise TransientError("away")


class Made:
    """Takes everything; `records` are those of all instances."""

    def __init__(self) -> None:
        self.instances: list[Taking] = []

    def __call__(self, _: object) -> Taking:
        self.instances.append(self.make())
        return self.instances[-1]

    def make(self) -> Taking:
        return Taking()

    @property
    def records(self) -> list[EventRecord]:
        return [record for each in self.instances for record in each.records]

    def ids(self) -> list[EventId]:
        return ids(self.records)


@contextmanager
def driver(spools: Path, shelf: Shelf, scripts: dict[str, Script], **keys: str) -> Generator[Bus]:
    configuration = {"spool.handover": URI, **{key.replace("_", "."): value for key, value in keys.items()}}
    with bus_of(spools, scripts, configuration, replace(QUICK, connect=lambda _: shelf)) as bus:
        yield bus


def handed_over(spools: Path, shelf: Shelf, count: int = 5, **scripts: Script) -> list[Event]:
    """What a driver reported whose target is away and whose host goes."""
    with driver(spools, shelf, dict(scripts) or {"mine": lambda _: Away()}) as bus:
        emitted = emit_all(bus, DRAFTS[:count])
        assert not bus.stop(0.3)
    return emitted


def names(shelf: Shelf) -> list[str]:
    return sorted(each.name for each in shelf.directory.iterdir()) if shelf.directory.exists() else []


def left_on(spools: Path, bus: Bus | None = None) -> list[str]:
    """Spools with something in it, but for this driver's."""
    own = None if bus is None or bus.spool is None else bus.spool.name
    return sorted(each.parent.name for each in spools.glob("*/*.segment") if each.parent.name != own)


def test_what_is_not_delivered_is_one_file_and_taken_up_elsewhere(tmp_path: Path) -> None:
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    emitted = handed_over(tmp_path / "pod1", shelf)
    assert left_on(tmp_path / "pod1") == []
    (name,) = names(shelf)
    assert name.startswith("application_1-")
    assert name.endswith(".avro")
    with driver(tmp_path / "pod2", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
        assert (names(shelf), bus.handover_files) == ([], ())
        assert bus.stop(60)
    assert mine.ids() == ids(emitted)
    assert list((tmp_path / "pod2").rglob("*")) == [], "no copy is left"


def test_a_copy_that_a_killed_driver_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Its file is still where it was handed over. Nothing else looks for what lies beside spools."""
    shelf, pod = Shelf(tmp_path / "shelf"), tmp_path / "pod2"
    handed_over(tmp_path / "pod1", shelf)
    for name in (".handover-killed", ".handover-copying"):
        (pod / name).mkdir(parents=True)
        (pod / name / "copy").write_bytes(b"a part of it")
    an_hour_ago = time.time() - 3_600
    for each in (pod / ".handover-killed" / "copy", pod / ".handover-killed"):
        os.utime(each, (an_hour_ago, an_hour_ago))
    with driver(pod, shelf, {"mine": Made()}) as bus:
        until(lambda: bus.report().shipped == 1)
        assert bus.stop(60)
    assert [each.name for each in pod.iterdir()] == [".handover-copying"], "another driver may be copying just now"


def test_whatever_fails_when_it_is_handed_over_nothing_is_lost(tmp_path: Path) -> None:
    """At each call once: what was reported is then on one side or on both, and comes from there."""
    counting = FailingAt(10**9)
    with driver(tmp_path / "dry", Shelf(tmp_path / "dry-shelf", counting), {"mine": lambda _: Away()}) as bus:
        emit_all(bus, DRAFTS[:5])
    assert counting.calls > 2
    sides = set()
    for number in range(1, counting.calls + 1):
        here, shelf = tmp_path / f"here{number}", Shelf(tmp_path / f"shelf{number}")
        shelf.before = FailingAt(number)
        emitted = handed_over(here, shelf)
        shelf.before = lambda *_: None
        sides.add((bool(left_on(here)), any(name.endswith(".avro") for name in names(shelf))))
        made = Made()
        for place in (here, tmp_path / f"there{number}"):
            with driver(place, shelf, {"mine": made}) as bus:
                assert bus.ship(PATIENCE) is not None
        assert {*made.ids()} == {*ids(emitted)}, f"failing at call {number}"
    assert (False, False) not in sides
    assert (True, False) in sides


def test_whatever_fails_when_it_is_taken_up_nothing_is_lost(tmp_path: Path) -> None:
    """At each call once; the next driver delivers what this one couldn't."""
    for number in range(1, 5):
        shelf, made = Shelf(tmp_path / f"shelf{number}"), Made()
        emitted = handed_over(tmp_path / f"here{number}", shelf)
        shelf.before = FailingAt(number)
        with driver(tmp_path / f"one{number}", shelf, {"mine": made}) as bus:
            until(lambda bus=bus: "the connection is gone" in bus.handover_error)  # type: ignore[misc]
            assert names(shelf)
        shelf.before = lambda *_: None
        with driver(tmp_path / f"other{number}", shelf, {"mine": made}) as bus:
            until(lambda bus=bus: bus.report().shipped == 1)  # type: ignore[misc]
        assert firsts(made.records) == ids(emitted), f"failing at call {number}"
        assert names(shelf) == []


def test_a_target_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    hanging = Hanging("create")
    shelf = Shelf(tmp_path / "shelf", hanging)
    with driver(tmp_path / "pod", shelf, {"mine": lambda _: Away()}, spool_handover_timeout="0.3") as bus:
        emitted = emit_all(bus, DRAFTS[:5])
        began = time.monotonic()
        assert not bus.stop(0.3)
        assert time.monotonic() - began < PATIENCE
        assert hanging.began.is_set()
    assert len(left_on(tmp_path / "pod")) == 1
    hanging.over.set()
    shelf.before, mine = (lambda *_: None), Made()
    with driver(tmp_path / "pod", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert firsts(mine.records) == ids(emitted)


def test_what_somebody_got_he_does_not_get_again_from_each_driver(tmp_path: Path) -> None:
    """`mine` is in each driver, `late` in the last one only."""
    shelf, mine, late = Shelf(tmp_path / "shelf"), Made(), Made()
    emitted = handed_over(tmp_path / "pod1", shelf, mine=lambda _: Away(), late=lambda _: Away())
    (first,) = names(shelf)
    for number in (2, 3):
        with driver(tmp_path / f"pod{number}", shelf, {"mine": mine}) as bus:
            assert bus.ship(PATIENCE) == 0
    assert mine.ids() == ids(emitted), "once"
    (rest,) = names(shelf)
    assert rest != first
    with driver(tmp_path / "pod4", shelf, {"mine": mine, "late": late}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert (mine.ids(), late.ids()) == (ids(emitted), ids(emitted))
    assert names(shelf) == []


class Halting(Taking):
    """Acknowledges the first two records of all, and then nothing more."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self.records.extend(record for record in batch if record.position < 2)
        return self.flush(0)

    def close(self, timeout: float) -> bool:
        return False


def test_a_driver_that_ends_before_all_is_delivered_leaves_the_rest(tmp_path: Path) -> None:
    """Else a file that takes longer than each driver lives would never go."""
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    emitted = handed_over(tmp_path / "pod1", shelf)
    halting = Halting()
    with driver(tmp_path / "pod2", shelf, {"mine": lambda _: halting}):
        until(lambda: len(halting.records) == 2)
    assert left_on(tmp_path / "pod2") == []
    with driver(tmp_path / "pod3", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert ids(halting.records) == ids(emitted)[:2]
    assert mine.ids() == ids(emitted)[2:]


def test_two_drivers_that_take_one_file_up_lose_nothing(tmp_path: Path) -> None:
    """Both have fetched it before either may remove it: its events come twice, and the second removal is none."""
    shelf, mine, other = Shelf(tmp_path / "shelf"), Made(), Made()
    emitted = handed_over(tmp_path / "pod1", shelf)
    hanging = Hanging("remove")
    shelf.before = hanging
    second = Shelf(shelf.directory)
    with driver(tmp_path / "pod2", shelf, {"mine": mine}) as one:
        until(hanging.began.is_set)
        with driver(tmp_path / "pod3", second, {"mine": other}) as two:
            until(lambda: two.report().shipped == 1)
        assert names(shelf) == []
        hanging.over.set()
        until(lambda: one.report().shipped == 1)
    assert (mine.ids(), other.ids()) == (ids(emitted), ids(emitted))


class Choosy(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        for record in batch:
            if record.position == 1:
                raise RefusedRecordError("never", record.position)
        return super().handle(batch)


def test_an_event_out_of_a_file_that_is_refused_for_ever_is_a_dead_letter(tmp_path: Path) -> None:
    shelf, choosy = Shelf(tmp_path / "shelf"), Choosy()
    emitted = handed_over(tmp_path / "pod1", shelf)
    with driver(tmp_path / "pod2", shelf, {"mine": lambda _: choosy}) as bus:
        until(lambda: bus.report().shipped == 1)
        assert bus.report().listeners[0].dead_letters == 1
    got = {*ids(choosy.records)}
    assert ids(emitted)[1] not in got
    assert {each for at, each in enumerate(ids(emitted)) if at != 1} <= got


def test_what_a_spool_lost_is_a_gap_of_who_takes_it_up(tmp_path: Path) -> None:
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    with driver(tmp_path / "pod1", shelf, {"mine": lambda _: Away()}, spool_max_bytes="64k") as bus:
        emitted = emit_all(bus, [Heartbeat()] * 600)
        assert not bus.stop(0.3)
    with driver(tmp_path / "pod2", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
        until(lambda: any(isinstance(record.event, Gap) for record in mine.records))
    (gap,) = [record.event for record in mine.records if isinstance(record.event, Gap)]
    came = {*mine.ids()} & {*ids(emitted)}
    assert 0 < len(came) < 600
    assert (gap.reason, gap.listener, gap.missed_producer) == (GapReason.SPOOL_LIMIT, "mine", emitted[0].producer)
    lost = 600 - len(came)
    assert gap.missed == lost
    assert [each.event_id in came for each in emitted] == [False] * lost + [True] * len(came)


def test_a_full_disk_keeps_nothing_from_being_handed_over(tmp_path: Path) -> None:
    """The run is open, and its end finds no room in the spool: all else is handed over, since the disk goes."""
    disk, shelf, mine = FaultyDisk(), Shelf(tmp_path / "shelf"), Made()
    options = replace(QUICK, connect=lambda _: shelf, files=disk)
    with bus_of(tmp_path / "pod1", {"mine": lambda _: Away()}, {"spool.handover": URI}, options) as bus:
        emitted = emit_all(bus, [JobStarted(job_type=JobType.BATCH, run=uuid4()), *[Heartbeat()] * 3])
        disk.error = errno.ENOSPC
        assert not bus.stop(0.3)
    with driver(tmp_path / "pod2", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert mine.ids() == ids(emitted)


def test_where_there_is_no_jvm_that_is_said_and_the_spool_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with bus_of(tmp_path, {"mine": lambda _: Away()}, {"spool.handover": URI}) as bus:
        bus.emit(Heartbeat())
        assert not bus.stop(0.2)
    assert caplog.text.count("takes the JVM of a driver, and there is none here") == 1
    assert len(left_on(tmp_path)) == 1


def test_trouble_with_it_is_reported_once_and_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    failing = FailingAt(1)
    shelf = Shelf(tmp_path / "shelf", failing)
    with driver(tmp_path / "pod", shelf, {"mine": Made()}) as bus:
        until(lambda: "the connection is gone" in bus.handover_error)
        until(lambda: failing.calls > 3)
        shelf.before = lambda *_: None
        until(lambda: not bus.handover_error)
    assert caplog.text.count("can't be taken up now") == 1
