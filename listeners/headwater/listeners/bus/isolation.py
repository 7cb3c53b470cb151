"""Where a durable listener works: on a thread of the driver, or in the shipper, a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headwater.errors import ConfigurationError
from headwater.listeners.settings import PREFIX
from headwater.spi.factories import name_and_reference

KEY: Final = "isolation"
"""Below a listener's prefix. The listener's own configuration doesn't have it."""
_NATIVE_CLIENTS: Final = frozenset({"kafka", "jdbc"})
"""Listeners of ours whose clients are native code: what crashes there would take the driver along."""


class Isolation(str, Enum):
    """Where a listener works."""

    THREAD = "thread"
    """In the driver, on a thread of its own."""
    PROCESS = "process"
    """In the shipper. What it dies of harms no driver; it has to be durable."""


def configured_isolation(item: str, configuration: Mapping[str, str]) -> Isolation:
    """What the configuration says for a listener, or the default of its kind. A ConfigurationError for another word."""
    name, reference = name_and_reference(item)
    key = f"{PREFIX}{name}.{KEY}"
    word = configuration.get(key, "").strip().lower()
    if not word:
        return Isolation.PROCESS if reference in _NATIVE_CLIENTS else Isolation.THREAD
    try:
        return Isolation(word)
    except ValueError:
        raise ConfigurationError(f"{key}: {word!r} is neither process nor thread") from None


def own_configuration(name: str, configuration: Mapping[str, str]) -> dict[str, str]:
    """What stands below a listener's prefix, without it."""
    prefix = f"{PREFIX}{name}."
    own = {key[len(prefix) :]: value for key, value in configuration.items() if key.startswith(prefix)}
    own.pop(KEY, None)
    return own
