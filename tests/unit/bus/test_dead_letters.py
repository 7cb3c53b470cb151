"""An event that a listener refuses for ever goes to its dead letters; the others are delivered, and a Gap says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.errors import TerminalError
from headwater.events import Gap
from headwater.events.envelope import Event
from headwater.journal import JournalRecord, LocalLog
from headwater.journal.dead_letters import WHY
from headwater.listeners.bus.delivery import DIRECTORY
from headwater.spi import EventRecord, RecordBatch, RefusedRecordError, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import Taking, bus_of, emit_all, firsts, ids
from tests.kit.waiting import PATIENCE, until

MANY = DRAFTS * 5


class Refusing(Taking):
    """Takes no record that a test calls too large; `late` says so in `flush` alone."""

    def __init__(self, is_refused: Callable[[EventRecord], bool], *, late: bool = False) -> None:
        super().__init__()
        self._is_refused = is_refused
        self._late = late
        self._waiting: SpoolPosition | None = None

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        refused = next((each.position for each in batch if self._is_refused(each)), None)
        if refused is None and self._waiting is None:
            return super().handle(batch)
        if refused is not None and not self._late:
            raise RefusedRecordError("5000000 bytes, where 1000000 are the limit", refused)
        self._waiting = refused if self._waiting is None else self._waiting
        return self.records[-1].position if self.records else None

    def flush(self, timeout: float) -> SpoolPosition | None:
        if (refused := self._waiting) is not None:
            self._waiting = None
            raise RefusedRecordError("5000000 bytes, where 1000000 are the limit", refused)
        return super().flush(timeout)


def letters(spools: Path, listener: str = "mine") -> list[JournalRecord]:
    log = LocalLog.open(spools / DIRECTORY / listener)
    found: list[JournalRecord] = []
    for partition in log.partitions():
        with log.reader(partition).tail(0) as tail:
            while batch := tail.read():
                found += batch.records
    return found


def is_numbered(*numbers: int) -> Callable[[EventRecord], bool]:
    return lambda record: record.event_id.sequence in numbers


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("numbers", [(1,), (7, 8, 30), (len(MANY),)], ids=["first", "some", "last"])
def test_the_others_are_delivered_and_a_gap_says_what_is_missing(
    tmp_path: Path, numbers: tuple[int, ...], late: bool
) -> None:
    listener = Refusing(is_numbered(*numbers), late=late)
    with bus_of(tmp_path, {"mine": lambda _: listener}) as bus:
        emitted = emit_all(bus, MANY)
        assert bus.flush(PATIENCE)
        until(
            lambda: (
                sum(record.kind == "Gap" and record.event_id not in ids(emitted) for record in listener.records)
                >= len(numbers)
            )
        )
        (report,) = bus.report().listeners
        dropped = bus.dropped()
        assert bus.stop(PATIENCE)
    expected = [each for each in ids(emitted) if each.sequence not in numbers]
    assert [each for each in firsts(listener.records) if each in ids(emitted)] == expected
    gaps = [each.event for each in listener.records if each.event_id not in ids(emitted)]
    assert {
        (each.listener, each.missed, each.first_sequence, each.last_sequence) for each in gaps if isinstance(each, Gap)
    } == {("mine", 1, number, number) for number in numbers}
    assert all("5000000 bytes" in each.detail for each in gaps if isinstance(each, Gap))
    assert (report.dead_letters, dropped["dead-letters.mine"]) == (len(numbers), len(numbers))


def test_a_letter_has_the_bytes_the_key_the_headers_and_why(tmp_path: Path) -> None:
    taking, refusing = Taking(), Refusing(is_numbered(3))
    with bus_of(tmp_path, {"mine": lambda _: refusing, "other": lambda _: taking}) as bus:
        emit_all(bus, MANY)
        assert bus.flush(PATIENCE)
        assert bus.stop(PATIENCE)
    (letter,) = letters(tmp_path)
    (whole,) = [each for each in taking.records if each.event_id.sequence == 3]
    assert (letter.value, letter.key) == (whole.data, whole.key)
    assert letter.headers[:-1] == whole.headers
    assert letter.headers[-1] == (WHY, b"5000000 bytes, where 1000000 are the limit")
    assert (tmp_path / DIRECTORY / "mine").stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / DIRECTORY / "other").exists()


def test_a_gap_that_is_refused_too_is_a_letter_and_no_further_gap(tmp_path: Path) -> None:
    listener = Refusing(lambda record: record.kind == "Gap" or record.event_id.sequence == 2)
    drafts: list[Event] = [each for each in MANY if each.kind != "Gap"]
    with bus_of(tmp_path, {"mine": lambda _: listener}) as bus:
        emitted = emit_all(bus, drafts)
        until(lambda: len(letters(tmp_path)) == 2)
        assert bus.flush(PATIENCE)
        assert bus.stop(PATIENCE)
    assert [dict(each.headers)["kind"] for each in letters(tmp_path)] == [drafts[1].kind.encode(), b"Gap"]
    assert firsts(listener.records) == [each for each in ids(emitted) if each.sequence != 2]


def test_nothing_is_left_out_that_no_disk_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the letter can't be written the listener waits, and what it refuses is lost nowhere."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    spools = tmp_path / "spools"
    spools.mkdir()
    (spools / DIRECTORY).write_text("in the way")
    listener = Refusing(is_numbered(5))
    with bus_of(spools, {"mine": lambda _: listener}) as bus:
        emitted = emit_all(bus, MANY)
        until(lambda: bus.report().listeners[0].failures > 2)
        assert bus.report().listeners[0].dead_letters == 0
        assert not bus.flush(0)
        (spools / DIRECTORY).unlink()
        until(lambda: bus.report().listeners[0].dead_letters == 1)
        assert bus.flush(PATIENCE)
        assert bus.stop(PATIENCE)
    (letter,) = letters(spools)
    assert dict(letter.headers)["sequence"] == str(emitted[4].sequence).encode()


def test_a_hundred_refused_in_a_row_are_not_their_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who refuses everything is suspended, as after any other error that somebody must see to."""
    monkeypatch.setattr("headwater.listeners.bus.spool_dispatcher._MOST_REFUSED", 5)
    everything = [True]
    drafts: list[Event] = [each for each in MANY if each.kind != "Gap"]
    with bus_of(tmp_path, {"mine": lambda _: Refusing(lambda _: everything[0])}) as bus:
        emit_all(bus, drafts)
        until(lambda: "is suspended" in caplog.text)
        everything.clear()
        everything.append(False)
        until(lambda: not bus.report().listeners[0].lag)
        assert bus.stop(PATIENCE)
    assert len(letters(tmp_path)) == 5


