"""What Linux says of processes that a test started itself."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def is_alive(process: int) -> bool:
    """Whether a process is there that isn't a zombie, which nobody may have waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(process: int | None) -> list[int]:
    """The processes that this one has begun and that are there, whichever of its threads began them."""
    found: list[int] = []
    for each in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, each.read_text().split())
    return found
