"""What tests/conftest.py promises: no skips where none are allowed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
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
    plain = ["-p", "no:cacheprovider", "-p", "no:randomly", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *plain, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_skips_are_failures_where_none_are_allowed(folder: Path) -> None:
    assert "1 passed, 3 skipped, 1 xfailed in" in run(folder)
    said = run(folder, "--no-skips")
    assert "1 failed, 1 passed, 1 xfailed, 2 errors in" in said
    assert said.count("no test may be skipped here (--no-skips)") >= 3
    assert "no server" in said
