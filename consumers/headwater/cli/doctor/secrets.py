"""Nothing that the doctor prints holds a secret: not those of the configuration, and none that looks like one.

The places that this Python is installed in are none, whatever their folders are called: what the doctor advises names
them, and `~/token-service/.venv/bin/python -m pip install …` has to be readable.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from headwater.events.redaction import Redactor
from headwater.listeners.redactors import make_redactor
from headwater.plugins import source_directory
from headwater.spi import CheckResult

_HIDDEN: Final = "***"
_SWITCHES: Final = frozenset({"", "true", "false"})
_QUOTED: Final = re.compile(r"=\s*(?:\"([^\"]*)\"|'([^']*)')")
_USER_INFO: Final = re.compile(r"//([^/@\s]*)@")
_SHORT: Final = 4
_FIRST_STAND_IN: Final = 0xE000
"""The first character that means nothing to anybody; each of the known places has one of its own."""


class SecretMasker:
    """Hides what a configuration calls a secret, and every part of it that gives it away."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._redactor, _ = make_redactor(conf)
        found = {part for key, value in conf.items() for part in _parts(self._redactor, key, value)}
        words = sorted(found - _SWITCHES, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_found_by, words))) if words else None
        self._places = {chr(number): place for number, place in enumerate(_known_places(), _FIRST_STAND_IN)}

    def mask(self, finding: CheckResult) -> CheckResult:
        return replace(
            finding, step=self.text(finding.step), message=self.text(finding.message), advice=self.text(finding.advice)
        )

    def text(self, text: str) -> str:
        hidden = self._pattern.sub(_HIDDEN, text) if self._pattern else text
        for stand_in, place in self._places.items():
            hidden = re.sub(rf"(?<![\w.-]){re.escape(place)}(?![\w.:=-])", stand_in, hidden.replace(stand_in, ""))
        hidden = self._redactor.text(hidden)
        for stand_in, place in self._places.items():
            hidden = hidden.replace(stand_in, place)
        return hidden


def _known_places() -> list[str]:
    """Return the directories of this installation, the longest first."""
    found = {sys.prefix, sys.base_prefix, source_directory(), os.environ.get("SPARK_HOME")}
    return sorted((each for each in found if each and len(Path(each).parts) > 1), key=len, reverse=True)


def _parts(redactor: Redactor, key: str, value: str) -> Iterator[str]:
    """Yield the whole value, what is quoted in it (as in a JAAS configuration), and passwords in addresses."""
    if redactor.is_secret(key):
        yield value
        yield value.strip()
        for double, single in _QUOTED.findall(value):
            yield double or single
        yield from value.split(":", 1)[1:]  # user:password
    for user_info in _USER_INFO.findall(value):
        yield user_info
        yield from user_info.split(":", 1)[1:]


def _found_by(word: str) -> str:
    """Return the pattern that finds it. A short secret counts only as a whole word."""
    escaped = re.escape(word)
    return rf"(?<!\w){escaped}(?!\w)" if len(word) < _SHORT else escaped
