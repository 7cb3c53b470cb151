"""The table formats that capture knows, each in a module or package of its own: siblings with one anatomy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headwater.listeners.capture.commands import Command
    from headwater.listeners.capture.formats.protocol import TableFormat

_NAMES: Final = ("iceberg", "delta", "paimon", "files")
"""In the order they are asked; whatever is a file of no format is asked last."""


@cache
def all_formats() -> tuple[TableFormat, ...]:
    found = [import_module(f"{__name__}.{name}") for name in _NAMES if find_spec(f"{__name__}.{name}")]
    return tuple(module.FORMAT for module in found if hasattr(module, "FORMAT"))


def commands() -> dict[str, Mapping[str, Command]]:
    """What each format makes of its own commands."""
    found = {name: import_module(f"{__name__}.{name}") for name in _NAMES if find_spec(f"{__name__}.{name}")}
    return {name: getattr(module, "COMMANDS", {}) for name, module in found.items()}
