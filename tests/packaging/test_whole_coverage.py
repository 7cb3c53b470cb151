"""Coverage that a killed process left half written ends no run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.packaging.house import ROOT
from tools.whole_coverage import remove_broken

PAGE = 4096


def written(path: Path) -> bytes:
    data = CoverageData(str(path))
    data.add_arcs({f"/src/module_{number}.py": [(line, line + 1) for line in range(300)] for number in range(30)})
    data.write()
    data.close()
    return path.read_bytes()


def half_written(path: Path) -> Path:
    """Its beginning is as it should be, and pages behind it never came to the disk."""
    whole = written(path)
    pages = len(whole) // PAGE
    path.write_bytes(whole[: PAGE * (pages // 2)] + bytes(PAGE * (pages - pages // 2)))
    return path


def test_only_what_is_broken_goes(tmp_path: Path) -> None:
    written(tmp_path / ".coverage.vm.whole")
    broken = [half_written(tmp_path / ".coverage.vm.half"), tmp_path / ".coverage.vm.nothing"]
    broken[1].touch()
    assert remove_broken(tmp_path) == broken
    assert [path.name for path in tmp_path.iterdir()] == [".coverage.vm.whole"]


@pytest.mark.slow
def test_a_run_in_which_one_was_killed_passes(tmp_path: Path) -> None:
    """The file comes while the tests run."""
    broken = half_written(tmp_path / "kept").rename(tmp_path / "broken")
    (tmp_path / "test_it.py").write_text(
        f"from pathlib import Path\n\ndef test_it():\n    Path({str(broken)!r}).rename('.coverage.vm.half')\n"
    )
    (tmp_path / "pytest.ini").touch()
    (tmp_path / ".coveragerc").write_text("[run]\nbranch = true\nparallel = true\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "tools.whole_coverage", "--cov=."]
    path = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / ".coverage.vm.half").exists()
