"""What this process has open."""

from __future__ import annotations

from pathlib import Path


def open_below(directory: Path) -> list[Path]:
    """The files below it, one for each descriptor; what other tests' threads open and close meanwhile isn't counted."""
    return [each for each in map(_target, Path("/proc/self/fd").iterdir()) if each.is_relative_to(directory)]


def _target(descriptor: Path) -> Path:
    try:
        return descriptor.readlink()
    except FileNotFoundError:  # closed since it was listed
        return Path()
