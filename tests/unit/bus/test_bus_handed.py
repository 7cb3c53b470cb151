"""Handing over to a file system that only somebody else can reach, and taking up from there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.errors import TransientError
from headwater.events import Heartbeat
from headwater.events.envelope import Event, EventId
from headwater.listeners.bus import Bus
from headwater.listeners.bus.remote_files import RemoteError, RemoteFilesWithTimeout
from headwater.listeners.bus.remote_spools import (
    CLAIM,
    MARKER,
    download,
    list_remote_spools,
    list_unfinished_spools,
    read_remote_spool,
    upload,
)
from headwater.listeners.bus.spool_claimer import LEASE_SECONDS, SpoolClaimer, read_origin
from headwater.spi import RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import PATIENCE, QUICK, Script, Taking, bus_of, emit_all, ids
from tests.kit.bus.shelf import URI, FailingAt, Hanging, Shelf
from tests.kit.waiting import until

pytestmark = pytest.mark.slow


class Away(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise TransientError("away")


class Made:
    """Takes everything; `records` are those of all instances."""

    def __init__(self) -> None:
        self.instances: list[Taking] = []

    def __call__(self, _: object) -> Taking:
        self.instances.append(Taking())
        return self.instances[-1]

    def ids(self) -> list[EventId]:
        return ids([record for each in self.instances for record in each.records])


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


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir()) if directory.exists() else []


def lapse(claim: Path) -> None:
    """As if it hadn't been renewed for long."""
    then = time.time() - LEASE_SECONDS - 1
    os.utime(claim, (then, then))


def left_on(spools: Path) -> list[str]:
    """Spools with something in it."""
    return sorted(each.parent.name for each in spools.glob("*/*.segment"))


