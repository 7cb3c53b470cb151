"""What `make` says and how it ends: steps, exit codes, help."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.checkout import ROOT, run
from tools import bench, check, environment, test_all


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_check_runs_all_steps_whatever_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = {"one": python("raise SystemExit('broken here')"), "two": python("print('quiet')")}
    monkeypatch.setattr(check, "STEPS", steps)
    assert check.main() == 1
    out = capsys.readouterr().out
    assert re.search(r"^FAILED one +\d+\.\d s$", out, re.MULTILINE)
    assert re.search(r"^ok     two +\d+\.\d s$", out, re.MULTILINE)
    assert "broken here" in out
    assert "quiet" not in out
    assert "failed: one (" in out.splitlines()[-1]


def test_check_passes_when_all_steps_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "STEPS", {"one": python("pass")})
    assert check.main() == 0
    assert "all passed (" in capsys.readouterr().out


def test_check_imports_the_files_that_can_have_fast_tests_once(tmp_path: Path) -> None:
    assert Path(__file__).resolve() in {path.resolve() for path in check.fast_files()}
    for name, marks in {
        "quick": "def test_it(): pass",
        "partly": "@pytest.mark.slow\n@pytest.mark.sample(\n    1\n)\ndef test_it(): pass\n\nclass TestIt: pass",
        "each": "@pytest.mark.kafka\n@pytest.mark.long\ndef test_it(): pass\n\n@pytest.mark.slow\nclass TestIt: pass",
        "slow": "pytestmark = [pytest.mark.slow]",
        "long": "pytestmark = [\n    pytest.mark.sample(2),\n    pytest.mark.long,\n]",
        "some": "    pytestmark = slow\ndef test_it(): pass",
    }.items():
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n{marks}\n")
    (tmp_path / "matrix").mkdir()
    (tmp_path / "matrix" / "test_spark.py").touch()
    assert [path.stem for path in check.fast_files(tmp_path)] == ["test_partly", "test_quick", "test_some"]


@pytest.mark.slow
@pytest.mark.long
def test_what_check_does_not_import_has_no_fast_tests() -> None:
    left_out = {*(environment.ROOT / "tests").rglob("test_*.py")} - {*check.fast_files()}
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", check.FAST, *map(str, sorted(left_out))]
    done = subprocess.run(command, cwd=environment.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout[-2000:]


def test_bench_takes_names_and_refuses_unknown_ones() -> None:
    assert [path.stem for path in bench.chosen(["imports"])] == ["imports"]
    every = [path.stem for path in bench.chosen([])]
    assert "imports" in every
    assert "harness" not in every
    with pytest.raises(SystemExit, match=r"no benchmark import; there are: .*imports"):
        bench.chosen(["import"])


def test_help_lists_every_command_there_is() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split()
    listed = re.findall(r"^  make ([\w-]+)", run("make"), re.MULTILINE)
    assert set(phony) - set(listed) == {".venv", ".venv-spark-4.1.1", ".venv-demo"}
    assert {"demo", "check", "test", "bench", "help"} <= set(listed)


def test_ci_runs_all_three_tiers() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text(encoding="utf-8")
    assert "timed make check" in text
    assert "timed make test " in text
    assert "timed make test-all SLICE=auto" in text


@pytest.mark.parametrize("count", [8, 16, 24])
def test_all_slices_together_play_each_of_a_few_things_once(count: int) -> None:
    things = ["one", "two", "three", "four", "five", "six"]

    played = [own for number in range(1, count + 1) for own in test_all.Slice(number, count).mine(things)]

    for thing in things:
        parts = [part for name, part in played if name == thing]
        assert parts == [test_all.Slice(turn, len(parts)) for turn in range(1, len(parts) + 1)]
        assert parts


def test_only_the_last_slice_plays_containers_and_all_others_everything_else() -> None:
    """Else a slice would be longer than eight minutes, or something would be played by none."""
    played = [set(test_all.kinds(test_all.Slice(number, test_all.SLICES))) for number in range(1, test_all.SLICES + 1)]
    assert played == [set(test_all.KINDS)] * (test_all.SLICES - 1) + [{test_all.CONTAINERS}]
    assert set(test_all.kinds(test_all.Slice(1, 1))) == {*test_all.KINDS, test_all.CONTAINERS}
