"""Every error of headwater: one root, and whether trying again can help is shown by the type.

Loops decide on a retry by `TransientError` / `TerminalError` alone, never by reading messages; a message says what is
wrong, where, and what to do about it.
"""

from __future__ import annotations

import sys
from typing import Final

_DISTRIBUTIONS: Final = {"confluent_kafka": "confluent-kafka", "pydantic_core": "pydantic"}
"""What brings a package that is called otherwise."""


class HeadwaterError(Exception):
    """The root of all errors that headwater raises on purpose."""


class TransientError(HeadwaterError):
    """Trying the same again later may succeed: a broker that restarts, a lock that is held."""


class TerminalError(HeadwaterError):
    """Trying the same again can't succeed: somebody must change something first."""


class ConfigurationError(TerminalError):
    """A key, value or name in a configuration is wrong."""


class PluginError(TerminalError):
    """A plug-in can't be found or isn't what its place asks for."""


def advise_import(error: ImportError) -> str:
    """Return what to do about a package that isn't found, or whose native code isn't."""
    package = (error.name or "").partition(".")[0]
    if package in {"", "headwater"}:
        return ""
    distribution = _DISTRIBUTIONS.get(package, package)
    return (
        f"install {distribution} into this Python ({sys.executable} -m pip install {distribution}): a zip (--py-files) "
        "can hold headwater itself, but no package with native code"
    )
