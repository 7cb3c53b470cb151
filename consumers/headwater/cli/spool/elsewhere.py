"""What was handed over to a directory that only Hadoop knows, as `headwater spool status` shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from headwater.cli.spool.units import Size
from headwater.listeners.bus.handed import Handed, look_there, unfinished_there
from headwater.listeners.bus.remote import RemoteFiles

_UNFINISHED = "not whole: its driver ended meanwhile, or is at it; what it couldn't copy is where it ran"


@dataclass(frozen=True)
class Elsewhere:
    """Whole spools, and names of directories that aren't."""

    uri: str
    handed: Sequence[Handed]
    unfinished: Sequence[str]

    def spools(self) -> Iterator[tuple[object, ...]]:
        """Rows as those of spools that are here."""
        for each in self.handed:
            behind = ", ".join(name for name, count in each.waiting.items() if count)
            fate = f"the next driver with {behind or 'any listener'} takes it up, or `headwater spool ship`"
            where, who = f"{self.uri}/{each.name}", each.application or None
            yield where, who, None, each.producer or None, "handed over", each.moment, Size(each.size), None, None, fate
        for name in self.unfinished:
            fate = "nothing: remove it when that machine is gone"
            yield f"{self.uri}/{name}", *[None] * 3, "unfinished", *[None] * 3, _UNFINISHED, fate

    def waiting(self) -> Iterator[tuple[object, ...]]:
        for each in self.handed:
            for name, count in each.waiting.items():
                yield f"{self.uri}/{each.name}", name, count, None, None, None


def look_elsewhere(uri: str, files: RemoteFiles, names: Collection[str]) -> Elsewhere:
    """Those that are meant, or all. A RemoteError where it can't be looked at."""
    whole = look_there(files, {})
    handed = [each for name, each in whole.items() if not names or name in names]
    unfinished = [name for name in unfinished_there(files, whole) if not names or name in names]
    return Elsewhere(uri.rstrip("/"), handed, unfinished)
