"""`headwater spool verify`: each kind of damage is found where it was made, and nothing else is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events import Heartbeat
from headwater.events.envelope import Event, EventFamily
from headwater.journal import Journal, JournalOptions
from headwater.listeners.bus.spool_verification import verify_spool
from headwater.spi import RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import QUICK, Taking, bus_of, emit_all
from tests.kit.waiting import until

MARK = b"\xf5\xc1HW"
Tables = dict[str, Any]


class Away(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise KeyError("away")


@pytest.fixture
def emitted(tmp_path: Path) -> list[Event]:
    """What a driver left for `audit`; `kafka` has got it all."""
    with bus_of(tmp_path, {"audit": lambda _: Away(), "kafka": lambda _: Taking()}) as bus:
        events = emit_all(bus, DRAFTS)
        until(lambda: vars(bus)["_emitter"].spool.journal.positions()["kafka"] == len(events))
        assert not bus.stop(0.5)
    return events


@pytest.fixture
def spool(tmp_path: Path, emitted: list[Event]) -> Path:
    (spool,) = [each for each in tmp_path.iterdir() if each.is_dir()]
    assert len(list(spool.glob("*.segment"))) == 1
    return spool


def verify(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Tables]:
    code = main(["--output", "json", "spool", "verify", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def frames(segment: Path) -> Iterator[tuple[int, int]]:
    """Where each record stands: by the mark that begins it, which is nowhere else in these."""
    data = segment.read_bytes()
    starts = [at for at in range(len(data)) if data.startswith(MARK, at)]
    yield from zip(starts, [*starts[1:], len(data)], strict=True)


def flip(path: Path, start: int, end: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        data = file.read(end - start)
        file.seek(start)
        file.write(bytes(byte ^ 0xFF for byte in data))


def test_a_sound_spool_is_read_to_its_end_and_not_touched(
    emitted: list[Event], spool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(spool)
    code, tables = verify(capsys, "--spool-dir", spool.parent)
    assert code == Exit.DONE
    (row,) = tables["spools"]
    assert (row["records"], row["lost"], row["verdict"], row["segments"]) == (len(emitted), 0, "sound", 1)
    assert row["sequences"] == f"1 to {len(emitted)}"
    assert tables["damage"] == []
    assert tables["read"]["size"] == row["size"] > 0
    assert contents(spool) == before


def test_damage_in_the_middle_is_reported_by_file_and_byte_and_whose_it_was(
    emitted: list[Event], spool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment,) = spool.glob("*.segment")
    places = list(frames(segment))
    assert len(places) == len(emitted)
    start, _ = places[4]
    _, end = places[6]
    flip(segment, start + 20, end - 3)
    code, tables = verify(capsys, "--spool-dir", spool.parent, spool.name)
    assert code == Exit.FAILED
    (row,) = tables["spools"]
    assert (row["records"], row["lost"], row["verdict"]) == (len(emitted) - 3, 3, "damaged")
    (found,) = tables["damage"]
    assert (found["file"], found["bytes"], found["lost"]) == (str(segment), f"{start} to {end}", 3)
    assert found["not_delivered_to"] == "audit", "kafka has got them"
    lost: dict[EventFamily, int] = {}
    for event in emitted[4:7]:
        lost[event.family] = lost.get(event.family, 0) + 1
    assert found["of"] == ", ".join(f"{count} {family.value}" for family, count in sorted(lost.items()))


def test_a_torn_end_is_no_damage_and_another_end_is(
    emitted: list[Event], spool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment,) = spool.glob("*.segment")
    whole = segment.read_bytes()
    start, end = list(frames(segment))[-1]
    segment.write_bytes(whole[: end - 5])
    code, tables = verify(capsys, spool.name, "--spool-dir", spool.parent)
    assert (code, tables["spools"][0]["records"]) == (Exit.DONE, len(emitted) - 1)
    segment.write_bytes(whole)
    flip(segment, end - 5, end)
    code, tables = verify(capsys, "--spool-dir", spool.parent)
    assert code == Exit.FAILED
    (found,) = tables["damage"]
    assert (found["file"], found["bytes"], found["lost"]) == (str(segment), f"{start} to {end}", 1)


def test_a_segment_that_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool = tmp_path / "spool"
    with Journal.open(spool, JournalOptions(segment_bytes=4096)) as journal, journal.cursor("late"):
        for _ in range(12):
            journal.append(bytes(1000))
    bases = sorted(int(each.stem) for each in spool.glob("*.segment"))
    assert len(bases) == 4
    (spool / f"{bases[1]:020}.segment").unlink()
    code, tables = verify(capsys, "--spool-dir", tmp_path)
    assert code == Exit.FAILED
    (found,) = [each for each in tables["damage"] if each["lost"]]
    assert found["lost"] == bases[2] - bases[1]
    assert found["what"] == f"offsets {bases[1]} to {bases[2] - 1} are gone, and nothing dropped them"
    assert found["not_delivered_to"] == "late"


def test_numbers_that_are_missing_though_every_record_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a write failed and nobody could find out whether it was in. A copy is no hole."""
    producer = str(UUID(int=7)).encode()
    with Journal.open(tmp_path / "spool") as journal:
        for number in (3, 4, 4, 7, 8):
            journal.append(b"x", headers=(("producer", producer), ("sequence", b"%d" % number)))
    code, tables = verify(capsys, "--spool-dir", tmp_path)
    assert code == Exit.FAILED
    found = [each for each in tables["damage"] if "sequence" in each["what"]]
    assert [(each["lost"], each["what"].partition(",")[0]) for each in found] == [(2, "sequences 5 to 6 aren't there")]
    assert "before offset 3" in found[0]["what"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cursors/audit.position0", "the position of a cursor can't be read"),
        ("spool.json", "it can't be read whose spool this is"),
        ("progress.json", "it can't be read which runs"),
    ],
)
def test_what_stands_beside_the_records(spool: Path, capsys: pytest.CaptureFixture[str], name: str, words: str) -> None:
    (spool / name).write_bytes(b"{" * 28)
    code, tables = verify(capsys, "--spool-dir", spool.parent)
    assert code == Exit.FAILED
    (found,) = tables["damage"]
    assert found["file"] == str(spool / name)
    assert words in found["what"]


