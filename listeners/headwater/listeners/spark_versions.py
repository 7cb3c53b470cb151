"""The versions of Spark that headwater is tested on (docs/spark-versions.md)."""

from __future__ import annotations

import re
from typing import Final

TESTED: Final = ("3.5.0", "3.5.7", "3.5.9", "4.0.5", "4.1.1", "4.1.4", "4.2.1", "4.3.0")
_LINE: Final = re.compile(r"\d+\.\d+")
_LINES: Final = tuple(dict.fromkeys(version.rpartition(".")[0] for version in TESTED))


def untested(version: str) -> str | None:
    """What is to be said of a Spark of a line that nobody tests; None for the others."""
    line = _LINE.match(version)
    if line is not None and line[0] in _LINES:
        return None
    return f"{version} isn't among the versions that headwater is tested on ({', '.join(_LINES)})"
