"""What `up`, `down` and `status` make of a directory in which nothing runs, or not what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.cli.dev.home import DevState, Home, Part, Phase, default_home
from headwater.cli.dev.supervisor import Supervisor, WriterServer
from headwater.cli.exits import Exit
from headwater.local import ServerKind, StartError
from headwater.local.process_identity import ProcessIdentity
from headwater.local.server import LocalServer
from tests.kit.waiting import until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").create()


def gone() -> ProcessIdentity:
    """A process that was there long before."""
    found = ProcessIdentity.of(os.getpid())
    assert found is not None
    return replace(found, start_time="before")


def call(home: Home, *arguments: str) -> int:
    return main(["dev", *arguments, "--home", str(home.path)])


def test_what_was_written_is_read(home: Home) -> None:
    state = DevState(
        Phase.RUNNING, gone().to_dict(), "2026", {"kafka": Part(True, "h:1", gone().to_dict(), 2, "/log", 3)}, "f"
    )
    home.write(state)
    assert home.state() == state
    assert (home.path / "state.json").stat().st_mode & 0o077 == 0, "it holds a password"


def test_one_supervisor_at_a_time(home: Home) -> None:
    with home.hold_lock() as first, home.hold_lock() as second:
        assert (first, second) == (True, False)
    with home.hold_lock() as again:
        assert again


def test_nothing_to_stop_is_no_error(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(home, "down") == Exit.DONE
    assert call(Home(tmp_path / "nowhere"), "down") == Exit.DONE
    assert capsys.readouterr().out.count("nothing runs in") == 2
    assert call(Home(tmp_path / "nowhere"), "status") == Exit.FAILED
    assert not (tmp_path / "nowhere").exists()


def test_a_stranger_with_the_id_of_a_supervisor_is_left_alone(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as stranger:
        stale = replace(gone(), pid=stranger.pid).to_dict()
        home.write(DevState(Phase.RUNNING, stale, "2026", {"kafka": Part(True, "h:1", stale)}))
        assert call(home, "status") == Exit.FAILED
        assert "was killed: `headwater dev up` starts it again" in capsys.readouterr().out
        assert call(home, "down") == Exit.DONE
        assert stranger.poll() is None


def test_what_a_killed_supervisor_left_is_stopped(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as left:
        found = ProcessIdentity.of(left.pid)
        assert found is not None
        part = Part(True, "h:1", found.to_dict(), int(signal.SIGINT))
        home.write(DevState(Phase.RUNNING, gone().to_dict(), "2026", {"postgres": part}))
        assert call(home, "status") == Exit.FAILED
        assert f"postgres of it still runs (process {left.pid})" in capsys.readouterr().out
        assert call(home, "down") == Exit.DONE
        assert left.wait(60) != 0
    assert "stopped" in capsys.readouterr().out


def test_why_it_ended_is_reported(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.write(DevState(Phase.STOPPED, gone().to_dict(), "2026", fault="kafka ended 3 times"))
    assert call(home, "status") == Exit.FAILED
    assert "it ended by itself: kafka ended 3 times" in capsys.readouterr().out


def test_a_purge_takes_what_is_ours_only(home: Home) -> None:
    home.write(DevState(Phase.STOPPED))
    (home.path / "kafka" / "data").mkdir(parents=True)
    (home.path / "mine.txt").write_text("")
    assert call(home, "down", "--purge", "--yes") == Exit.DONE
    assert [path.name for path in home.path.iterdir()] == ["mine.txt"]
    (home.path / "mine.txt").unlink()
    assert call(home, "down", "--purge", "--yes") == Exit.DONE
    assert not home.path.exists()


def test_nothing_is_removed_without_a_yes(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable says --purge or --yes."""
    home.write(DevState(Phase.STOPPED))
    (home.path / "kafka").mkdir()
    for variable in ("HEADWATER_PURGE", "HEADWATER_YES"):
        monkeypatch.setenv(variable, "true")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert call(home, "down") == Exit.DONE
    assert call(home, "down", "--purge") == Exit.CONFIGURATION
    assert "give --yes, or --dry-run" in capsys.readouterr().err
    assert call(home, "down", "--purge", "--dry-run") == Exit.DONE
    assert str(home.path / "kafka") in capsys.readouterr().out
    assert (home.path / "kafka").exists()


