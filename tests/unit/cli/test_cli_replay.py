"""`headwater replay`: what is wrong is said before anything is opened, and what it prints."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headwater.cli.app import main
from headwater.cli.replay_output import ProgressLines
from headwater.consumers.replay.filling import PhaseProgress
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.testing.examples import EXAMPLES

LOG = "log:/nowhere"


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        pytest.param([], 78, "where are the events? Name them by --from", id="no source"),
        pytest.param(["--from", "ftp://x"], 2, "isn't a source: write kafka://", id="no bus"),
        pytest.param(["--from", LOG, "--from", "store:b.db"], 78, "a store comes first", id="a store behind a bus"),
        pytest.param(
            ["--from", LOG, "--processes", "2"], 78, "leave --processes at 1", id="several processes on SQLite"
        ),
        pytest.param(["--from", LOG, "--pause", "0"], 2, "isn't a number of things", id="no pause"),
    ],
)
def test_what_is_wrong_is_said(
    flags: list[str], code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["replay", "--store", str(tmp_path / "s.db"), *flags])
    except SystemExit as e:
        found = int(str(e.code))
    assert (found, words in capsys.readouterr().err) == (code, True)
    assert not [*tmp_path.iterdir()], "nothing was opened"


class TestProgress:
    READING = PhaseProgress("reading log:x", "events", 200, 50)

    def test_programs_get_lines_of_json(self) -> None:
        err = io.StringIO()
        lines = ProgressLines("json", err)
        lines.show(self.READING)
        lines.show(self.READING)
        assert len(err.getvalue().splitlines()) == 1, "the next one comes in ten seconds"
        found = json.loads(err.getvalue())
        assert (found["phase"], found["done"], found["total"], found["finished"]) == ("reading log:x", 50, 200, False)
        assert found["seconds_left"] > 0

    def test_people_get_a_line_with_rate_and_time(self) -> None:
        err = io.StringIO()
        ProgressLines("text", err).show(self.READING)
        assert "reading log:x: 50 of 200 events" in err.getvalue()
        assert "left" in err.getvalue()

    def test_a_terminal_has_one_line(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        err = Terminal()
        lines = ProgressLines("text", err)
        lines.show(self.READING)
        lines.show(PhaseProgress("reading log:x", "events", 200, 200, is_finished=True))
        assert err.getvalue().count("\r") == 2
        assert err.getvalue().count("\n") == 1

    def test_nothing_to_do_is_not_shown(self) -> None:
        err = io.StringIO()
        ProgressLines("text", err).show(PhaseProgress("catching up", "events", 0, is_finished=True))
        assert err.getvalue() == ""


@pytest.mark.slow
def test_a_log_fills_a_file_and_is_compared_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole commands, on the smallest store: filled, broken, compared, switched, compared again, and cleaned up."""
    with LocalLog.open(tmp_path / "log").writer() as writer:
        for event in EXAMPLES:
            writer.append(Codec().encode(event))
    store = ["--store", str(tmp_path / "s.db")]
    command = ["-o", "json", "replay", "--from", f"log:{tmp_path}/log", *store]
    compare = ["-o", "json", "store", "compare", *store, "--with"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["replay"]["switched"] is True
    _break(store[1])
    assert main([*command, "--no-switch"]) == 0
    assert json.loads(capsys.readouterr().out)["replay"]["switched"] is False
    assert main([*compare, "fresh"]) == 1
    assert json.loads(capsys.readouterr().out)["differences"][0]["is"] == "only in the other"
    assert main(["-o", "json", "store", "status", *store]) == 0
    assert "unfinished replay" in capsys.readouterr().out
    assert main(command) == 0
    capsys.readouterr()
    assert main([*compare, "former"]) == 1
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert [each["table"] for each in tables if each["digest"] != each["other_digest"]] == ["jobs"]
    assert main([*compare, "fresh"]) == 78
    assert "are no fresh tables" in capsys.readouterr().err
    assert main([*compare, str(tmp_path / "s.db")]) == 0
    assert main([*compare, str(tmp_path / "nowhere.db")]) == 1
    assert "there is no store" in capsys.readouterr().err
    for removed in (True, False):
        assert main(["-o", "json", "replay", "--drop-former", *store]) == 0
        assert json.loads(capsys.readouterr().out)["removed"] is removed


def _break(store: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM jobs")
