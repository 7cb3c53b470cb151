"""The errors for a change that a table doesn't admit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from headwater.errors import TerminalError
from headwater.events.changes import TableChange
from headwater.events.tables import Transform
from headwater.events.types.short_text import quoted

_SHOWN: Final = 20


class ChangeError(TerminalError):
    """The change at `index` can't have happened to this table: the table is another one than it was taken for."""

    def __init__(self, index: int, change: TableChange, what: str) -> None:
        super().__init__(f"change {index} ({change.change}): {what}")
        self.index = index
        self.change = change


class ImpossibleChangeError(TerminalError):
    """What is wrong with a change, before it is known which one of a list it is."""


class MissingColumnError(ImpossibleChangeError):
    """A path leads nowhere."""


def missing(path: Iterable[str], there: Iterable[str]) -> MissingColumnError:
    return MissingColumnError(f"there is no column {spelled(path)}; there is {listed(there)}")


def spelled(path: Iterable[str]) -> str:
    """A path as SQL writes it."""
    return ".".join([quoted(name) for name in path])


def shown(transform: Transform) -> str:
    """A partition field as SQL writes it: bucket(16, id), or by its name alone."""
    if not transform.columns and transform.field_name:
        return quoted(transform.field_name)
    return f"{transform.name}({', '.join([*transform.arguments, *map(spelled, transform.columns)])})"


def listed(names: Iterable[str]) -> str:
    return enumerated([quoted(name) for name in names])


def enumerated(every: Sequence[str]) -> str:
    rest = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + rest if every else "nothing"
