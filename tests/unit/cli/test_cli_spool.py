"""`headwater spool`: a listener that was called wrongly, and what becomes of what it would have received."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events import Heartbeat
from headwater.journal import Journal, LocalLog
from tests.kit.bus.left_spools import left_by_a_mistyped_name
from tests.kit.bus.scripts import Taking, bus_of, firsts
from tests.kit.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def spools(tmp_path: Path) -> Path:
    return tmp_path / "spools"


def spool(action: str, spools: Path, *arguments: str) -> int:
    return main(["--output", "json", "spool", action, "--spool-dir", str(spools), *arguments])


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    parts = json.loads(capsys.readouterr().out).values()
    return [row for part in parts if not isinstance(part, bool) for row in (part if isinstance(part, list) else [part])]


def test_what_waits_for_a_name_that_was_put_right_is_reported_once_with_what_to_do(
    spools: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = left_by_a_mistyped_name(spools)
    caplog.clear()
    with bus_of(spools, {"log": lambda _: Taking(), "another": lambda _: Taking()}) as bus:
        until(lambda: [each for each in caplog.messages if "could not be made" in each])
        until(lambda: bus.ship(0) is not None)
        looked = vars(bus)["_delivery"].dead_spools.looked
        looked.clear()
        until(looked.is_set, "another look")
    (line,) = [each for each in caplog.messages if "could not be made" in each]
    assert str(left) in line
    assert "the listener lgo" in line
    assert "(there is another, log)" in line
    assert "`headwater spool rename lgo log`" in line
    assert left.exists()


def test_a_name_that_was_put_right_is_said_once_for_all_drivers(spools: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        left_by_a_mistyped_name(spools)
    caplog.clear()
    with bus_of(spools, {"log": lambda _: Taking()}) as bus:
        until(lambda: [each for each in caplog.messages if "could not be made" in each])
        looked = vars(bus)["_delivery"].dead_spools.looked
        looked.clear()
        until(looked.is_set, "another look")
    (line,) = [each for each in caplog.messages if "could not be made" in each]
    assert line.startswith(f"3 spools in {spools} hold events for the listener lgo")


def test_nobody_is_told_to_rename_what_is_still_configured(spools: Path, caplog: pytest.LogCaptureFixture) -> None:
    left_by_a_mistyped_name(spools)
    caplog.clear()
    with bus_of(spools, {}, {"listeners": "lgo"}) as bus:
        assert bus.ship(60) == 0
    assert not [each for each in caplog.messages if "headwater spool rename" in each]


def test_a_renamed_listener_gets_all_of_it(spools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = left_by_a_mistyped_name(spools)
    assert spool("status", spools) == Exit.DONE
    (row,) = [each for each in printed(capsys) if "listener" in each]
    assert (row["spool"], row["listener"], row["waiting"]) == (str(left), "lgo", 3)
    assert row["note"] == "could not be made"
    assert spool("rename", spools, "lgo", "mine") == Exit.DONE
    assert [row["what_became_of_it"] for row in printed(capsys)] == ["what lgo hadn't got is mine's now"]
    instances = [Taking(), second := Taking()]
    with bus_of(spools, {"mine": lambda _: instances.pop(0)}) as bus:
        assert bus.ship(60) == 1
    assert [each.sequence for each in firsts(second.records)] == [1, 2, 3]
    assert not left.exists()


def test_renaming_to_one_that_has_got_some_skips_nothing(spools: Path) -> None:
    """Both were kept for: the place that comes first holds, and a copy does no harm."""
    left = left_by_a_mistyped_name(spools)
    with Journal.open(left) as journal, journal.cursor("mine") as cursor:
        cursor.read()
        cursor.commit(2)
    assert spool("rename", spools, "lgo", "mine") == Exit.DONE
    with Journal.open(left) as journal:
        assert {name: at for name, at in journal.positions().items() if "." not in name} == {"mine": 0}


def test_shipping_needs_no_driver(spools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = left_by_a_mistyped_name(spools)
    conf = ["--conf", "spark.headwater.listeners=log", "--conf", f"spark.headwater.log.dir={tmp_path / 'log'}"]
    assert spool("ship", spools, *conf) == Exit.TRY_AGAIN, "nobody said who lgo is"
    assert "1 spools wait" in capsys.readouterr().err
    assert spool("rename", spools, "lgo", "log") == Exit.DONE
    capsys.readouterr()
    assert spool("ship", spools, *conf) == Exit.DONE
    assert printed(capsys) == [{"spools": 1, "left": 0}]
    assert not left.exists()
    assert LocalLog.open(tmp_path / "log").reader("partition-0000").next_offset() == 3


def test_dropping_removes_what_is_kept_for_nobody_else(spools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, both = left_by_a_mistyped_name(spools), left_by_a_mistyped_name(spools, "lgo,another")
    assert spool("drop", spools, "lgo", "--dry-run") == Exit.DONE
    assert [row["waiting"] for row in json.loads(capsys.readouterr().out)["to_drop"]] == [3, 3]
    assert spool("drop", spools, "lgo", "--yes") == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["done"], document["dropped"]) == (True, 2)
    assert {row["spool"]: row["what_became_of_it"] for row in document["spools"]} == {
        str(one): "removed: it was kept for nobody else",
        str(both): "not kept for lgo any more",
    }
    assert [one.exists(), both.exists()] == [False, True]
    assert spool("status", spools) == Exit.DONE
    assert [row["listener"] for row in printed(capsys) if "listener" in row] == ["another"]


def test_a_driver_that_runs_is_left_alone(spools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with bus_of(spools, {"mine": lambda _: Taking()}) as bus:
        bus.emit(Heartbeat())
        assert spool("drop", spools, "mine", "--yes") == Exit.TRY_AGAIN
        rows = json.loads(capsys.readouterr().out)["spools"]
        assert [row["what_became_of_it"] for row in rows] == ["left as it is, because its driver runs"]
        assert bus.flush(60)


def test_nothing_is_dropped_without_a_yes(
    spools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = left_by_a_mistyped_name(spools)
    monkeypatch.setenv("HEADWATER_YES", "true")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    assert spool("drop", spools, "lgo") == Exit.CONFIGURATION
    assert "Up to 3 records in 1 spools will never be delivered to lgo" in capsys.readouterr().err
    assert left.exists()


@pytest.mark.parametrize("arguments", [("rename", "nobody", "log"), ("drop", "nobody")])
def test_a_name_that_nothing_is_kept_for_is_said(
    spools: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    action, *rest = arguments
    assert spool(action, spools, *rest) == Exit.FAILED
    assert "no spool is kept for nobody: `headwater spool status` shows" in capsys.readouterr().err


def test_shipping_to_a_listener_that_cannot_be_made_says_why(spools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_by_a_mistyped_name(spools)
    assert spool("ship", spools, "--conf", "spark.headwater.listeners=lgo") == Exit.CONFIGURATION
    assert "lgo" in capsys.readouterr().err
