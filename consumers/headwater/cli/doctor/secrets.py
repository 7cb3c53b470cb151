"""Nothing that the doctor prints holds a secret: not those of the configuration, and none that looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from headwater.events.redaction import Redactor
from headwater.listeners.redactors import make_redactor
from headwater.spi import CheckResult

_HIDDEN: Final = "***"
_SWITCHES: Final = frozenset({"", "true", "false"})
_QUOTED: Final = re.compile(r"=\s*(?:\"([^\"]*)\"|'([^']*)')")
_USER_INFO: Final = re.compile(r"//([^/@\s]*)@")
_SHORT: Final = 4


class SecretMasker:
    """Hides what a configuration calls a secret, and every part of it that gives it away."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._redactor, _ = make_redactor(conf)
        found = {part for key, value in conf.items() for part in _parts(self._redactor, key, value)}
        words = sorted(found - _SWITCHES, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_found_by, words))) if words else None

    def mask(self, finding: CheckResult) -> CheckResult:
        return replace(
            finding, step=self.text(finding.step), message=self.text(finding.message), advice=self.text(finding.advice)
        )

    def text(self, text: str) -> str:
        hidden = self._pattern.sub(_HIDDEN, text) if self._pattern else text
        return self._redactor.text(hidden)


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
