"""The job's process without Spark: how it ends, what it is told and what it answers, and columns that are matched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from headwater.errors import ConfigurationError
from headwater.lens import TargetEffect, TargetUse
from headwater.versions.validation import driver, process
from headwater.versions.validation.comparable_columns import match_columns
from headwater.versions.validation.model import (
    ComparedRows,
    PinnedInput,
    RedirectedOutput,
    ResultStart,
    SampleRow,
    UnvalidatableError,
    ValidationOutcome,
    ValidationPlan,
    ValidationRequest,
    ValidationStatus,
    dump_outcome,
    load_outcome,
)
from headwater.versions.validation.process import JobCommand, marks_of, validate
from headwater.versions.validation.rendering import as_page, comparison_page, verdict_of
from headwater.versions.validation.results import ResultTables, full_name, problems_of_uses
from tests.kit.versions.comparison import comparison


def output(table: str = "lake.dws.daily", start: ResultStart = ResultStart.EMPTY) -> RedirectedOutput:
    return RedirectedOutput(table=table, format="ICEBERG", generation="1", commits=((7, 8),), start=start)


PLAN = ValidationPlan(
    sink=output(),
    snapshot=8,
    rows=ComparedRows.ADDED,
    inputs=(PinnedInput(table="lake.ods.orders", names=("lake.ods.orders", "s3://lake/orders"), snapshot="20"),),
    outputs=(output(),),
    job="report",
    run=None,
    notes=("something <odd>",),
)


@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        ("print('to the report?')", ValidationStatus.NOT_COMPARED, 0),
        ("raise SystemExit(3)", ValidationStatus.JOB_FAILED, 3),
        ("raise SystemExit('no orders today')", ValidationStatus.JOB_FAILED, 1),
        ("1 / 0", ValidationStatus.JOB_FAILED, 1),
        ("import os; os._exit(9)", ValidationStatus.JOB_FAILED, 9),
        (
            "from pyspark.sql import SparkSession\nSparkSession.builder.remote('sc://localhost').getOrCreate()",
            ValidationStatus.JOB_FAILED,
            1,
        ),
    ],
)
@pytest.mark.slow
def test_a_job_without_a_session_is_never_equal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], script: str, status: ValidationStatus, code: int
) -> None:
    """Fails if a job that ended before anything was compared counts as compared, or if its output gets into ours."""
    job = tmp_path / "job.py"
    job.write_text(script)
    outcome = validate(PLAN, JobCommand(command=[str(job)]))
    assert (outcome.status, outcome.exit_code, outcome.is_equal) == (status, code, False)
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_a_script_that_isnt_there_is_said() -> None:
    with pytest.raises(UnvalidatableError, match=r"can't open nothing\.py"):
        validate(PLAN, JobCommand(command=["nothing.py"]))


def test_the_run_is_marked_as_a_validation() -> None:
    assert marks_of(PLAN) == {
        "spark.headwater.validating": "true",
        "spark.headwater.tags.lens": "validate lake.dws.daily@8",
    }


def test_an_outcome_comes_back_as_it_was() -> None:
    outcome = ValidationOutcome(status=ValidationStatus.COMPARED, comparison=comparison(), kept=("lake.x.daily",))
    assert load_outcome(dump_outcome(outcome)) == outcome


def test_a_page_says_what_came_out_and_escapes_what_rows_hold() -> None:
    page = as_page(
        PLAN, ValidationOutcome(status=ValidationStatus.COMPARED, comparison=comparison()), ["report.py", "<x>"]
    )
    for words in ("lake.dws.daily@8: different", "different: 1 row different", "&lt;3&gt;", "lake.ods.orders", "gone"):
        assert words in page
    for words in ("<odd>", "<x>", "<3>"):
        assert words not in page
    failed = as_page(PLAN, ValidationOutcome(status=ValidationStatus.JOB_FAILED, exit_code=1), ["report.py"])
    assert "not compared" in failed


def test_a_page_of_two_versions_calls_its_sides_by_their_names() -> None:
    found = comparison(only_recorded=1, samples_only_recorded=(SampleRow(values={"id": "<7>"}),))
    page = comparison_page(found, {"first": "lake.dws.<odd>@7", "second": "lake.dws.daily@8"})
    for words in (
        "lake.dws.&lt;odd&gt;@7",
        "different: 1 row only first, 1 row different",
        "Only in the second",
        "&lt;7&gt;",
    ):
        assert words in page
    for words in ("recorded", "the result", "<odd>", "<7>"):
        assert words not in page


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"different": 0, "missing_in_result": ()}, "equal"),
        ({"different": 0}, "different: the columns differ"),
        ({"different": None, "only_recorded": 2, "only_result": 1}, "different: 2 rows only recorded, 1 row only in"),
    ],
)
def test_the_verdict(more: dict[str, object], verdict: str) -> None:
    assert verdict_of(comparison(**more)).startswith(verdict)


def test_columns_are_matched_by_name_then_by_case() -> None:
    found = match_columns(["id", "A", "b", "x"], ["B", "a", "ID", "y", "A"], ["Id"], ["X"])
    assert [(each.name, each.recorded, each.result, each.is_key) for each in found.pairs] == [
        ("id", 0, 2, True),
        ("A", 1, 4, False),
        ("b", 2, 0, False),
    ]
    assert (found.ignored, found.missing_in_result, found.missing_in_recorded) == (("x",), (), ("a", "y"))
    assert found.is_reordered
    with pytest.raises(ConfigurationError, match="no column 'z'"):
        match_columns(["id"], ["id"], ["z"], [])


class _Session:
    """Stands for the job's first one."""

    is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


