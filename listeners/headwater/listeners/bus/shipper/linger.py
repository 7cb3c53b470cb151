"""How long a shipper outlives its driver: not at all in a container that ends with the driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

DEFAULT_SECONDS: Final = 60.0
_MARKERS: Final = ("/.dockerenv", "/run/.containerenv")
_VARIABLES: Final = ("KUBERNETES_SERVICE_HOST", "container")
_GENERATIONS: Final = 3
"""A container's first process is the driver, or starts it: tini, then spark-submit's JVM, then Python."""


def linger_seconds(
    configured: float | None,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    pid: int | None = None,
) -> float:
    """What is configured, or what suits where this driver runs."""
    if configured is not None:
        return configured
    in_container = any((root / marker.lstrip("/")).exists() for marker in _MARKERS) or any(
        map(environment.get, _VARIABLES)
    )
    return 0.0 if in_container and _is_main_process(root, os.getpid() if pid is None else pid) else DEFAULT_SECONDS


def _is_main_process(root: Path, pid: int) -> bool:
    """Whether the container's first process is this one, or is there for it."""
    for _ in range(_GENERATIONS):
        if pid == 1:
            return True
        try:
            lines = (root / "proc" / str(pid) / "status").read_text().splitlines()
            pid = next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
        except (OSError, ValueError, StopIteration):
            return False
    return pid == 1