def test_nothing_is_removed_while_somebody_starts(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    (home.path / "kafka").mkdir()
    with home.hold_lock():
        assert call(home, "down", "--purge", "--yes") == Exit.TRY_AGAIN
    assert (home.path / "kafka").exists()


def test_a_store_stays_in_its_database(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.write(DevState(Phase.STOPPED, parts={"kafka": Part(), "mariadb": Part()}))
    assert call(home, "up", "--database", "postgres") == Exit.CONFIGURATION
    assert "is in mariadb: take another --home" in capsys.readouterr().err


class Fleeting(LocalServer):
    """Ready, and gone."""

    name = "kafka"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.starts = 0

    @property
    def address(self) -> str:
        return "h:1"

    def _prepare(self) -> None: ...

    def _command(self) -> list[str]:
        self.starts += 1
        return ["/bin/echo", "the server's own words"]

    def _answer(self) -> str | None:
        return None


@pytest.mark.slow
def test_what_ends_again_and_again_is_not_started_for_ever(home: Home) -> None:
    said: list[str] = []
    supervisor = Supervisor(home, ServerKind.POSTGRES, "t", said.append)
    server = Fleeting(home.part("kafka"))
    supervisor.start_one(server)
    with pytest.raises(StartError, match=r"kafka ended 3 times within a minute; the end of its log:\n.*own words"):
        supervisor.watch(threading.Event())
    supervisor.stop()
    assert server.starts == 3
    assert said[1] == f"kafka     has ended by itself; its log: {home.path}/kafka/server.log"
    state = home.state()
    assert state is not None
    assert (state.phase, state.fault[:13]) == (Phase.STOPPED, "kafka ended 3")
    assert [(part.is_ready, part.restarts) for part in state.parts.values()] == [(False, 2)]


class Gated(LocalServer):
    """Stays, and is ready as long as its gate is open."""

    def __init__(self, name: str, directory: Path) -> None:
        LocalServer.__init__(self, directory)
        self.name = name
        self.gate = threading.Event()
        self.gate.set()
        self.starts = 0

    @property
    def address(self) -> str:
        return "h:1"

    def _prepare(self) -> None: ...

    def _command(self) -> list[str]:
        self.starts += 1
        return ["/bin/sleep", "600"]

    def _answer(self) -> str | None:
        return None if self.gate.is_set() else "not yet"


class GatedWriter(Gated, WriterServer):
    def __init__(self, directory: Path) -> None:
        Gated.__init__(self, "writer", directory)
        self._bus, self._store = "log:nowhere", ""


@pytest.mark.slow
def test_while_one_is_started_again_the_others_are_watched(home: Home) -> None:
    """The database takes its time; the broker is back meanwhile, and the writer when both are: killed at once, with the
    database, it found none, and all was stopped."""
    supervisor = Supervisor(home, ServerKind.POSTGRES, "t", lambda _: None)
    database, broker = Gated("postgres", home.part("postgres")), Gated("kafka", home.part("kafka"))
    writer = GatedWriter(home.part("writer"))
    for each in (database, broker, writer):
        supervisor.start_one(each)
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(supervisor.watch, ended)
        try:
            database.gate.clear()
            for each in (writer, database):
                os.kill(each.pid, signal.SIGKILL)
            until(lambda: database.starts == 2)
            os.kill(broker.pid, signal.SIGKILL)
            until(lambda: broker.starts == 2 and supervisor.state.parts["kafka"].restarts == 1)
            assert (writer.starts, watching.done()) == (1, False)
            database.gate.set()
            until(lambda: supervisor.state.parts["writer"].restarts == 1)
        finally:
            database.gate.set()
            ended.set()
            watching.result(60)
            supervisor.stop()
    assert (database.starts, broker.starts, writer.starts) == (2, 2, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "phase": "x", "parts": {}}'])
def test_a_file_that_is_no_state_is_reported(home: Home, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (home.path / "state.json").write_text(text)
    assert call(home, "status") == Exit.FAILED
    assert "can't be read" in capsys.readouterr().err


def test_another_versions_home_is_left_alone(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    (home.path / "state.json").write_text('{"version": 2}')
    assert call(home, "up", "--detach") == Exit.FAILED
    assert "of another version of headwater" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert call(Home(tmp_path / "file" / "home"), "up") == Exit.CONFIGURATION
    assert "name another by --home" in capsys.readouterr().err


def test_root_keeps_it_where_others_may_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_home({"XDG_STATE_HOME": "/home/somebody/x"}) == Path("/var/lib/headwater/up")


def test_a_user_keeps_it_among_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_home({"XDG_STATE_HOME": "/s"}) == Path("/s/headwater/up")
    assert default_home({}) == Path.home() / ".local" / "state" / "headwater" / "up"
