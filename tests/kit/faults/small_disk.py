"""Small file systems for tests that fill them: real ones.

One is a tmpfs in a mount name space of the program that is to have it, so that it goes with the program: root may have
that, and elsewhere mostly everybody in a user name space of their own. Where neither is allowed the tests fail:
nothing stands in for a disk that is full.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

_MOUNT: Final = 'mount -t tmpfs -o "size=$1,nr_inodes=$2" none "$3"'
_SPACES: Final = (
    ("unshare", "--mount"),
    ("unshare", "--user", "--map-current-user", "--keep-caps", "--mount"),
)
"""Root's, and everybody's. A user stays who he is in his own: no PostgreSQL runs for root."""


def _refused(space: tuple[str, ...]) -> str:
    """Return why a file system can't be mounted so; nothing where it can."""
    script = [*space, "sh", "-c", _MOUNT, "sh", "1m", "100", "/mnt"]
    try:
        done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    return "" if done.returncode == 0 else done.stderr.strip() or f"it ended with {done.returncode}"


@cache
def _space() -> tuple[str, ...]:
    refusals = []
    for space in _SPACES:
        if not (why := _refused(space)):
            return space
        refusals.append(f"{' '.join(space)}: {why}")
    raise AssertionError(
        "no small disk can be mounted, and a full one isn't tested without: run as root, or allow user name spaces "
        f"(sysctl kernel.unprivileged_userns_clone=1; in a container --cap-add SYS_ADMIN). {'; '.join(refusals)}"
    )


def on_small_disk(place: Path, size: int, inodes: int, program: list[str]) -> list[str]:
    """The command that runs a Python program with a small disk at `place`, and a second time if it is killed."""
    script = f'{_MOUNT}; shift 3; "$@" || exec "$@"'
    mounted = [*_space(), "sh", "-c", script, "sh", str(size), str(inodes), str(place)]
    return [*mounted, sys.executable, "-m", *program]


class SmallDisk:
    """Filled with one large file, or with many that are empty."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def fill(self, left: int) -> None:
        """Until so many bytes are free."""
        status = os.statvfs(self._place)
        pages = (status.f_bavail * status.f_frsize - left) // status.f_frsize
        with (self._place / "ballast").open("ab") as ballast:
            for _ in range(pages):
                ballast.write(bytes(status.f_frsize))

    def use_up_names(self) -> None:
        with contextlib.suppress(OSError):
            for number in range(1_000_000):
                (self._place / f"name{number}").touch()

    def free(self) -> None:
        for each in (*self._place.glob("name*"), self._place / "ballast"):
            each.unlink(missing_ok=True)
