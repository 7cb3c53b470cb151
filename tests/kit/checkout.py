"""Where things are in the checkout, and how the tests of the house run commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("events", "listeners", "publishers", "consumers")
SCRIPTS = {ROOT / "consumers/headwater/cli/demo/jobs", ROOT / "consumers/headwater/conformance/scripts"}
"""What `headwater demo` hands to Spark, and `headwater conformance` to users: files that are read, and no modules."""
MODULES = {
    ".".join(path.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__"): path
    for root in SOURCE_ROOTS
    for path in (ROOT / root).rglob("*.py")
    if path.parent not in SCRIPTS
}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command that must succeed and give its output. A wheel compiles our Java, for minutes on a busy machine."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def only(folder: Path, pattern: str) -> Path:
    """The one file of that pattern."""
    (found,) = folder.glob(pattern)
    return found
