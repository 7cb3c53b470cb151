"""The table formats that capture knows, each in a module or package of its own: siblings with one anatomy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headwater.listeners.capture.commands import CommandRule
    from headwater.listeners.capture.formats.protocol import TableFormat

_NAMES: Final = ("iceberg", "delta", "paimon", "hudi", "kafka", "jdbc", "files")
"""In the order they are asked; whatever is a file of no format is asked last."""


@cache
def all_formats() -> tuple[TableFormat, ...]:
    return tuple(module.FORMAT for module in _modules().values())


def commands() -> dict[str, Mapping[str, CommandRule]]:
    """What each format makes of its own commands."""
    return {name: getattr(module, "COMMANDS", {}) for name, module in _modules().items()}


@cache
def _modules() -> dict[str, Any]:
    """Imported when first asked: they name types of the modules that ask."""
    return {name: import_module(f"{__name__}.{name}") for name in _NAMES}
