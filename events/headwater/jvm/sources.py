"""Java sources that are compiled together and kept in one archive."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


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
