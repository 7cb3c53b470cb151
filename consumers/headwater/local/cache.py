"""A cache of downloads outside the checkout. An entry is complete or doesn't exist, and one process at a time creates
it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from headwater.local.errors import DamagedDownloadError, MissingRequirementError
from headwater.local.progress import announce


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return $HEADWATER_CACHE, else $XDG_CACHE_HOME/headwater, else ~/.cache/headwater; made if it isn't there."""
    if environ.get("HEADWATER_CACHE"):
        chosen = Path(environ["HEADWATER_CACHE"])
    elif environ.get("XDG_CACHE_HOME"):
        chosen = Path(environ["XDG_CACHE_HOME"], "headwater")
    else:
        chosen = Path(environ.get("HOME") or "~", ".cache", "headwater")
    try:
        chosen = chosen.expanduser().absolute()
        chosen.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise MissingRequirementError(
            f"the cache directory {chosen} can't be made ({error}): set HEADWATER_CACHE to one that can be written"
        ) from error
    return chosen


def cached_directory(
    name: str,
    make: Callable[[Path], None],
    *,
    check: Callable[[Path], None] = lambda _: None,
    cache: Path | None = None,
) -> Path:
    """Return the directory `name` of the cache. If it doesn't exist, `make` fills an empty directory.

    `check` raises DamagedDownloadError for wrong content: a new download is refused then, and a cached one is made
    again. Two processes that ask at once make it once; one that dies half-way leaves nothing behind.
    """
    cache = cache or cache_directory()
    place = cache / name
    if _is_valid(place, check):
        return place
    with _lock(cache / f"{name}.lock"):
        if not _is_valid(place, check):
            _make(place, make, check)
    return place


def _is_valid(place: Path, check: Callable[[Path], None]) -> bool:
    if not place.exists():
        return False
    try:
        check(place)
    except DamagedDownloadError:
        return False
    return True


def _make(place: Path, make: Callable[[Path], None], check: Callable[[Path], None]) -> None:
    for left in place.parent.glob(f".{place.name}.*.part"):
        shutil.rmtree(left, ignore_errors=True)  # of a process that died; we hold the lock, so nobody is at it
    part = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent))
    try:
        make(part)
        check(part)
        part.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _lock(path: Path) -> Generator[None, None, None]:
    with path.open("ab") as lock, announce(f"waiting for another process that fills {path.parent}") as waiting:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting.over()
        yield


def expected_hashes(listing: str) -> dict[str, str]:
    """Return file name → SHA-256 from one of the package's own lists."""
    text = resources.files("headwater.local").joinpath(listing).read_text()
    pairs = (line.split() for line in text.splitlines() if line)
    return {name: digest for digest, name in pairs}


def verify(directory: Path, expected: Mapping[str, str]) -> None:
    """Raise DamagedDownloadError unless the directory holds exactly the expected files."""
    found = {path.name: _sha256(path) for path in sorted(directory.iterdir())}
    faults = [f"{name} is missing" for name in sorted(expected.keys() - found.keys())]
    faults += [f"{name} is not expected" for name in sorted(found.keys() - expected.keys())]
    faults += [f"{name} has another SHA-256" for name in expected if found.get(name, expected[name]) != expected[name]]
    if faults:
        raise DamagedDownloadError(
            f"{directory} isn't what this version of headwater expects: {', '.join(faults)}. Fetch it again; if that "
            "doesn't help, whatever stands between this machine and the repository changes files"
        )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
