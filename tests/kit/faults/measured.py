"""A program that is run to its end, while its memory is looked at."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Final

_LOOK_SECONDS: Final = 0.05
_MEGABYTE: Final = 1 << 20


@dataclass(frozen=True)
class Measured:
    """How it went."""

    seconds: float
    cpu: float
    """Seconds of processors, its own and its children's."""
    memory: tuple[int, ...]
    """Resident bytes, as often as they were looked at."""
    output: str

    @property
    def peak(self) -> int:
        return max(self.memory)

    @property
    def growth(self) -> int:
        """By how much the most of the last third is above the most of the middle one: what begins grows, and what
        goes on shouldn't."""
        third = len(self.memory) // 3
        return max(self.memory[2 * third :]) - max(self.memory[third : 2 * third] or (0,))

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s ({self.cpu:.1f} s of processors), at most {self.peak / _MEGABYTE:.0f} MB, "
            f"{self.growth / _MEGABYTE:+.0f} MB in the last third"
        )


def run_measured(arguments: Sequence[str], *, timeout: float) -> Measured:
    """`headwater` with these arguments. An AssertionError with its words where it fails."""
    began, used = time.monotonic(), _children()
    command = [sys.executable, "-m", "headwater.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    memory: list[int] = []
    try:
        while process.poll() is None:
            memory.append(resident(process.pid))
            assert time.monotonic() - began < timeout, f"no end after {timeout:.0f} s"
            time.sleep(_LOOK_SECONDS)
        output = process.communicate()[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, output[-3_000:]
    return Measured(time.monotonic() - began, _children() - used, tuple(filter(None, memory)), output)


def resident(pid: int) -> int:
    """Bytes; 0 of one that isn't there any more."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def _children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
