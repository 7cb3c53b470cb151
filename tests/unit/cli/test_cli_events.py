"""`headwater events`: what cat and tail show, of logs and spools, and what they leave alone."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from headwater.cli import main
from headwater.cli.events import showing
from headwater.cli.exits import Exit
from headwater.cli.flags import moment
from headwater.events.envelope import Event
from headwater.events.kinds import AnyEvent
from headwater.journal import Journal, JournalEntry, JournalOptions
from headwater.spi import EventRecord
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch, from_the_future

ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)
RECORDS = batch(EXAMPLES).records
SEQUENCES = [event.sequence for event in EXAMPLES]


def write(directory: Path, records: Iterable[EventRecord], begin: int = 1, step: int = 1) -> None:
    """A journal of these records, appended at these times."""
    times = iter(range(begin, begin + 10_000 * step, step))
    with Journal.open(directory, JournalOptions(clock=lambda: next(times))) as journal:
        for each in records:
            journal.append(each.data, key=each.key, headers=each.headers)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose partitions hold every other example."""
    directory = tmp_path / "log"
    write(directory / "partition-0000", RECORDS[::2], begin=10_000, step=20)
    write(directory / "partition-0001", RECORDS[1::2], begin=10_000 + 10, step=20)
    return directory


def cat(capsys: pytest.CaptureFixture[str], source: str, *flags: str) -> list[str]:
    assert main(["events", "cat", "--from", source, *flags]) == Exit.DONE
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def sequences(lines: Iterable[str]) -> list[int]:
    return [int(json.loads(line)["sequence"]) for line in lines]


def files_in(directory: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


def test_cat_shows_all_there_is_in_the_order_of_time(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_in(log)
    lines = cat(capsys, f"log:{log}", "--output", "json")
    assert [ADAPTER.validate_json(line) for line in lines] == list(EXAMPLES)
    assert files_in(log) == before, "reading changed something"


def test_cat_shows_text(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = (Path(__file__).parents[1] / "events/lines.txt").read_text(encoding="utf-8").splitlines()
    assert [line[26:] for line in cat(capsys, f"log:{log}")] == expected


def test_the_output_can_be_chosen_before_and_behind_the_command(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", "json", "events", "cat", "--from", f"log:{log}", "--limit", "1"]) == Exit.DONE
    assert capsys.readouterr().out.startswith("{")
    text = ["--output", "json", "events", "cat", "--from", f"log:{log}", "--limit", "1", "--output", "text"]
    assert main(text) == Exit.DONE
    assert capsys.readouterr().out.startswith("2026-03-01 12:00:01.000Z  CreateDatabase")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--kind", "gap", "--kind", "Heartbeat"], [24, 25]),
        (["--job", "clicks"], [20]),
        (["--job", "click*"], [20]),
        (["--job", "orders_etl", "--kind", "Committed"], [19]),
        (["--table", "lake.sales.today"], [7, 8, 9]),
        (["--table", "sales.today"], [7, 8, 9]),
        (["--table", "customers"], [18, 19]),
        (["--table", "lake.sales.now"], [8]),
        (["--table", "kafka://broker-1:9092/clicks"], [20]),
        (["--table", "warehouse/sales/rates"], [19]),
        (["--table", "sales.today.now"], []),
        (["--table", "*rates", "--kind", "Gap"], []),
        (["--since", "2026-03-01T12:00:26Z"], [26, 27, 28, 29, 30]),
        (["--until", "2026-03-01T12:00:03"], [1, 2]),
        (["--since", "2026-03-01T14:00:26+02:00", "--until", "2026-03-02", "--limit", "2"], [26, 27]),
    ],
)
def test_what_is_not_asked_for_is_left_out(
    log: Path, capsys: pytest.CaptureFixture[str], flags: list[str], expected: list[int]
) -> None:
    assert sequences(cat(capsys, f"log:{log}", "--output", "json", *flags)) == expected


def test_times_can_be_reported_by_how_long_ago() -> None:
    before = datetime.now(timezone.utc)
    assert before <= moment("15m") + timedelta(minutes=15) <= datetime.now(timezone.utc)


def test_a_spool_is_one_journal_or_a_directory_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "spool/app/one", RECORDS[:3], begin=10)
    write(tmp_path / "spool/two", RECORDS[3:5], begin=100)
    assert sequences(cat(capsys, f"spool:{tmp_path}/spool", "--output", "json")) == SEQUENCES[:5]
    assert sequences(cat(capsys, f"spool:{tmp_path}/spool/two", "--output", "json")) == SEQUENCES[3:5]


def test_an_empty_log_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cat(capsys, f"log:{tmp_path}") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("log:{}/nowhere", "nowhere isn't there: name the directory of a log or a spool"),
        ("log:{}/file", "file isn't a directory"),
        ("log:{}/other", "other isn't a log: there is no partition-0000 in it"),
        ("spool:{}/other", "other isn't a spool"),
        ("log:{}/spool", "spool isn't a log, but holds journals: write spool:"),
    ],
)
def test_a_wrong_directory_is_said_to_be_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, words: str
) -> None:
    for path in ("file", "other/thing"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    write(tmp_path / "spool/one", RECORDS[:1])
    for action in ("cat", "tail"):
        assert main(["events", action, "--from", source.format(tmp_path)]) == Exit.CONFIGURATION
        assert words in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--from", "kafka:x"], "'kafka:x' isn't a source: write log:DIR or spool:DIR"),
        (["--from", "spool"], "'spool' isn't a source"),
        (["--kind", "Comitted"], "there is no kind Comitted: did you mean Committed?"),
        (["--since", "yesterday"], "'yesterday' isn't a time: write 2026-03-01"),
        (["--since", "2026"], "'2026' isn't a time"),
        (["--limit", "0"], "'0' isn't a number of things: write 1 or more"),
        (["--output", "xml"], "no output 'xml'; there are: text, json"),
    ],
)
def test_a_wrong_flag_is_said_to_be_wrong(capsys: pytest.CaptureFixture[str], flags: list[str], words: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["events", "cat", *flags])
    assert words in capsys.readouterr().err


