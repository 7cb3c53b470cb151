"""`headwater spool status`: the spools there are, what waits in them for whom, and how much room there is."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import limit
from headwater.cli.output import CommandOutput, Size, age_of
from headwater.cli.spool.arguments import add_spools, chosen, configuration_of, places_of, settings_of
from headwater.listeners.bus.options import DEAD_SPOOLS
from headwater.listeners.bus.remote_files import RemoteFiles, RemoteFilesWithTimeout
from headwater.listeners.bus.remote_spools import RemoteSpool, list_remote_spools, list_unfinished_spools
from headwater.listeners.bus.spool_listing import SpoolStatus, SpoolSummary
from headwater.listeners.hadoop import hadoop_with_own_jvm
from headwater.listeners.settings import Settings

_SPOOLS: Final = (
    *("spool", "application", "name", "producer", "driver"),
    *("since", "size", "records", "problem", "what becomes"),
)
_WAITING: Final = ("spool", "listener", "waiting", "oldest", "dropped", "note")
_ROOM: Final = ("directory", "live", "left", "limit of each", "limit of all left", "free")
_UNFINISHED: Final = "not whole: its driver ended meanwhile, or is at it; what it couldn't copy is where it ran"


@command(
    """List the spools there are, what waits in them for which listener, and how much room there is.

--limit holds for the spools; what waits is listed for those.""",
    "headwater spool status",
    "headwater spool status --properties-file spark-defaults.conf -o json",
    flags=[add_spools, limit(1000)],
)
def status(given: Namespace, output: CommandOutput) -> int:
    settings = settings_of(given)
    places = places_of(settings)
    spools = chosen(places, given.spools, are_all_here=settings.handover_uri is None)
    remote = _remote(given, settings.handover_uri)
    there, shown = [*map(_row, spools), *remote.spools()], spools[: given.limit]
    output.table("spools", _SPOOLS, there[: given.limit])
    if len(there) > given.limit:
        output.note(f"there are {len(there)}, of which these are {given.limit}: --limit shows more")
    waiting = [*_waiting(shown), *(remote.waiting() if len(shown) < given.limit else ())]
    output.table("waiting", _WAITING, waiting, "What waits, in records at most")
    output.table("room", _ROOM, _room(settings, places, spools))
    return Exit.DONE


def _remote(given: Namespace, uri: str | None) -> Remote:
    if uri is None:
        return Remote("", (), ())
    with hadoop_with_own_jvm(configuration_of(given)) as connect:
        return look_there(uri, RemoteFilesWithTimeout(uri, connect), given.spools)


def _row(left: SpoolSummary) -> tuple[object, ...]:
    application = left.manifest.application
    return (
        left.directory,
        application.id or None,
        application.name or None,
        left.manifest.producer,
        left.status,
        left.since,
        Size(left.size),
        left.records,
        "; ".join(_problems(left)) or None,
        left.fate,
    )


def _problems(left: SpoolSummary) -> Iterator[str]:
    if left.manifest.refused:
        yield f"{left.manifest.refused} events were refused by the disk"
    if any(each.dropped for each in left.waiting.values()):
        yield "its limit was reached"
    yield from left.faults


def _waiting(spools: Sequence[SpoolSummary]) -> Iterator[tuple[object, ...]]:
    for left in spools:
        for name, each in left.waiting.items():
            note = "could not be made" if each.has_failed else None
            yield left.directory, name, each.records, age_of(each.oldest), each.dropped, note


def _room(settings: Settings, places: Sequence[Path], spools: Sequence[SpoolSummary]) -> Iterator[tuple[object, ...]]:
    limit = settings.spool_max_bytes
    for place in dict.fromkeys(places):
        inside = [left for left in spools if left.directory.parent == place]
        live = sum(left.size for left in inside if left.status is SpoolStatus.LIVE)
        dead = sum(left.size for left in inside if left.status is not SpoolStatus.LIVE)
        free = Size(shutil.disk_usage(place).free) if place.is_dir() else None
        yield place, Size(live), Size(dead), Size(limit), Size(DEAD_SPOOLS * limit), free


@dataclass(frozen=True)
class Remote:
    """What was handed over to a directory that only Hadoop knows: whole spools, and names of unfinished ones."""

    uri: str
    remote_spools: Sequence[RemoteSpool]
    unfinished: Sequence[str]

    def spools(self) -> Iterator[tuple[object, ...]]:
        """Rows as those of spools that are here."""
        for each in self.remote_spools:
            behind = ", ".join(name for name, count in each.waiting.items() if count)
            fate = f"the next driver with {behind or 'any listener'} takes it up, or `headwater spool ship`"
            where, who = f"{self.uri}/{each.name}", each.application or None
            yield where, who, None, each.producer or None, "handed over", each.moment, Size(each.size), None, None, fate
        for name in self.unfinished:
            fate = "nothing: remove it when that machine is gone"
            yield f"{self.uri}/{name}", *[None] * 3, "unfinished", *[None] * 3, _UNFINISHED, fate

    def waiting(self) -> Iterator[tuple[object, ...]]:
        for each in self.remote_spools:
            for name, count in each.waiting.items():
                yield f"{self.uri}/{each.name}", name, count, None, None, None


def look_there(uri: str, files: RemoteFiles, names: Collection[str]) -> Remote:
    """Return the spools that are meant, or all. A RemoteError where the directory can't be looked at."""
    whole = list_remote_spools(files, {})
    handed = [each for name, each in whole.items() if not names or name in names]
    unfinished = [name for name in list_unfinished_spools(files, whole) if not names or name in names]
    return Remote(uri.rstrip("/"), handed, unfinished)
