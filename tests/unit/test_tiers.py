"""What tests/kit/plugins promises: samples, groups, slices, and failures that are reported."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.kit.plugins import quarantine, tiers
from tools.test_all import SLICES, Slice

ROOT = Path(__file__).parents[2]
SAMPLED = """
import pytest

@pytest.mark.sample(3, keep=("b7",))
@pytest.mark.parametrize("case", [f"b{n}" for n in range(9)])
def test_family(case): pass

@pytest.mark.sample(1)
class TestOther:
    @pytest.mark.parametrize("case", "xyz")
    def test_family(self, case): pass

    def test_alone(self): pass

@pytest.mark.long
def test_race(): pass
"""
UNSTEADY = "def test_unsteady(): assert 1 == 2, 'what it said'\n"


def folder_with(folder: Path, **modules: str) -> Path:
    """Test modules with these plugins of ours, and none of our configuration."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  long\n  sample(count)\n")
    for name, content in modules.items():
        (folder / f"{name}.py").write_text(content)
    return folder


def run(folder: Path, *options: str) -> str:
    """Run pytest over the folder and return what it says."""
    plugins = [part for name in ("tiers", "quarantine", "forks") for part in ("-p", f"tests.kit.plugins.{name}")]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *plugins, *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def collected(folder: Path, *options: str) -> list[str]:
    """The names of the tests that would be played."""
    return re.findall(r"::(\S+)$", run(folder, "--collect-only", "-q", *options), re.MULTILINE)


@pytest.mark.slow
def test_of_a_sampled_family_some_stay_and_the_others_are_long(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, test_some=SAMPLED)
    short = collected(folder, "-m", "not long")
    assert short == [
        *("test_family[b0]", "test_family[b4]", "test_family[b7]"),
        *("TestOther::test_family[x]", "TestOther::test_alone"),
    ]
    long = collected(folder, "-m", "long")
    assert len(long) == 9 - 3 + 2 + 1
    assert not set(short) & set(long)


@pytest.mark.slow
def test_a_sample_of_a_module_is_of_what_its_functions_left(tmp_path: Path) -> None:
    module = SAMPLED.replace(
        "import pytest", "import pytest\n\npytestmark = pytest.mark.sample(3, keep=('test_alone',))"
    )
    short = collected(folder_with(tmp_path, test_some=module), "-m", "not long")
    assert len(short) == 3
    assert {"TestOther::test_alone", "test_family[b7]"} <= set(short), "what either mark names"


@pytest.mark.slow
def test_slices_are_all_of_it_once(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, test_some=SAMPLED, test_more="def test_one(): pass\n")
    parts = [collected(folder, "--slice", f"{number}/3") for number in (1, 2, 3)]
    played = [name for part in parts for name in part]
    assert sorted(played) == sorted(collected(folder))
    assert len(set(played)) == len(played)
    assert "a slice is K/N with 1 <= K <= N, such as 3/12, not '4/3'" in run(folder, "--slice", "4/3")


def test_a_sample_is_spread_over_its_family() -> None:
    assert tiers.spread(10, 5) == [0, 2, 4, 6, 8]
    assert tiers.spread(3, 5) == [0, 1, 2]
    assert tiers.spread(3, 0) == []


def test_durations_are_those_of_modules_that_exist() -> None:
    assert not [module for module in tiers.read_durations() if not (ROOT / module).exists()]


@pytest.mark.slow
def test_how_long_tests_of_each_tier_take_is_recorded(tmp_path: Path) -> None:
    tests = "import pytest, time\ndef test_fast(): pass\n"
    tests += "@pytest.mark.slow\ndef test_it(): time.sleep(0.06)\n@pytest.mark.long\ndef test_long(): pass\n"
    folder = folder_with(tmp_path, test_slow=tests, test_known="", test_new="def test_it(): pass\n")
    durations = tmp_path / "durations.json"
    before = {"test_gone.py": {"fast": 3.0}, "test_known.py": {"usual": 2.0}, "test_slow.py": {"usual": 99, "long": 77}}
    durations.write_text(json.dumps(before))
    said = run(folder, "--record-durations", "durations.json", "-m", "not long", "test_slow.py")
    found = dict(tiers.read_durations(durations))
    measured = dict(found.pop("test_slow.py"))
    assert measured.pop("long") == 77, "it wasn't played"
    assert 0 <= measured.pop("fast") < 0.05 < measured.pop("usual") < 30
    assert found == {"test_known.py": {"usual": 2.0}}, "a module that is gone is dropped, one that wasn't played stays"
    assert re.search(r"^=+ 1 modules that durations.json doesn't know yet =+\ntest_new.py$", said, re.MULTILINE)


