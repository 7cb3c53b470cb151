"""At stop, what isn't delivered is taken to a shared directory, for disks that go with the pod."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from pathlib import Path
from typing import Final

from headwater.journal import find_orphans
from headwater.journal.files import OS_FILES, sync_path

_LOG = logging.getLogger(__name__)
INCOMING: Final = ".incoming"
"""Under the shared directory: what isn't whole yet is one level deeper than where spools are looked for."""
_CHUNK: Final = 1 << 20
_LOCAL: Final = frozenset({"lock", "reserve"})


class _OutOfTimeError(Exception):
    """There is no time left for the rest."""


def hand_over(spool: Path, shared: Path, timeout: float) -> bool:
    """Take a closed spool to the shared directory, whole or not at all; whether it is there.

    The one it was copied from is removed after that: a crash in between leaves two, and events come twice.
    """
    incoming, target = shared / INCOMING / spool.name, shared / spool.name
    deadline = time.monotonic() + timeout
    try:
        shutil.rmtree(incoming, ignore_errors=True)
        _copy(spool, incoming, deadline)
        incoming.rename(target)
        sync_path(OS_FILES, shared)
    except (OSError, _OutOfTimeError) as e:
        shutil.rmtree(incoming, ignore_errors=True)
        _LOG.warning("the spool %s stays where it is, and isn't taken to %s: %s", spool, shared, e)
        return False
    shutil.rmtree(spool, ignore_errors=True)
    _LOG.info("the spool %s is taken to %s", spool, target)
    return True


def is_incoming(path: Path) -> bool:
    """Whether it is where spools are copied to that aren't whole yet."""
    return path.name == INCOMING


def is_of_one_host(path: Path) -> bool:
    """Whether a file of a spool means nothing elsewhere."""
    return path.name in _LOCAL or path.suffix == ".lock"


def shared_spools(shared: Path | None) -> list[Path]:
    """Whole spools that nobody ships right now."""
    if shared is None:
        return []
    with contextlib.suppress(OSError):
        return [path for path in find_orphans(shared) if not is_incoming(path)]
    return []


def _copy(source: Path, target: Path, deadline: float) -> None:
    target.mkdir(parents=True)
    for each in sorted(source.iterdir()):
        if each.is_dir():
            _copy(each, target / each.name, deadline)
        elif not is_of_one_host(each):
            _copy_file(each, target / each.name, deadline)
    sync_path(OS_FILES, target)


def _copy_file(source: Path, target: Path, deadline: float) -> None:
    with source.open("rb") as reading, target.open("wb") as writing:
        while data := reading.read(_CHUNK):
            if time.monotonic() > deadline:
                raise _OutOfTimeError("there was no time left to copy it")
            writing.write(data)
        writing.flush()
        os.fsync(writing.fileno())