def test_what_is_not_delivered_is_handed_over_and_taken_up_elsewhere(tmp_path: Path) -> None:
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    emitted = handed_over(tmp_path / "pod1", shelf)
    assert left_on(tmp_path / "pod1") == []
    (name,) = names(shelf.directory)
    assert "lock" not in names(shelf.directory / name)
    with driver(tmp_path / "pod2", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
        assert names(shelf.directory) == []
        assert bus.stop(60)
    assert mine.ids() == ids(emitted)
    assert left_on(tmp_path / "pod2") == []


@pytest.mark.slow
def test_whatever_fails_when_it_is_handed_over_nothing_is_lost(tmp_path: Path) -> None:
    """At each call once: what was reported is then on one side or on both, and comes from there."""
    counting = FailingAt(10**9)
    handed_over(tmp_path / "dry", Shelf(tmp_path / "dry-shelf", counting))
    calls = counting.calls
    assert calls > 8
    on_either_side = []
    for number in range(1, calls + 1):
        here, shelf = tmp_path / f"here{number}", Shelf(tmp_path / f"shelf{number}")
        shelf.before = FailingAt(number)
        emitted = handed_over(here, shelf)
        shelf.before = lambda *_: None
        whole = list(list_remote_spools(shelf, {}))
        on_either_side.append((bool(left_on(here)), bool(whole)))
        one, other = Made(), Made()
        with driver(here, shelf, {"mine": one}) as bus:
            until(lambda bus=bus: bus.ship(0) is not None)  # type: ignore[misc]
        with driver(tmp_path / f"there{number}", shelf, {"mine": other}) as bus:
            until(lambda bus=bus: bus.ship(0) is not None)  # type: ignore[misc]
        assert {*one.ids(), *other.ids()} == {*ids(emitted)}, f"failing at call {number}"
    assert (False, False) not in on_either_side
    assert (True, False) in on_either_side


@pytest.mark.slow
def test_a_target_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    hanging = Hanging("put")
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
    assert firsts_of(mine) == ids(emitted)


def firsts_of(made: Made) -> list[EventId]:
    return list(dict.fromkeys(made.ids()))


def test_what_somebody_got_he_does_not_get_again_from_each_driver(tmp_path: Path) -> None:
    """`mine` is in each driver, `late` in the last one only."""
    shelf, mine, late = Shelf(tmp_path / "shelf"), Made(), Made()
    emitted = handed_over(tmp_path / "pod1", shelf, mine=lambda _: Away(), late=lambda _: Away())
    for number in (2, 3):
        with driver(tmp_path / f"pod{number}", shelf, {"mine": mine}) as bus:
            until(lambda: mine.ids() and not left_on_others(tmp_path / f"pod{number}", bus))  # noqa: B023
            until(lambda bus=bus: bus.ship(0) is not None)  # type: ignore[misc]
    assert mine.ids() == ids(emitted), "once"
    (name,) = names(shelf.directory)
    assert name.endswith(".copy-2")
    with driver(tmp_path / "pod4", shelf, {"mine": mine, "late": late}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert (mine.ids(), late.ids()) == (ids(emitted), ids(emitted))
    assert names(shelf.directory) == []


def left_on_others(spools: Path, bus: Bus) -> list[str]:
    own = bus.spool
    return [name for name in left_on(spools) if own is None or name != own.name]


@pytest.mark.slow
def test_what_is_not_delivered_here_either_is_given_back_at_stop(tmp_path: Path) -> None:
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    emitted = handed_over(tmp_path / "pod1", shelf)
    (name,) = names(shelf.directory)
    with driver(tmp_path / "pod2", shelf, {"mine": lambda _: Away()}) as bus:
        until(lambda: left_on_others(tmp_path / "pod2", bus) == [name])
        assert CLAIM in names(shelf.directory / name)
        assert read_origin(tmp_path / "pod2" / name) is not None
    assert left_on(tmp_path / "pod2") == []
    assert names(shelf.directory) == [name]
    assert CLAIM not in names(shelf.directory / name)
    with driver(tmp_path / "pod3", shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert mine.ids() == ids(emitted)


def test_one_of_two_ships_it_until_its_claim_lapses(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    handed_over(tmp_path / "pod1", shelf)
    (one, other) = (SpoolClaimer(URI, shelf, lambda place=tmp_path / name: place) for name in ("one", "other"))  # type: ignore[misc]
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    (handed,) = one.look()
    copy = one.take(handed)
    assert copy is not None
    assert one.hold(copy)
    assert other.take(handed) is None
    claim = shelf.directory / handed.name / CLAIM
    lapse(claim)
    taken_over = other.take(handed)
    assert taken_over is not None
    assert not one.hold(copy), "whoever slept so long has lost it"
    assert copy.exists()
    other.finish(taken_over)
    assert names(shelf.directory) == []
    assert not one.hold(copy)
    assert not copy.exists(), "what it was a copy of is delivered"


def test_a_driver_that_is_killed_with_a_copy_loses_nothing(tmp_path: Path) -> None:
    """Its copy stays on its host, and isn't shipped from there while it isn't known what became of it elsewhere."""
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    emitted = handed_over(tmp_path / "pod1", shelf)
    place = tmp_path / "pod2"
    place.mkdir()
    killed = SpoolClaimer(URI, shelf, lambda: place)
    (handed,) = killed.look()
    assert killed.take(handed) is not None
    with driver(place, shelf, {"mine": mine}) as bus:
        until(lambda: bus.ship(0) is not None)
    assert mine.ids() == []
    lapse(shelf.directory / handed.name / CLAIM)
    with driver(place, shelf, {"mine": mine}) as bus:
        until(lambda: bus.report().shipped == 1)
    assert mine.ids() == ids(emitted)
    assert (names(shelf.directory), left_on(place)) == ([], [])


def test_a_copy_without_its_origin_is_not_shipped_where_nobody_can_ask(tmp_path: Path) -> None:
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    handed_over(tmp_path / "pod1", shelf)
    place = tmp_path / "pod2"
    place.mkdir()
    taker = SpoolClaimer(URI, shelf, lambda: place)
    assert taker.take(taker.look()[0]) is not None
    with bus_of(place, {"mine": mine}) as bus:
        until(lambda: bus.ship(0) is not None)
    assert mine.ids() == []
    assert len(left_on(place)) == 1


@pytest.mark.parametrize("data", [None, b"", b"{", b"[]", b'{"files": 3}'])
def test_what_is_not_whole_is_left_alone(tmp_path: Path, data: bytes | None) -> None:
    shelf, mine = Shelf(tmp_path / "shelf"), Made()
    handed_over(tmp_path / "pod1", shelf)
    (name,) = names(shelf.directory)
    marker = shelf.directory / name / MARKER
    if data is None:
        marker.unlink()
    else:
        marker.write_bytes(data)
    assert (list_remote_spools(shelf, {}), list_unfinished_spools(shelf, ())) == ({}, [name])
    with driver(tmp_path / "pod2", shelf, {"mine": mine}) as bus:
        until(lambda: bus.ship(0) is not None)
    assert (mine.ids(), names(shelf.directory)) == ([], [name])


def test_a_file_that_got_shorter_over_there_is_noticed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    handed_over(tmp_path / "pod1", shelf)
    ((name, handed),) = list_remote_spools(shelf, {}).items()
    segment = next((shelf.directory / name).glob("*.segment"))
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(RemoteError, match="isn't as it was handed over"):
        download(handed, shelf, tmp_path / "copy")


def test_a_file_that_does_not_get_there_whole_makes_no_spool(tmp_path: Path) -> None:
    class Cutting(Shelf):
        def put(self, source: Path, path: str) -> None:
            super().put(source, path)
            place = self.directory / path
            if place.suffix == ".segment":
                place.write_bytes(place.read_bytes()[:-1])

    shelf = Cutting(tmp_path / "shelf")
    handed_over(tmp_path / "pod", shelf)
    assert list_remote_spools(shelf, {}) == {}
    assert len(left_on(tmp_path / "pod")) == 1


@pytest.mark.slow
def test_a_spool_that_is_there_already_is_not_touched(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    handed_over(tmp_path / "pod1", shelf)
    (name,) = names(shelf.directory)
    copy = tmp_path / "copy"
    handed = read_remote_spool(shelf, name)
    assert handed is not None
    download(handed, shelf, copy / name)
    emitted = json.loads((shelf.directory / name / MARKER).read_bytes())
    assert {key: emitted["files"][key] for key in handed.files} == dict(handed.files)
    with bus_of(copy, {"mine": lambda _: Away()}):
        pass
    upload(copy / name, shelf, f"{name}.copy-2")
    assert names(shelf.directory) == [name, f"{name}.copy-2"]


def test_nobody_waits_for_a_file_system_longer_than_he_says(tmp_path: Path) -> None:
    hanging = Hanging("names")
    patient = RemoteFilesWithTimeout(URI, lambda _: Shelf(tmp_path, hanging))
    patient.until(time.monotonic() + 0.2)
    with pytest.raises(RemoteError, match=r"listing shelf://anywhere/spools: no answer within 0\.\d s"):
        patient.names("")
    with pytest.raises(RemoteError, match="there is no time left"):
        patient.names("")
    patient.until(time.monotonic() + 0.2)
    with pytest.raises(RemoteError, match="no answer"):
        patient.read("x")  # it stands behind the one that hangs
    hanging.over.set()
    patient.until(time.monotonic() + 60)
    assert patient.read("x") is None
    patient.close()
    with pytest.raises(RemoteError, match="it is closed"):
        patient.read("x")


def test_where_there_is_no_jvm_that_is_said_and_the_spool_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with bus_of(tmp_path, {"mine": lambda _: Away()}, {"spool.handover": URI}) as bus:
        bus.emit(Heartbeat())
        assert not bus.stop(0.2)
    assert "takes the JVM of a driver, and there is none here" in caplog.text
    assert len(left_on(tmp_path)) == 1


def test_trouble_with_it_is_reported_once_and_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shelf = Shelf(tmp_path / "shelf", FailingAt(1))
    with driver(tmp_path / "pod", shelf, {"mine": Made()}) as bus:
        until(lambda: "the connection is gone" in bus.handover_error)
        failing = shelf.before
        assert isinstance(failing, FailingAt)
        until(lambda: failing.calls > 3)
        shelf.before = lambda *_: None
        until(lambda: not bus.handover_error)
    assert caplog.text.count("can't be taken up now") == 1


def test_a_claim_is_renewed_while_its_spool_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(tmp_path / "shelf")
    handed_over(tmp_path / "pod1", shelf)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one, other = (
        SpoolClaimer(URI, shelf, lambda: tmp_path / "one"),
        SpoolClaimer(URI, shelf, lambda: tmp_path / "other"),
    )
    (handed,) = one.look()
    copy = one.take(handed)
    assert copy is not None
    lapse(shelf.directory / handed.name / CLAIM)
    one.renew(copy)
    assert time.time() - (shelf.directory / handed.name / CLAIM).stat().st_mtime > LEASE_SECONDS, "not all the time"
    monkeypatch.setattr("headwater.listeners.bus.spool_claimer._RENEW_SECONDS", 0.0)
    one.renew(copy)
    assert other.take(handed) is None
