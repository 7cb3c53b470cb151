"""The archives of class files that came with this wheel, and which versions they are for.

Each archive is stored once, by its content. The index says of which sources it was compiled, by which Java at least,
and against which jars: those that the classes name. A jar is known by its size and its last bytes, where a zip keeps
the directory of what is in it, so its name and place don't matter. Only the very same jars fit.

An archive of class files: a jar with what one group of Java sources compiles to, and what is known of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

FACTS: Final = "archive.json"
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Archives with the same content are the same bytes."""


@dataclass(frozen=True)
class SourceGroup:
    """What one subject needs, such as a table format: `probe` is a class of its library."""

    name: str
    sources: Mapping[str, bytes]
    """By file name; all are of one Java package."""
    probe: str
    declared: str = ""
    """What the sources reach by reflection: it decides what a self-test looks for."""

    def digest(self, shared: Mapping[str, bytes]) -> str:
        """Name these sources and those that they stand on."""
        digest = hashlib.sha256(self.declared.encode())
        for name, text in sorted({**shared, **self.sources}.items()):
            digest.update(f"\0{name}\0{len(text)}\0".encode())
            digest.update(text)
        return digest.hexdigest()[:32]

    def owns(self, class_file: str) -> bool:
        """Whether a class file, by its path, is made of one of the sources."""
        name = class_file.rpartition("/")[2].removesuffix(".class").partition("$")[0]
        return f"{name}.java" in self.sources


@dataclass(frozen=True)
class ArchiveFacts:
    """What was found out when the sources were compiled against these jars."""

    left_out: Mapping[str, str] = field(default_factory=dict)
    """Classes that can't be compiled, and why."""
    missing: tuple[str, ...] = ()
    """What the self-test didn't find, a line for each."""
    absent: tuple[str, ...] = ()
    """What it didn't look for because its library wasn't there, and may be elsewhere."""


def pack(classes: Mapping[str, bytes], facts: ArchiveFacts) -> bytes:
    """Return an archive of these class files, by their paths."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        content = {FACTS: json.dumps(asdict(facts), sort_keys=True).encode(), **dict(sorted(classes.items()))}
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def read_facts(path: Path, *, check: bool = True) -> ArchiveFacts:
    """Read what is known; a ValueError or OSError where the file isn't whole, or isn't an archive at all."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip() if check else None
            found = json.loads(archive.read(FACTS))
        if damaged is not None:
            raise ValueError(f"{damaged} in {path} is damaged")
        return ArchiveFacts(found["left_out"], tuple(found["missing"]), tuple(found["absent"]))
    except (zipfile.BadZipFile, KeyError, TypeError, EOFError, NotImplementedError, RuntimeError) as e:
        raise ValueError(f"{path} is no archive of class files: {e}") from e


def read_classes(path: Path) -> dict[str, bytes]:
    """Read the class files of an archive that `read_facts` has checked, by their paths."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != FACTS}


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
        for line in lines:
            line["jars"] = tuple(line["jars"])
        return tuple(BundledArchive(**line) for line in lines)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as e:
        _LOG.debug("this wheel's class files can't be used: %s", e)
        return ()


def write_index(archives: Iterable[BundledArchive], directory: Path) -> None:
    """Write the index of a directory of archives."""
    lines = sorted((asdict(archive) for archive in archives), key=str)
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
