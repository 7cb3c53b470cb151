"""`headwater correct plan` on a small store: the text that people read, the document for programs, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.correction_text import snapshot_ranges
from headwater.cli.exits import Exit
from headwater.events import Committed, Format, JobName, Output
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import ALL
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import add_times, counted, order_warehouse

COMMANDS = "".join(f'[jobs.{name}]\nrun = "jobs/{name}.py {{date}}"\n' for name in ("details", "revenue", "top10"))
PAGE_TEXT = (Path(__file__).parents[3] / "docs/correction.md").read_text()


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    monkeypatch.chdir(tmp_path)
    with open_new_store(str(tmp_path / "lineage.db")) as opened, opened.engine.begin() as connection:
        store(connection, order_warehouse())


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main(["correct", "plan", "orders@4", "-o", "json", *words])
    return json.loads(capsys.readouterr().out)


def test_a_plan_says_what_is_made_run_and_switched_and_what_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the one of the guide, word by word."""
    story = order_warehouse()
    story.commit("revenue@3", reads=["products@1"], replaced=ALL, job="revenue")
    where: dict[str, Any] = {**story.where({"table": "export", "branch": None}), "format": Format.PARQUET}
    read, sink = story.source("top10@1", {}), Output(**where, made_from=(0,))
    story.emit(12, Committed, barrier=90, inputs=(read,), outputs=(sink,), job=JobName(name="export"))
    story.commit("blind@1", opaque="an RDD", job="blind", minute=13)
    add_times(story, 4)
    with open_new_store(str(tmp_path / "guide.db")) as opened, opened.engine.begin() as connection:
        store(connection, counted(story.events))
    Path("correction.toml").write_text('[jobs.details]\nrun = "jobs/details.py {date}"\n')
    assert main(["correct", "plan", "orders@4", "--store", str(tmp_path / "guide.db")]) == Exit.FAILED
    shown = re.search(r"\$ headwater correct plan orders@4\n(.*?)```", PAGE_TEXT, re.DOTALL)
    assert shown is not None
    assert capsys.readouterr().out == shown[1]


def test_the_exit_code_says_whether_all_can_be_corrected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["correct", "plan", "orders@4"]) == Exit.FAILED
    (tmp_path / "commands.toml").write_text(COMMANDS)
    assert main(["correct", "plan", "orders@4", "--commands", "commands.toml"]) == Exit.DONE
    assert "4 mirrors to make, 3 jobs to run, 4 tables to switch." in capsys.readouterr().out


def test_what_is_left_out_stays_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    Path("correction.toml").write_text(COMMANDS)
    assert main(["correct", "plan", "orders@4", "--only", "top10"]) == Exit.FAILED
    said = capsys.readouterr().out
    assert "What is left wrong, as --only leaves it out\n  ! lake.db.revenue\n" in said
    assert "2 jobs to run, 3 tables to switch, 1 left out." in said


def test_programs_get_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers of snapshots are texts, for programs that count in floating point."""
    found = answer(capsys, "--mode", "incremental")
    assert (found["correction"]["snapshot"], found["correction"]["mode"]) == ("4", "incremental")
    assert found["correction"]["whole"] is False
    details = found["tables"][1]
    assert (details["table"], details["snapshots"], details["starts_at"]) == ("lake.db.details", ["2", "3"], "1")
    first = found["jobs"][0]
    assert (first["job"], first["kind"], first["lacks_command"]) == ("details", "batch job", True)
    assert found["limits"] == []


def test_a_missing_file_of_commands_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["correct", "plan", "orders@4", "--commands", "there.toml"]) == Exit.CONFIGURATION
    assert "there.toml can't be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("snapshots", "text"),
    [
        ([], "-"),
        ([4], "4"),
        ([4, 5, 6, 9], "4..6, 9"),
        ([70, 50, 60, 10, 20, 30], "70, 50, 60, 10 and 2 more"),
    ],
)
def test_snapshots_are_written_in_short(snapshots: list[int], text: str) -> None:
    assert snapshot_ranges(snapshots) == text
