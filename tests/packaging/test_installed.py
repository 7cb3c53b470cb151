"""The wheel in an environment that has nothing but its base dependencies: it runs, stays light, and is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.checkout import ROOT, run

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.xdist_group("packaging")]
BIN = Path(sys.executable).parent
RIGHT = ROOT / "tests/typing/intended_use.py"
WRONG = ROOT / "tests/packaging/wrong_use.txt"
WRONG_LINES = {number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if "# WRONG" in line}


def test_the_command_runs(installed: Path, tmp_path: Path) -> None:
    assert run(installed.with_name("headwater"), "--version", cwd=tmp_path).startswith("headwater 0.")
    assert run(installed, "-m", "headwater.cli", "--version", cwd=tmp_path).startswith("headwater 0.")


def test_every_room_can_be_imported_without_an_extra(installed: Path, tmp_path: Path) -> None:
    rooms = sorted(path.parent.name for path in ROOT.glob("*/headwater/*/__init__.py"))
    assert "events" in rooms
    optional = {"listeners", "testing"}  # they may need what they are made for: pyspark, pytest
    imports = "; ".join(f"import headwater.{room}" for room in rooms if room not in optional)
    run(installed, "-W", "error", "-c", imports, cwd=tmp_path)


STORE = """
from importlib.util import find_spec
from headwater.errors import ConfigurationError
from headwater.lineage.store import open_store

assert find_spec("alembic") is None
for _ in range(2):
    open_store("store.db").close()
try:
    open_store("jdbc:postgresql://host/lineage")
except ConfigurationError as e:
    print(e)
"""


def test_a_store_is_made_without_an_extra(installed: Path, tmp_path: Path) -> None:
    """And the one that is missing is named."""
    assert "[postgres]'" in run(installed, "-W", "error", "-c", STORE, cwd=tmp_path)
    assert (tmp_path / "store.db").stat().st_size > 0


def test_an_installation_brings_no_pyspark_and_never_moves_one(installed: Path, uv: Path, wheel: Path) -> None:
    """On a cluster pyspark is already there, at a version that isn't ours to choose."""
    assert "pyspark" not in run(uv, "pip", "list", "--python", installed)
    here = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--quiet", "--report", "-"]
    plan = json.loads(run(*here, f"{wheel}[spark,postgres]"))
    assert {each["metadata"]["name"] for each in plan["install"]} <= {"headwater"}


def mypy(installed: Path, program: Path) -> subprocess.CompletedProcess[str]:
    options = ["--strict", "--config-file=", "--no-incremental", "--python-executable", str(installed)]
    return subprocess.run(
        [BIN / "mypy", *options, program.name], cwd=program.parent, capture_output=True, text=True, check=False
    )


def basedpyright(installed: Path, program: Path) -> list[int]:
    """The lines that it finds wrong."""
    command = [
        str(BIN / "basedpyright"),
        "--outputjson",
        "--pythonpath",
        str(installed),
        "--level",
        "error",
        program.name,
    ]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return [each["range"]["start"]["line"] + 1 for each in report["generalDiagnostics"]]


@pytest.fixture
def right(tmp_path: Path) -> Path:
    program = tmp_path / "right.py"
    program.write_text(RIGHT.read_text(encoding="utf-8"), encoding="utf-8")
    return program


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG.read_text(encoding="utf-8"), encoding="utf-8")
    return program


def test_mypy_reads_the_installed_types(installed: Path, right: Path, wrong: Path) -> None:
    passed = mypy(installed, right)
    assert passed.returncode == 0, passed.stdout
    assert {
        int(line.split(":")[1]) for line in mypy(installed, wrong).stdout.splitlines() if "error:" in line
    } == WRONG_LINES


def test_basedpyright_reads_the_installed_types(installed: Path, right: Path, wrong: Path) -> None:
    assert basedpyright(installed, right) == []
    assert set(basedpyright(installed, wrong)) == WRONG_LINES
