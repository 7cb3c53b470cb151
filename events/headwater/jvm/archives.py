"""An archive of class files: a jar with what one group of Java sources compiles to, and what is known of it."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

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