@pytest.mark.slow
def test_what_takes_longest_of_what_is_played_comes_first(tmp_path: Path) -> None:
    """It finds long tests that put their module first where they aren't played."""
    slow = "import pytest\n@pytest.mark.slow\ndef test_{0}(): pass\n@pytest.mark.long\ndef test_long_{0}(): pass\n"
    folder = folder_with(tmp_path, **{f"test_{name}": slow.format(name) for name in "abc"})
    seconds = {"a": (1.0, 90.0), "b": (3.0, 2.0), "c": (2.0, 50.0)}
    known = {f"test_{name}.py": {"usual": usual, "long": long} for name, (usual, long) in seconds.items()}
    (folder / "tests").mkdir()
    (folder / "tests" / "durations.json").write_text(json.dumps(known))
    assert collected(folder, "-m", "slow") == ["test_b", "test_c", "test_a"]
    assert collected(folder, "-m", "long") == ["test_long_a", "test_long_c", "test_long_b"]


FORKED = """
import os, pathlib, pytest
from tests.kit.waiting import until

@pytest.fixture(scope="module")
def shared():
    pathlib.Path({place!r} + str(os.getpid())).touch()
    until(lambda: len([*pathlib.Path({place!r}).parent.glob("ends?*")]) == 2, "the other process")
    yield os.getpid()
    with open({place!r}, "a") as file:
        print({name!r}, os.getpid(), file=file)

@pytest.mark.parametrize("case", range(20))
def test_it(shared, case, tmp_path):
    assert shared == os.getpid()
    print("said by {name}", case, flush=True)
    assert case != 3, tmp_path
"""


@pytest.mark.slow
def test_forked_processes_play_each_test_once_and_reports_are_as_of_one(tmp_path: Path) -> None:
    """Modules stay whole, with what they share, and a report shows what its own test wrote and nobody else's."""
    modules = {f"test_{name}": FORKED.format(place=str(tmp_path / "ends"), name=name) for name in "abcdef"}
    output = run(folder_with(tmp_path, **modules), "--forks", "2")
    assert "6 failed, 114 passed" in output
    ends = [line.split() for line in (tmp_path / "ends").read_text().splitlines()]
    assert sorted(name for name, _ in ends) == list("abcdef")
    assert len({process for _, process in ends}) == 2
    assert sorted(re.findall(r"^said by (.*)$", output, re.MULTILINE)) == [f"{name} 3" for name in "abcdef"]
    assert {int(number) for number in re.findall(r"fork-(\d)/test_it", output)} <= {0, 1}


@pytest.mark.slow
def test_the_test_in_which_a_forked_process_dies_is_a_failure(tmp_path: Path) -> None:
    dying = "import os, signal\ndef test_dying(): os.kill(os.getpid(), signal.SIGKILL)\n"
    output = run(folder_with(tmp_path, test_dying=dying, test_more="def test_one(): pass\n"), "--forks", "2")
    assert "test_dying.py::test_dying" in output
    assert "the process that played it ended with -9" in output
    assert "1 failed" in output


@pytest.mark.slow
@pytest.mark.parametrize(("days", "status"), [(0, "1 xfailed"), (-1, "1 failed")], ids=["until today", "overdue"])
def test_a_failure_in_quarantine_is_reported_until_its_day(tmp_path: Path, days: int, status: str) -> None:
    """The file is found from the plugin: so the plugin is a copy here."""
    folder = folder_with(tmp_path, test_it=UNSTEADY)
    plugins = folder / "kit/plugins"
    plugins.mkdir(parents=True)
    shutil.copy(quarantine.__file__, plugins / "unsteady.py")
    until = date.today() + timedelta(days=days)  # noqa: DTZ011 - as the plugin does
    (folder / "quarantine.txt").write_text(f"# unsteady\n{until} test_it.py::test_unsteady the broker is slow\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "unsteady"]
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert status in done.stdout
    assert ("in quarantine until" in done.stdout) == (days == 0)
    assert "what it said" in done.stdout
    assert done.returncode == (0 if days == 0 else 1)


def test_what_is_in_quarantine_has_a_test_a_day_and_a_reason() -> None:
    for entry in quarantine.read().values():
        assert (ROOT / entry.test.partition("::")[0]).exists(), f"{entry.test} is no test of ours"
    with pytest.raises(pytest.UsageError, match=r"expected `YYYY-MM-DD test reason`, found 'soon a_test'"):
        quarantine.entry_of("soon a_test")


@pytest.mark.parametrize(("text", "part"), [("", Slice(1, 1)), ("3/12", Slice(3, 12))])
def test_a_slice_is_a_part_or_everything(text: str, part: Slice) -> None:
    assert Slice.parse(text) == part


def test_a_commit_chooses_one_of_all_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = set()
    for number in range(SLICES):
        monkeypatch.setattr("tools.test_all.commit", lambda number=number: f"{number:08x}" + "0" * 32)
        chosen.add(Slice.parse("auto"))
    assert chosen == {Slice(number, SLICES) for number in range(1, SLICES + 1)}


@pytest.mark.parametrize("text", ["13/12", "0/3", "three", "3/", "-1/3"])
def test_what_is_no_slice_is_refused(text: str) -> None:
    with pytest.raises(SystemExit, match=rf"SLICE is K/N with 1 <= K <= N, such as 3/{SLICES}, or auto; not"):
        Slice.parse(text)
