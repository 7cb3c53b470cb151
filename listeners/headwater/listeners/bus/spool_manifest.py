"""The manifest beside a spool: which driver it belongs to, and which listener gets which families."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from headwater.events.envelope import EventFamily
from headwater.journal import Files
from headwater.journal.files import read_file, replace_file
from headwater.spi import Application

ALL_FAMILIES: Final = frozenset(EventFamily)
_FILE: Final = "spool.json"
_MAX_BYTES: Final = 1 << 20
_UNSAFE_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME_LENGTH: Final = 60


@dataclass(frozen=True)
class SpoolManifest:
    application: Application
    producer: UUID | None
    families: Mapping[str, frozenset[EventFamily]] = field(default_factory=dict)
    """The families of each listener; one that is absent gets all."""
    failed_listeners: frozenset[str] = frozenset()
    """Listeners that couldn't be created; the name may be a mistake that somebody has to correct."""
    since: str = field(default="", compare=False)
    """When the spool was begun."""
    refused: int = 0
    """So many events the spool didn't take; Gaps tell them."""
    host: str = field(default="", compare=False)
    pid: int = field(default=0, compare=False)
    """Where its driver runs, or ran; for people."""

    @property
    def directory(self) -> str:
        """The name of the spool's directory, for people who look there too."""
        name = _UNSAFE_CHARACTERS.sub("_", self.application.id)[:_MAX_NAME_LENGTH].lstrip(".")
        return f"{name or 'application'}-{self.producer}"

    def write(self, files: Files, spool: Path) -> None:
        fields = {
            "application": {"id": self.application.id, "name": self.application.name},
            "producer": str(self.producer),
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "since": self.since,
            "refused": self.refused,
            "listeners": {name: sorted(family.value for family in fields) for name, fields in self.families.items()},
            "failed_listeners": sorted(self.failed_listeners),
        }
        replace_file(files, spool / _FILE, json.dumps(fields).encode(), durable=False)


def read_manifest(files: Files, spool: Path) -> SpoolManifest:
    """As far as it can be read: the records of a spool say themselves what they are."""
    try:
        return _parse_manifest(json.loads(read_file(files, spool / _FILE, _MAX_BYTES) or b""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return SpoolManifest(Application("", ""), None)


def _parse_manifest(fields: Any) -> SpoolManifest:
    return SpoolManifest(
        Application(str(fields["application"]["id"]), str(fields["application"]["name"])),
        UUID(fields["producer"]),
        {str(name): parse_families(words) for name, words in fields["listeners"].items()},
        frozenset(str(name) for name in fields.get("failed_listeners", ())),
        str(fields.get("since", "")),
        int(fields.get("refused", 0)),
        str(fields.get("host", "")),
        int(fields.get("pid", 0)),
    )


def replace_listener(files: Files, spool: Path, old: str, new: str | None) -> None:
    """From now on this spool is kept for `new` in place of `old`; for nobody in its place if that is None."""
    fields = json.loads(read_file(files, spool / _FILE, _MAX_BYTES) or b"{}")
    listeners, unmade = dict(fields.get("listeners", {})), set(fields.get("failed_listeners", ()))
    families = listeners.pop(old, None)
    if new is not None and families is not None:
        listeners[new] = sorted({*families, *listeners.get(new, ())})
    fields |= {"listeners": listeners, "failed_listeners": sorted(unmade - {old})}
    replace_file(files, spool / _FILE, json.dumps(fields).encode(), durable=True)


def parse_families(words: list[str]) -> frozenset[EventFamily]:
    return frozenset(EventFamily(word) for word in words if word in EventFamily.__members__) or ALL_FAMILIES
