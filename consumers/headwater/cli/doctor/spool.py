"""Where events wait until they are delivered: the directory, its disk, and what dead drivers left in it."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

from headwater.cli.output import Age
from headwater.errors import HeadwaterError
from headwater.journal import find_orphans
from headwater.journal.filesystem import FileSystem, FileSystemKind, file_system_of
from headwater.listeners.bus.spool import journal_options, spool_places
from headwater.listeners.bus.spool_listing import waiting_listeners
from headwater.listeners.settings import PREFIX, Settings
from headwater.spi import CheckResult

_KEY: Final = f"{PREFIX}spool.dir"
_MIB: Final = 1 << 20
_TRIES: Final = 5
_SLOW: Final = 0.1
_LAYERS: Final = frozenset({"overlay", "fuse.fuse-overlayfs"})
_ELSEWHERE: Final = "until then spools are in the system's temporary directory, and go with it"


def check_spool(settings: Settings) -> Iterator[CheckResult]:
    try:
        place = settings.spool_dir.expanduser().absolute()
    except RuntimeError as e:  # nobody has a home here
        yield CheckResult.error(
            "directory", f"{_KEY}: {settings.spool_dir}: {e}; {_ELSEWHERE}", f"{_KEY}=/a/local/disk"
        )
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        took = _measure_sync(place)
    except OSError as e:
        words = f"{place} can't be used ({e.strerror or e}); {_ELSEWHERE}"
        yield CheckResult.error(
            "directory", words, f"make it writable for the drivers' user, or name another in {_KEY}"
        )
        return
    yield CheckResult.ok("directory", f"{place} can be written to, and was read back")
    yield _kind(file_system_of(place), place, settings)
    yield _fsync(took)
    yield _room(place, settings)
    if settings.spool_handover is not None:
        yield _handover(settings.handover_path, settings.spool_handover)
    yield from _orphaned_spools(settings)


def _measure_sync(place: Path) -> float:
    """Write, sync and read a small file, as a spool does; the seconds that a sync takes."""
    probe = place / f".doctor-{uuid4().hex}"
    took: list[float] = []
    try:
        with probe.open("xb", buffering=0) as file:
            for _ in range(_TRIES):
                file.write(b"headwater doctor\n")
                began = time.monotonic()
                os.fsync(file.fileno())
                took.append(time.monotonic() - began)
        if probe.read_bytes() != b"headwater doctor\n" * _TRIES:
            raise OSError("what was written isn't what is read")
    finally:
        probe.unlink(missing_ok=True)
    return statistics.median(took)


def _kind(found: FileSystem, place: Path, settings: Settings) -> CheckResult:
    step = "file system"
    if found.kind is FileSystemKind.UNKNOWN:
        return CheckResult.warning(step, f"what {place} is on isn't known here: a spool belongs on a local disk")
    if found.doubts is not None:
        return CheckResult.warning(step, found.doubts, f"name a directory on a local disk in {_KEY}")
    if found.type in _LAYERS and settings.spool_handover is None:
        words = f"{place} is in a container's own layer ({found.type}): what isn't delivered goes with the container"
        advice = f"mount a volume there, or name a directory that outlives it in {PREFIX}spool.handover"
        return CheckResult.warning(step, words, advice)
    return CheckResult.ok(step, f"{found.type}, mounted at {found.mount}")


def _fsync(took: float) -> CheckResult:
    words = f"a sync takes {took * 1000:.1f} ms"
    if took > _SLOW:
        return CheckResult.warning("fsync", f"{words}: this disk is slow, or busy", f"name a quicker disk in {_KEY}")
    return CheckResult.ok("fsync", words)


def _room(place: Path, settings: Settings) -> CheckResult:
    free, limit = shutil.disk_usage(place).free, settings.spool_max_bytes
    words = f"{free // _MIB} MiB are free, and a spool may grow to {limit // _MIB} MiB ({PREFIX}spool.max.bytes)"
    if free < journal_options(settings).reserve_bytes:
        return CheckResult.error("room", f"{words}: not even a Gap could be emitted", "make room on this disk")
    if free < limit:
        advice = f"make room, or set {PREFIX}spool.max.bytes lower, so that the oldest events go and not the newest"
        return CheckResult.warning("room", f"{words}: the disk is full before that", advice)
    return CheckResult.ok("room", words)


def _handover(path: Path | None, given: str) -> CheckResult:
    step, key = "handover", f"{PREFIX}spool.handover"
    if path is None:
        return CheckResult.ok(
            step, f"what isn't delivered at the end goes to {given}: only a driver's Hadoop can try that"
        )
    if not path.exists():
        words = f"{path} isn't there now, and is made when something is handed over"
        return CheckResult.warning(step, words, "is what should be mounted there mounted?")
    if not path.is_dir() or not os.access(path, os.W_OK | os.X_OK):
        words = f"{path} can't be written to: what isn't delivered at the end stays on this disk"
        return CheckResult.error(step, words, f"make it writable for the drivers' user, or name another in {key}")
    return CheckResult.ok(step, f"what isn't delivered at the end goes to {path}")


def _orphaned_spools(settings: Settings) -> Iterator[CheckResult]:
    spools = [spool for place in dict.fromkeys(spool_places(settings)) for spool in find_orphans(place)]
    if not spools:
        yield CheckResult.ok("dead drivers", "none left anything undelivered here")
        return
    try:
        names = sorted({name for spool in spools for name in waiting_listeners(spool)})
    except (HeadwaterError, OSError) as e:
        yield CheckResult.warning("dead drivers", f"what they left can't be read: {e}", "headwater spool verify")
        return
    age = Age(max(0.0, *(time.time() - _newest(spool) for spool in spools)))
    words = f"{len(spools)} left something undelivered, the oldest {age} ago, for {', '.join(names) or 'nobody'}"
    advice = "the next driver here delivers what its listeners are named for; `headwater spool status` shows for whom"
    yield CheckResult.warning("dead drivers", words, advice)


def _newest(spool: Path) -> float:
    return max((path.stat().st_mtime for path in spool.glob("*.segment")), default=time.time())
