"""What an application calls a secret, and what counts as one where that can't be understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.errors import ConfigurationError
from headwater.events.redaction import Redactor

_REGEX: Final = "spark.redaction.regex"


def redactor_of(configuration: Mapping[str, str]) -> tuple[Redactor, tuple[ConfigurationError, ...]]:
    """The redactor for what the application calls a secret. Where that can't be read, every option's value is one."""
    try:
        return Redactor(configuration.get(_REGEX)), ()
    except ConfigurationError as e:
        fault = ConfigurationError(f"{e}; until then the value of every option counts as a secret")
        return _Hiding(), (fault,)


class _Hiding(Redactor):
    def is_secret(self, key: str) -> bool:
        return True
