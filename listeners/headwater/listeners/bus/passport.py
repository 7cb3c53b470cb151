"""What is written beside a spool, so that whoever finds it knows whose it is and who has to get what of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from headwater.events.envelope import Family
from headwater.journal import Files
from headwater.journal.files import read_file, replace_file
from headwater.spi import Application

EVERYTHING: Final = frozenset(Family)
_FILE: Final = "spool.json"
_LARGEST: Final = 1 << 20
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 60


@dataclass(frozen=True)
class Passport:
    application: Application
    producer: UUID | None
    families: Mapping[str, frozenset[Family]] = field(default_factory=dict)
    """What each listener is told; one that isn't there is told everything."""
    unmade: frozenset[str] = frozenset()
    """Those that could not be made, as somebody else has to mend: perhaps nobody was ever meant by such a name."""
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
        return f"{_UNSAFE.sub('_', self.application.id)[:_LONGEST].lstrip('.') or 'application'}-{self.producer}"

    def write(self, files: Files, spool: Path) -> None:
        told = {
            "application": {"id": self.application.id, "name": self.application.name},
            "producer": str(self.producer),
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "since": self.since,
            "refused": self.refused,
            "listeners": {name: sorted(each.value for each in told) for name, told in self.families.items()},
            "unmade": sorted(self.unmade),
        }
        replace_file(files, spool / _FILE, json.dumps(told).encode(), durable=False)


def read_passport(files: Files, spool: Path) -> Passport:
    """As far as it can be read: the records of a spool say themselves what they are."""
    try:
        return _passport(json.loads(read_file(files, spool / _FILE, _LARGEST) or b""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Passport(Application("", ""), None)


def _passport(told: Any) -> Passport:
    return Passport(
        Application(str(told["application"]["id"]), str(told["application"]["name"])),
        UUID(told["producer"]),
        {str(name): _families(words) for name, words in told["listeners"].items()},
        frozenset(str(name) for name in told.get("unmade", ())),
        str(told.get("since", "")),
        int(told.get("refused", 0)),
        str(told.get("host", "")),
        int(told.get("pid", 0)),
    )


def move_listener(files: Files, spool: Path, old: str, new: str | None) -> None:
    """From now on this spool is kept for `new` in place of `old`; for nobody in its place if that is None."""
    told = json.loads(read_file(files, spool / _FILE, _LARGEST) or b"{}")
    listeners, unmade = dict(told.get("listeners", {})), set(told.get("unmade", ()))
    families = listeners.pop(old, None)
    if new is not None and families is not None:
        listeners[new] = sorted({*families, *listeners.get(new, ())})
    told |= {"listeners": listeners, "unmade": sorted(unmade - {old})}
    replace_file(files, spool / _FILE, json.dumps(told).encode(), durable=True)


def _families(words: list[str]) -> frozenset[Family]:
    return frozenset(Family(word) for word in words if word in Family.__members__) or EVERYTHING
