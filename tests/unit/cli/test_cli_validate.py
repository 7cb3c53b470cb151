"""`headwater validate` up to the job's process, and how it gives what came out of that."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.errors import TerminalError
from headwater.versions import spark_tables, table_comparison, validation
from headwater.versions.validation.model import ComparedColumn, ResultComparison, ValidationOutcome, ValidationStatus
from tests.kit.drivers import ProcessGroup
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.processes import is_alive
from tests.kit.stores import open_new_store
from tests.kit.versions.comparison import comparison
from tests.kit.waiting import until


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    story = StoryProducer()
    story.commit("b@8", reads=["a@20"], job="report")
    with open_new_store(str(tmp_path / "lineage.db")) as opened, opened.engine.begin() as connection:
        store(connection, story)


class Ended:
    """Stands in the place of the job's process."""

    def __init__(self, outcome: ValidationOutcome) -> None:
        self.outcome = outcome
        self.job: validation.JobCommand | None = None

    def __call__(self, plan: validation.ValidationPlan, job: validation.JobCommand) -> ValidationOutcome:
        assert plan.label == "lake.db.b@8"
        self.job = job
        return self.outcome


def ends(monkeypatch: pytest.MonkeyPatch, outcome: ValidationOutcome) -> Ended:
    ended = Ended(outcome)
    monkeypatch.setattr(validation, "validate", ended)
    return ended


COMMAND = ["validate", "b@8", "--run", "jobs/report.py '2026 01'"]


def test_rows_that_differ_are_given_with_their_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    column = ComparedColumn(name="v", recorded_type="int", result_type="bigint", different=1)
    ended = ends(
        monkeypatch,
        ValidationOutcome(
            status=ValidationStatus.COMPARED, comparison=comparison(columns=(column,)), kept=("lake.x.b",)
        ),
    )
    flags = ["--key", "id", "--ignore", "loaded_at", "--keep", "--samples", "3", "--conf", "a=b"]
    assert main([*COMMAND, *flags]) == Exit.FAILED
    text = capsys.readouterr().out
    for words in ("different: 1 row different", "lake.db.a", "int here, bigint in the result", "id=<3>", "lake.x.b"):
        assert words in text
    assert ended.job is not None
    assert ended.job.command == ["jobs/report.py", "2026 01"]
    assert (ended.job.key, ended.job.ignored, ended.job.keep, ended.job.samples) == (["id"], ["loaded_at"], True, 3)
    assert not ended.job.ignores_new
    assert main([*COMMAND, "-o", "json"]) == Exit.FAILED
    answer = json.loads(capsys.readouterr().out)
    assert answer["inputs"] == [{"table": "lake.db.a", "snapshot": "20"}]
    assert answer["different"] == [{"key": "id=<3>", "column": "v", "recorded": "a", "result": None}]
    assert main([*COMMAND, "-o", "html"]) == Exit.FAILED
    assert capsys.readouterr().out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("text", "missing in the second"),
        ("json", '"first": "lake.dws.daily@7"'),
        ("html", "lake.dws.daily@7 and lake.dws.daily@8: different"),
    ],
)
def test_two_versions_are_compared_in_each_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str, said: str
) -> None:
    """Spark compares them in tests/matrix/test_validate_streams.py."""
    asked: list[object] = []
    monkeypatch.setattr(spark_tables, "command_session", lambda *_: nullcontext())

    def compare(*given: object, **_: object) -> ResultComparison:
        asked.append(given)
        return comparison()

    monkeypatch.setattr(table_comparison, "compare_versions", compare)
    assert main(["table", "diff", "lake.dws.daily@7", "lake.dws.daily@8", "--key", "id", "-o", form]) == Exit.FAILED
    assert said in capsys.readouterr().out
    assert asked == [(None, ("lake.dws.daily", 7), ("lake.dws.daily", 8))]


def test_equal_rows_end_with_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    equal = comparison(different=0, missing_in_result=(), samples_different=(), samples_only_result=())
    ends(monkeypatch, ValidationOutcome(status=ValidationStatus.COMPARED, comparison=equal))
    assert main(COMMAND) == Exit.DONE
    assert "verdict   equal" in capsys.readouterr().out


def test_a_job_that_fails_is_neither_equal_nor_different(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, ValidationOutcome(status=ValidationStatus.JOB_FAILED, exit_code=3, problems=("it died",)))
    assert main(COMMAND) == Exit.JOB_FAILED
    assert "exit code 3, so nothing was compared; it died" in capsys.readouterr().err
    ends(monkeypatch, ValidationOutcome(status=ValidationStatus.NOT_COMPARED, problems=("no session",)))
    assert main(COMMAND) == Exit.JOB_FAILED
    assert "no session" in capsys.readouterr().err