@pytest.mark.slow
def test_a_live_driver_is_not_disturbed_and_not_misjudged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is read a hundred times while it is written to, cut and its limit is reached."""
    keys = {"spool.max.bytes": str(64 * 1024)}
    with bus_of(tmp_path, {"audit": lambda _: Away(), "kafka": lambda _: Taking()}, keys, QUICK) as bus:
        for _ in range(25):
            emit_all(bus, DRAFTS)
            code, tables = verify(capsys, "--spool-dir", tmp_path)
            assert (code, "What" in tables) == (Exit.DONE, False)
        bus.emit(Heartbeat())
        assert bus.report().refused == 0
        assert bus.spool is not None
        assert not (bus.spool / f"{0:020}.segment").exists(), "nothing was cut, and this test shows less"


def test_copies_of_spools_can_be_looked_at_by_path(
    spool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(spool, tmp_path / "other" / "copy")
    code, tables = verify(capsys, "--spool-dir", tmp_path / "other", tmp_path / "other" / "copy")
    assert code == Exit.DONE
    assert [row["spool"] for row in tables["spools"]] == [str(tmp_path / "other" / "copy")]


def test_what_its_driver_drops_meanwhile_is_no_damage(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with Journal.open(spool, JournalOptions(segment_bytes=4096)) as journal, journal.cursor("mine"):
        for _ in range(12):
            journal.append(bytes(1000))
    oldest = sorted(spool.glob("*.segment"))[:2]
    assert len(list(spool.glob("*.segment"))) == 4

    def drop(_: int) -> None:
        for segment in oldest:
            segment.unlink(missing_ok=True)

    verdict = verify_spool(spool, drop)
    assert [each for each in verdict.findings if each.path.name != "spool.json"] == []
    assert 6 <= verdict.records < 12