def test_what_a_dead_driver_left_is_refused_as_well(tmp_path: Path) -> None:
    class Broken(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            raise TerminalError("not now")

    with bus_of(tmp_path, {"mine": lambda _: Broken()}) as bus:
        left = emit_all(bus, MANY)
        until(lambda: bus.report().listeners[0].failures > 0)
        bus.stop(1)
    made: list[Refusing] = []

    def make(_context: object) -> Refusing:
        made.append(Refusing(lambda record: record.event_id == ids(left)[9]))
        return made[-1]

    with bus_of(tmp_path, {"mine": make}) as bus:
        assert bus.ship(PATIENCE) == 1
        assert bus.report().listeners[0].dead_letters == 1
        assert bus.flush(PATIENCE)
        assert bus.stop(PATIENCE)
    shipped = firsts(record for each in made for record in each.records)
    assert [each for each in shipped if each in ids(left)] == [each for each in ids(left) if each != ids(left)[9]]
    assert len(letters(tmp_path)) == 1


def test_who_refuses_what_it_was_never_handed_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Confused(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            raise RefusedRecordError("too large", SpoolPosition(batch.end + 1_000))

    with bus_of(tmp_path, {"mine": lambda _: Confused()}) as bus:
        emit_all(bus, DRAFTS)
        until(lambda: "is suspended" in caplog.text)
        bus.stop(1)
    assert letters(tmp_path) == []
