"""Which of the three ways the last driver of this user took to our classes: noted beside the archives of the cache."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from headwater.jvm.cache import ArchiveCache
from headwater.jvm.loader import ClassOrigin

_FILE: Final = "last-driver.json"


@dataclass(frozen=True)
class DriverStart:
    """A driver, and where it had our classes from."""

    origin: ClassOrigin
    application: str
    spark: str
    java: str
    time: str
    """In UTC, as ISO 8601 has it."""


def record_start(start: DriverStart, root: Path | None = None) -> None:
    """Note a driver's start in the place of the one before. Nothing comes of it where that fails."""
    ArchiveCache(root).write(_FILE, json.dumps({**asdict(start), "origin": start.origin.value}).encode())


def read_last_start(root: Path | None = None) -> DriverStart | None:
    """Return the start that was noted last; None where there is none, or where others may have written it."""
    cache = ArchiveCache(root)
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        if cache.is_ours(cache.root / _FILE):
            found: dict[str, Any] = json.loads((cache.root / _FILE).read_bytes())
            return DriverStart(origin=ClassOrigin(found.pop("origin")), **found)
    return None
