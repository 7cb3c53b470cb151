"""Spools that drivers left behind: killed ones, and those whose listener there isn't."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from headwater.events import Heartbeat
from tests.kit.bus.scripts import bus_of
from tests.kit.waiting import until


def left_by_a_mistyped_name(spools: Path, name: str = "lgo", count: int = 3) -> Path:
    """The spool of a driver whose only listener there isn't."""
    with bus_of(spools, {}, {"listeners": name}) as bus:
        for _ in range(count):
            bus.emit(Heartbeat())
        until(lambda: bus.faults)
        left = bus.spool
        assert not bus.stop(1)
    assert left is not None
    return left


ROOT = Path(__file__).parents[3]


def killed_driver(spools: Path, directory: Path, *, delivered: int, lines: int) -> list[str]:
    """A driver reported so many events, and a few more, and was killed; what it reported, by its own ledger."""
    directory.mkdir()
    command = [sys.executable, "-m", "tests.kit.bus.victim", str(spools), str(directory), str(delivered)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    victim = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        until(lambda: victim.poll() is not None or len(lines_of(directory / "told")) >= lines, "telling")
        if delivered:
            until(lambda: len(lines_of(directory / "arrived")) >= min(delivered, lines), "delivering")
        assert victim.poll() is None
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    return lines_of(directory / "told")


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
