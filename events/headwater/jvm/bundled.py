"""The archives of class files that came with this wheel, and which versions they are for.

Each archive is stored once, by its content. The index says of which sources it was compiled, by which Java at least,
and against which jars: those that the classes name. A jar is known by its size and its last bytes, where a zip keeps
the directory of what is in it, so its name and place don't matter. Only the very same jars fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from headwater.jvm.archives import ArchiveFacts, read_facts

_LOG = logging.getLogger(__name__)
DIRECTORY: Final = Path(__file__).parent / "class-files"
_INDEX: Final = "index.json"
_TAIL: Final = 4096


@dataclass(frozen=True)
class BundledArchive:
    """One line of the index."""

    digest: str
    """Of the sources."""
    java: int
    """The oldest Java that it is for."""
    jars: tuple[str, ...]
    """Those that have to be there."""
    file: str


class JarIdentities:
    """Which jars are on a class path. A jar is read when another one of its size is asked for."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._by_size: dict[int, list[str | Path]] = {}
        for path in paths:
            with contextlib.suppress(OSError, ValueError):  # not on this machine
                self._by_size.setdefault(os.stat(path).st_size, []).append(path)  # noqa: PTH116 - as `place_of` says

    def has(self, identity: str) -> bool:
        size = int(identity.partition("-")[0])
        return any(jar_identity(Path(path)) == identity for path in self._by_size.get(size, ()))


@cache
def jar_identity(path: Path) -> str:
    """Return a jar's size and a hash of its last bytes; without one where it can't be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            return f"{size}-{hashlib.sha256(file.read()).hexdigest()[:24]}"
    except OSError as e:
        _LOG.debug("%s can't be read: %s", path, e)
        return "0-"


@cache
def read_index(directory: Path) -> tuple[BundledArchive, ...]:
    """The index of this wheel's archives; empty where it has none."""
    try:
        lines: list[dict[str, Any]] = json.loads((directory / _INDEX).read_text("utf-8"))
        for each in lines:
            each["jars"] = tuple(each["jars"])
        return tuple(BundledArchive(**each) for each in lines)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as e:
        _LOG.debug("this wheel's class files can't be used: %s", e)
        return ()


def write_index(archives: Iterable[BundledArchive], directory: Path) -> None:
    """Write the index of a directory of archives."""
    lines = sorted((asdict(each) for each in archives), key=str)
    (directory / _INDEX).write_text(json.dumps(lines, indent=0), "utf-8")
    read_index.cache_clear()


def find_bundled(
    digest: str, java: int, probed: Path, jars: JarIdentities, directory: Path | None = None
) -> tuple[Path, ArchiveFacts] | None:
    """The archive for these sources and this class path, on which the library's probe comes from the jar `probed`."""
    directory = directory or DIRECTORY
    for each in read_index(directory):
        if each.digest != digest or each.java > java or jar_identity(probed) not in each.jars:
            continue
        if all(map(jars.has, each.jars)):
            try:
                return directory / each.file, read_facts(directory / each.file, check=False)
            except (OSError, ValueError) as e:
                _LOG.debug("this wheel's class files can't be used: %s", e)
    return None