NONE_SUCH = "'{}' is ignored, and the snapshot has no such column: there are id, Shop. If the job adds it, say --anyway"


@pytest.mark.parametrize(
    ("key", "ignored", "ignores_new", "problems"),
    [
        (("ID",), ("shop",), False, ()),
        (("idd",), (), True, ("the key has the column 'idd', which the snapshot hasn't: there are id, Shop",)),
        ((), ("loaded",), False, (NONE_SUCH.format("loaded"),)),
        ((), ("loaded",), True, ()),
        (("id",), ("Id",), False, ("id is in the key and ignored: it can be one of both",)),
    ],
)
def test_a_column_that_there_isnt_is_refused_before_the_job_reads_anything(
    monkeypatch: pytest.MonkeyPatch,
    key: tuple[str, ...],
    ignored: tuple[str, ...],
    ignores_new: bool,
    problems: tuple[str, ...],
) -> None:
    """It finds a key that is looked for when the job has run for hours, and a table that is made for nothing."""
    made: list[str] = []

    class Results:
        names: Final[dict[str, str]] = {}

        def __init__(self, *_: object) -> None: ...

        def create(self) -> None:
            made.append("results")

    for name in ("problems_of_input", "problems_of_table"):
        monkeypatch.setattr(driver, name, lambda *_: [])
    monkeypatch.setattr(driver, "configuration_of", lambda _: {})
    monkeypatch.setattr(driver, "replaces_rows_of_keys", lambda *_: False)
    monkeypatch.setattr(driver, "additions_of", lambda *_: SimpleNamespace(columns=["id", "Shop"]))
    monkeypatch.setattr(driver, "ResultTables", Results)
    request = ValidationRequest(
        plan=PLAN,
        command=("job.py",),
        scratch="s",
        outcome_file="",
        configuration={},
        key=key,
        ignored=ignored,
        ignores_new=ignores_new,
    )
    validating, session = driver.ValidatingDriver(request), _Session()
    if not problems:
        validating._prepare(session)
        assert made == ["results"]
        return
    with pytest.raises(SystemExit):
        validating._prepare(session)
    assert validating._outcome(3, ()) == ValidationOutcome(status=ValidationStatus.WRONG_COLUMN, problems=problems)
    assert session.is_stopped
    assert made == []


def test_a_wrong_column_is_a_fault_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ValidationOutcome(status=ValidationStatus.WRONG_COLUMN, problems=("no column 'idd'",))

    def refuse(request: ValidationRequest, _: Path) -> int:
        driver.write_outcome(request.outcome_file, outcome)
        return 3

    monkeypatch.setattr(process, "_run", refuse)
    with pytest.raises(ConfigurationError, match="no column 'idd'"):
        validate(PLAN, JobCommand(command=["job.py"]))


def test_results_of_equal_names_dont_meet() -> None:
    tables = ("lake.dws.daily", "lake.ods.daily", "other.dws.daily")
    names = ResultTables(None, "scratch", [output(each) for each in tables]).names  # type: ignore[arg-type]
    assert list(names.values()) == ["lake.scratch.daily", "lake.scratch.daily_2", "other.scratch.daily"]
    assert full_name("lake.a.b") == "`lake`.`a`.`b`"


READS, ADDS, REPLACES_ALL, CHANGES, KEEPS = TargetEffect


@pytest.mark.parametrize(
    ("replaces_first", "effects", "is_independent"),
    [
        (False, [ADDS], True),
        (False, [KEEPS, ADDS], True),
        (False, [], True),
        (False, [ADDS, CHANGES], False),
        (False, [READS, ADDS], False),
        (False, [REPLACES_ALL, ADDS], False),
        (True, [KEEPS, REPLACES_ALL, READS, CHANGES], True),
        (True, [ADDS], False),
        (True, [READS, REPLACES_ALL], False),
        (True, [], False),
    ],
)
def test_a_result_that_began_empty_counts_only_for_jobs_that_dont_see_it(
    replaces_first: bool, effects: list[TargetEffect], is_independent: bool
) -> None:
    sink = replace(output(), replaces_first=replaces_first)
    uses = [TargetUse("lake.s.daily", each) for each in effects] + [TargetUse("lake.s.other", CHANGES)]
    assert (not list(problems_of_uses([sink], {sink.table: "lake.s.daily"}, uses))) is is_independent
    copied = replace(sink, start=ResultStart.COPY)
    assert not list(problems_of_uses([copied], {sink.table: "lake.s.daily"}, uses))
