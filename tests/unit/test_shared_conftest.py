"""What tests/conftest.py promises: no skips where none are allowed, and one seed for all that is random."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import seeds

ROOT = Path(__file__).parents[2]
CONFTEST = ROOT / "tests" / "conftest.py"
EXAMPLES = {
    "test_some.py": """
import pytest

def test_skipping_itself():
    pytest.skip("no server")

@pytest.mark.skip(reason="no server")
def test_skipped_by_a_mark():
    pass

@pytest.mark.xfail(strict=True)
def test_failing_as_expected():
    assert False

def test_passing():
    pass
""",
    "test_none.py": "import pytest\npytest.skip('no server', allow_module_level=True)\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tests beside a copy of our conftest.py, and with no configuration of ours."""
    shutil.copy(CONFTEST, tmp_path)
    for name, content in {"pytest.ini": "[pytest]\n", **EXAMPLES}.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def run(folder: Path, *options: str) -> str:
    """Run pytest over the folder and return what it says."""
    plain = ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *plain, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_skips_are_failures_where_none_are_allowed(folder: Path) -> None:
    assert "1 passed, 3 skipped, 1 xfailed in" in run(folder)
    said = run(folder, "--no-skips")
    assert "1 failed, 1 passed, 1 xfailed, 2 errors in" in said
    assert said.count("no test may be skipped here (--no-skips)") >= 3
    assert "no server" in said
    assert " -m pytest --no-skips -m '' test_some.py::test_skipping_itself" in said


RANDOM = """
import random
from hypothesis import given, strategies as st

@given(st.integers(0, 2**64))
def test_an_example(number):
    with open("examples", "a") as drawn:
        drawn.write(f"{number} ")

def test_python_itself():
    with open("drawn", "a") as drawn:
        drawn.write(f"{random.random()} ")
    assert False, "to see what is said of it"
"""


def drawn(folder: Path, monkeypatch: pytest.MonkeyPatch, seed: str) -> tuple[str, str, str]:
    """Return Hypothesis's examples, Python's own random numbers, and what pytest said."""
    monkeypatch.setenv(seeds.VARIABLE, seed)
    files = [folder / "examples", folder / "drawn"]
    for file in files:
        file.unlink(missing_ok=True)
    said = run(folder, "test_random.py")
    examples, numbers = (file.read_text() for file in files)
    return examples, numbers, said


@pytest.mark.slow
def test_all_that_is_random_comes_from_the_seed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI too, where Hypothesis by itself would try the same examples each time."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv(seeds.PROFILE_VARIABLE, "glance")
    (folder / "test_random.py").write_text(RANDOM)
    examples, numbers, said = drawn(folder, monkeypatch, "42")
    assert "comes from HEADWATER_SEED=42\n" in said.partition("collected")[0], "it is told when the run begins"
    again = f"HYPOTHESIS_PROFILE=glance {seeds.this_python()} -m pytest -m '' test_random.py::test_python_itself"
    assert f"HEADWATER_SEED=42 {again}" in said
    assert drawn(folder, monkeypatch, "42")[:2] == (examples, numbers)
    others = drawn(folder, monkeypatch, "43")
    assert others[0] != examples
    assert others[1] != numbers


@pytest.mark.slow
def test_a_run_in_parallel_has_one_seed_though_it_is_a_random_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = "from tests.kit.seeds import seed\ndef test_it(): assert False, f'{seed()};'"
    for name in ("test_random.py", "test_other.py"):
        (folder / name).write_text(test)
    monkeypatch.setenv(seeds.VARIABLE, "random")
    found = [re.findall(r"^E +AssertionError: (\d+);", run(folder, "-n", "2"), re.MULTILINE) for _ in range(2)]
    assert [len(each) for each in found] == [2, 2]
    assert [len(set(each)) for each in found] == [1, 1]
    assert found[0] != found[1]


def test_a_failure_on_another_spark_is_repeated_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv-spark-4.1.1/bin/python"))
    assert seeds.this_python() == ".venv-spark-4.1.1/bin/python"
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    assert seeds.this_python() == "'/opt/my python/bin/python'"


def test_fixed_rounds_go_first_and_the_others_come_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "seed", lambda: 5)
    first = seeds.rounds(4, fixed=(1, 2))
    assert first[:2] == [1, 2]
    assert len({*first}) == 4
    assert seeds.rounds(4) == seeds.rounds(6)[:4], "more rounds are the same ones and others behind them"
    assert seeds.rounds(1, fixed=(1, 2)) == [1, 2]
    monkeypatch.setattr(seeds, "seed", lambda: 6)
    assert not {*seeds.rounds(4)} & {*first}


def test_the_seed_is_the_commits(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    assert seeds.seed_of_commit(tmp_path) == seeds.OUTSIDE_OF_A_REPOSITORY
    subprocess.run([*git, "init", "--quiet"], check=True)
    assert seeds.seed_of_commit(tmp_path) == seeds.OUTSIDE_OF_A_REPOSITORY, "there is no commit yet"
    found = set()
    for message in "ab":
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", message], check=True)
        found.add(seeds.seed_of_commit(tmp_path))
    assert len(found) == 2


@pytest.mark.parametrize("given", ["x", "-1", "1.5"])
def test_a_wrong_seed_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv(seeds.VARIABLE, given)
    with pytest.raises(SystemExit, match="give a whole number"):
        seeds.seed.__wrapped__()
