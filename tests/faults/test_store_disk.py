"""A store whose disk is full: it is said, what was accepted stays, and it goes on when there is room again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.bus.left_spools import ROOT
from tests.kit.faults.small_disk import on_small_disk

pytestmark = pytest.mark.slow


@pytest.fixture
def place() -> Iterator[Path]:
    """Where another user can get to: a server doesn't run as root."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def seen(which: str, place: Path, size: int) -> dict[str, Any]:
    command = on_small_disk(place, size, 10_000, ["tests.kit.faults.store_disk_victim", which, str(place)])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    assert found["error"] == "StoreFullError", found
    assert "make room where the database keeps its data, and try again" in found["words"]
    assert found["whole"], "what was accepted is there, and nothing of what was refused"
    assert found["after"], "it goes on"


def test_the_disk_of_a_sqlite_file_is_full(place: Path) -> None:
    check(seen("sqlite", place, 12 << 20))


@pytest.mark.database
def test_the_disk_of_a_postgresql_is_full(place: Path) -> None:
    check(seen("postgres", place, 40 << 20))