@pytest.mark.parametrize("fault", [TerminalError("it broke"), RuntimeError("it broke")])
def test_a_fault_of_ours_is_neither_equal_nor_different(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> NoReturn:
        raise fault

    monkeypatch.setattr(validation, "validate", broken)
    assert main(COMMAND) == Exit.JOB_FAILED
    assert "it broke" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["validate", "nix@8"], ["validate", "b@8", "--store", "sqlite:///nowhere.db"]])
def test_what_the_command_names_and_isnt_there_is_no_failure_of_the_job(words: list[str]) -> None:
    assert main([*words, "--run", "jobs/report.py"]) == Exit.CONFIGURATION


def test_a_pin_that_isnt_read_is_no_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ends(monkeypatch, ValidationOutcome(status=ValidationStatus.COMPARED, comparison=comparison()))
    assert main([*COMMAND, "--pin", "lake.db.q@1", "--anyway", "-o", "json"]) == Exit.FAILED
    answer = json.loads(capsys.readouterr().out)
    assert answer["inputs"] == [{"table": "lake.db.a", "snapshot": "20"}]
    [note] = answer["validation"]["notes"]
    assert note.startswith("lake.db.q is pinned to 1, which the recorded job didn't read")
    assert main([*COMMAND, "--pin", "q@1"]) == Exit.CONFIGURATION
    assert "name the table in full" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["run", "job.py"], COMMAND])
def test_a_table_that_is_pinned_to_two_versions_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the last one counts, and nobody sees that the first one doesn't."""
    pins = ["--pin", "lake.db.a@1", "--pin", "lake.db.a@2"]
    assert main([*words[:1], *pins, *words[1:]]) == Exit.CONFIGURATION
    assert "--pin says two things of lake.db.a, 1 and 2" in capsys.readouterr().err


def test_what_cant_be_read_as_it_was_is_said_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = ends(monkeypatch, ValidationOutcome(status=ValidationStatus.COMPARED))
    assert main(["validate", "b@7", "--run", "job.py"]) == Exit.INPUT_GONE
    assert "nobody reported who wrote it" in capsys.readouterr().err
    assert main(["validate", "b@7", "--run", "job.py", "-o", "json"]) == Exit.INPUT_GONE
    answer = json.loads(capsys.readouterr().out)["validation"]
    assert answer["problems"] == ["nobody reported who wrote it, so what it was made from isn't known"]
    assert ended.job is None


def test_the_job_and_the_snapshot_have_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "b@8"]) == Exit.CONFIGURATION
    assert "--run 'jobs/report.py 2026-01-31'" in capsys.readouterr().err
    assert main(["validate", "b", "--run", "job.py"]) == Exit.CONFIGURATION
    with pytest.raises(SystemExit):
        main(["validate", "b@8", "--run", "  "])


def test_an_aligned_job_is_named_with_its_data_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "revenue@7", "--aligned", "--run", "job.py"]) == Exit.CONFIGURATION
    assert "knows no aligned job 'revenue'" in capsys.readouterr().err
    assert main(["validate", "revenue@x", "--aligned", "--run", "job.py"]) == Exit.CONFIGURATION
    assert "isn't JOB or JOB@DATA_VERSION" in capsys.readouterr().err
    assert main(["validate", "revenue@7", "--aligned", "--pin", "lake.db.a@2", "--run", "job.py"]) == Exit.CONFIGURATION
    assert "a job that lineage knows takes --pin" in capsys.readouterr().err
    assert main(["validate", "b@8", "--sink", "b", "--run", "job.py"]) == Exit.CONFIGURATION
    assert "are for aligned jobs" in capsys.readouterr().err


JOB = """
import os, pathlib, signal
pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()) + "\\n")
signal.pause()
"""
VALIDATE = """
from headwater.cli import main
from headwater.versions.validation import process
process._DRIVER = "job"
raise SystemExit(main(["validate", "b@8", "--run", "report.py"]))
"""


@pytest.mark.slow
def test_the_process_of_the_job_ends_with_a_command_that_is_terminated(tmp_path: Path) -> None:
    """As it does with Ctrl-C: the job went on by itself, with nobody to compare what it made."""
    (tmp_path / "job.py").write_text(JOB)
    pid = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with ProcessGroup([sys.executable, "-c", VALIDATE], env=environment, start_new_session=True) as process:
        until(lambda: pid.exists() and pid.read_text().endswith("\n"), "the job")
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
        until(lambda: not is_alive(int(pid.read_text())), "the end of the job")
