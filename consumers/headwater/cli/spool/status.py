"""`headwater spool status`: the spools there are, what waits in them for whom, and how much room there is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headwater.cli.exits import Exit
from headwater.cli.output import Output
from headwater.cli.spool.arguments import chosen, configuration_of, places_of, settings_of
from headwater.cli.spool.elsewhere import Elsewhere, look_elsewhere
from headwater.cli.spool.units import Size, age_of
from headwater.listeners.bus.listing import Left, Standing
from headwater.listeners.bus.options import DEAD_SPOOLS
from headwater.listeners.bus.remote import Patient
from headwater.listeners.hadoop import own_jvm
from headwater.listeners.settings import Settings

_SPOOLS = ("spool", "application", "name", "producer", "driver", "since", "size", "records", "trouble", "what becomes")
_WAITING = ("spool", "listener", "waiting", "oldest", "dropped", "note")


def status(given: Any, output: Output) -> int:
    settings = settings_of(given)
    places = places_of(settings)
    spools = chosen(places, given.spools, are_all_here=settings.handover_uri is None)
    elsewhere = _elsewhere(given, settings.handover_uri)
    output.table("Spools", _SPOOLS, [*map(_row, spools), *elsewhere.spools()])
    output.table("What hasn't been dealt with, in records at most", _WAITING, [*_waiting(spools), *elsewhere.waiting()])
    output.table(
        "Room",
        ("directory", "live", "left", "limit of each", "limit of all left", "free"),
        _room(settings, places, spools),
    )
    return Exit.DONE


def _elsewhere(given: Any, uri: str | None) -> Elsewhere:
    if uri is None:
        return Elsewhere("", (), ())
    with own_jvm(configuration_of(given)) as connect:
        return look_elsewhere(uri, Patient(uri, connect), given.spools)


def _row(left: Left) -> tuple[object, ...]:
    application = left.passport.application
    return (
        left.directory,
        application.id or None,
        application.name or None,
        left.passport.producer,
        left.standing.value,
        None if left.since is None else left.since.isoformat(timespec="seconds"),
        Size(left.size),
        left.records,
        "; ".join(_troubles(left)) or None,
        left.fate,
    )


def _troubles(left: Left) -> Iterator[str]:
    if left.passport.refused:
        yield f"{left.passport.refused} events were refused by the disk"
    if any(each.dropped for each in left.waiting.values()):
        yield "its limit was reached"
    yield from left.faults


def _waiting(spools: Sequence[Left]) -> Iterator[tuple[object, ...]]:
    for left in spools:
        for name, each in left.waiting.items():
            note = "could not be made" if each.could_not_be_made else None
            yield left.directory, name, each.records, age_of(each.oldest), each.dropped, note


def _room(settings: Settings, places: Sequence[Path], spools: Sequence[Left]) -> Iterator[tuple[object, ...]]:
    limit = settings.spool_max_bytes
    for place in dict.fromkeys(places):
        inside = [left for left in spools if left.directory.parent == place]
        live = sum(left.size for left in inside if left.standing is Standing.LIVE)
        dead = sum(left.size for left in inside if left.standing is not Standing.LIVE)
        free = Size(shutil.disk_usage(place).free) if place.is_dir() else None
        yield place, Size(live), Size(dead), Size(limit), Size(DEAD_SPOOLS * limit), free
