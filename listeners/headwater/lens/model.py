"""What a lens says: the versions it fixes, what was refused under it, and what its user lets be."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, NoReturn

from headwater.errors import ConfigurationError


class LensError(ConfigurationError):
    """A lens that can't be: it contradicts itself, or this session can't have one."""


@dataclass(frozen=True, kw_only=True)
class Lens:
    """What statements see instead of the names that they use.

    Names are of tables, in full or as SQL resolves them in the session, or paths. A redirect may also name a namespace,
    with all tables that are in it or will be.
    """

    name: str = "lens"
    """Appears in errors, and with the run that is under it."""
    pins: Mapping[str, int | str] = field(default_factory=dict)
    """By table, the version at which it is read: what VERSION AS OF takes, or an instant of Hudi."""
    generations: Mapping[str, str] = field(default_factory=dict)
    """By pinned table, the generation whose version is meant, as Iceberg and Delta tell it: another one is refused."""
    redirects: Mapping[str, str] = field(default_factory=dict)
    """By table or namespace, what is read and written in its place. A pinned table is read as pinned."""
    allowed: Collection[str] = ()
    """Tables and paths that are read, and written, as they are now; `*` stands for anything."""
    writes_elsewhere: bool | None = None
    """Whether tables that aren't redirected may be written; unless you say, only by a lens that redirects nothing."""
    reads_elsewhere: bool = False
    """Whether tables that the lens doesn't name may be read as they are now."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise LensError("give the lens a name, as in name='check of last night'")
        if isinstance(self.allowed, str):
            raise LensError(f"allowed is a list of names, as in allowed=[{self.allowed!r}]")
        for table, version in self.pins.items():
            if isinstance(version, bool) or not str(version).strip():
                raise LensError(f"{table} can't be pinned to {version!r}: give a snapshot or a version")
        circles = [source for source, target in self.redirects.items() if source == target]
        if circles:
            raise LensError(f"{circles[0]} is redirected to itself: leave it out, or name another table")

    @property
    def allows_writes_elsewhere(self) -> bool:
        """Whether a table that the lens doesn't redirect may be written."""
        return not self.redirects if self.writes_elsewhere is None else self.writes_elsewhere


class TargetEffect(Enum):
    """What a statement did with a table that a lens redirects to."""

    READS = "READS"
    ADDS = "ADDS"
    REPLACES_ALL = "REPLACES_ALL"
    CHANGES = "CHANGES"
    """It replaced, changed or removed some rows, or what it did to them isn't known."""
    KEEPS = "KEEPS"


class TargetUse(NamedTuple):
    """That a statement which was run used a table that a lens redirects to."""

    table: str
    """Its full name."""
    effect: TargetEffect


_MOST: Final = 100


class Refusals:
    """The refusals of an application, from whichever thread. A script may catch the error and go on without it."""

    def __init__(self, lens: str, allowed: Collection[str]) -> None:
        self._lens = lens
        self._allowed = tuple(name.replace("[", "[[]").replace("?", "[?]") for name in allowed)
        self._messages: list[str] = []
        self._lock = threading.Lock()

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(self._messages)

    def refuse_unless_allowed(self, what: str, name: str) -> None:
        """Raise the error that says what isn't done, unless the lens allows it by this name."""
        if not any(fnmatchcase(name, pattern) for pattern in self._allowed):
            self._refuse(what, name)

    def _refuse(self, what: str, name: str) -> NoReturn:
        message = (
            f"the lens '{self._lens}' redirects writes, and {what}, which it can't redirect: do it outside of the "
            f"lens, or allow it by the name {name}"
        )
        with self._lock:
            if message not in self._messages and len(self._messages) < _MOST:
                self._messages.append(message)
        raise LensError(message)