def test_what_cannot_be_read_is_shown_as_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Journal.open(tmp_path / "partition-0000") as journal:
        newer = from_the_future(RECORDS[0])
        journal.append_many([JournalEntry(newer.data, newer.key, newer.headers), b"junk", b""])
        journal.append(RECORDS[1].data)
    lines = cat(capsys, f"log:{tmp_path}")
    assert "InventedLater     -  a newer headwater wrote this" in lines[0]
    assert "?                 -  no event: unknown framing" in lines[1]
    assert "no event: empty" in lines[2]
    assert "AlterDatabase" in lines[3]
    printed = [json.loads(line) for line in cat(capsys, f"log:{tmp_path}", "--output", "json")]
    assert [list(each)[:2] for each in printed[:3]] == [
        ["kind", "unknown"],
        ["kind", "undecodable"],
        ["kind", "undecodable"],
    ]
    assert (printed[1]["undecodable"]["data"], printed[1]["undecodable"]["offset"]) == (b"junk".hex(), "1")
    assert main(["events", "cat", "--from", f"log:{tmp_path}", "--table", "*"]) == Exit.DONE
    assert "3 records can't be read and were left out by --job or --table" in capsys.readouterr().err


def test_losses_are_reported_beside_the_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "partition-0000", RECORDS[:5])
    (segment,) = (tmp_path / "partition-0000").glob("*.segment")
    content = bytearray(segment.read_bytes())
    content[content.index(RECORDS[2].data) + 20] ^= 1
    segment.write_bytes(content)
    assert main(["events", "cat", "--from", f"log:{tmp_path}", "--output", "json", "--kind", "DropTable"]) == Exit.DONE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("headwater: partition-0000: 1 records are lost, offsets 2 to 2: corrupt (bytes ")


def test_an_output_without_arrows_ends_no_reading(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["events", "cat", "--from", f"log:{log}", "--kind", "Committed"]) == Exit.DONE
    assert rb"\u2192" in raw.getvalue()


@contextmanager
def tailing(*flags: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "headwater.cli", "events", "tail", "--output", "json", *flags]
    # Whoever runs the tests in the background has Ctrl-C ignored, and so has all that is started by them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_of(process: subprocess.Popen[str], count: int) -> list[int]:
    """The next so many events; pytest's own limit ends what never comes."""
    assert process.stdout
    return sequences(process.stdout.readline() for _ in range(count))


@pytest.mark.slow
def test_tail_follows_also_what_is_new_and_ends_on_ctrl_c(log: Path) -> None:
    with tailing("--from", f"log:{log}", "--from-start") as process:
        assert lines_of(process, len(EXAMPLES)) == SEQUENCES
        write(log / "partition-0001", RECORDS[:2])
        assert lines_of(process, 2) == [1, 2]
        write(log / "partition-0002", RECORDS[5:8])
        assert lines_of(process, 3) == [6, 7, 8]
        shutil.rmtree(log / "partition-0002")
        write(log / "partition-0003", RECORDS[8:9])
        assert lines_of(process, 1) == [9]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == Exit.INTERRUPTED
        assert process.stderr
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_tail_of_a_log_that_nobody_writes_yet_says_so(tmp_path: Path) -> None:
    with tailing("--from", f"log:{tmp_path}", "--limit", "1") as process:
        assert process.stderr
        assert process.stderr.readline().startswith(f"no event is in {tmp_path} yet")
        write(tmp_path / "partition-0000", RECORDS[:1])
        assert lines_of(process, 1) == [1]


def test_tail_shows_what_comes_right_after_it_said_that_nothing_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Finds an event that is lost between the words and the first look, which no timing of a process shows surely."""
    monkeypatch.setattr(showing, "print_words", lambda *_: write(tmp_path / "partition-0000", RECORDS[:1]))
    assert main(["events", "tail", "--from", f"log:{tmp_path}", "--limit", "1", "--output", "json"]) == Exit.DONE
    assert sequences(capsys.readouterr().out.splitlines()) == [1]


@pytest.mark.slow
def test_tail_shows_nothing_of_what_was_there(log: Path) -> None:
    with tailing("--from", f"log:{log}", "--limit", "1") as process:
        while process.poll() is None:
            write(log / "partition-0000", RECORDS[8:9])
        assert lines_of(process, 1) == [9], "the first example would have come first"


@pytest.mark.slow
def test_a_writer_and_its_limits_do_not_notice_a_reader(tmp_path: Path) -> None:
    options = JournalOptions(max_bytes=8192, segment_bytes=4096)
    with Journal.open(tmp_path / "partition-0000", options) as journal:
        journal.append(RECORDS[0].data, headers=RECORDS[0].headers)
        with tailing("--from", f"log:{tmp_path}", "--from-start") as process:
            assert lines_of(process, 1) == [1]
            for _ in range(200):
                journal.append(RECORDS[0].data, headers=RECORDS[0].headers)
            journal.trim()
            assert journal.first_offset > 0
            assert journal.positions() == {}
