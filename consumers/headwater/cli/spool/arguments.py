"""What `headwater spool` is given: where spools are, what drivers are configured with, and which spools are meant."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.cli.flags import Flags, pair
from headwater.config import from_file
from headwater.config.units import seconds_of
from headwater.errors import HeadwaterError
from headwater.listeners.bus.listing import Left, left_in
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.settings import PREFIX, Settings, read_settings, spool_directory

ACTIONS = {
    "status": "show the spools there are, and which listener hasn't got what",
    "verify": "read spools from end to end and say what is damaged; nothing is changed",
    "ship": "deliver what dead drivers left, as the next driver would, to the listeners that --conf names",
    "rename": "give what one listener hasn't got to one of another name, which the next driver or `ship` delivers",
    "drop": "let what a listener hasn't got go",
}
_WHICH = "one that is meant, by its name, path, application or producer; all, if none is given"


def parse(action: str, arguments: Sequence[str]) -> Namespace:
    summary = ACTIONS[action]
    parser = Flags(f"headwater spool {action}", f"{summary[0].upper()}{summary[1:]}.")
    default = f"that of --conf, else {spool_directory()}"
    text = f"where spools are kept, spark.headwater.spool.dir (default: {default})"
    parser.flag("spool-dir", Path, None, text, "DIR")
    if action in {"status", "verify", "ship"}:
        example = (
            "spark.headwater.listeners=kafka say" if action == "ship" else "spark.headwater.spool.max.bytes=4g say"
        )
        parser.flags("conf", pair, f"a property as the drivers have it, {example}", "KEY=VALUE")
        parser.flag("properties-file", Path, None, "their properties, such as spark-defaults.conf; --conf wins", "FILE")
        parser.add_argument("spools", nargs="*", metavar="SPOOL", help=_WHICH)
    if action == "ship":
        parser.flag("timeout", seconds_of, None, "how long at most, 10 min say; else as long as it gets on", "DURATION")
    if action in {"rename", "drop"}:
        parser.add_argument("name", help="what the listener was called")
    if action == "rename":
        parser.add_argument("new", help="what the one is called that is to get it")
    return parser.parse_args(arguments)


def configuration_of(given: Any) -> dict[str, str]:
    """The drivers' configuration, as far as it was told."""
    from_properties = from_file(given.properties_file) if given.properties_file else {}
    told = {} if given.spool_dir is None else {f"{PREFIX}spool.dir": str(given.spool_dir)}
    return {**from_properties, **dict(given.conf), **told}


def settings_of(given: Any) -> Settings:
    """Raises the first fault."""
    settings, faults = read_settings(configuration_of(given))
    for fault in faults:
        raise fault
    return settings


def local_places(given: Any) -> list[Path]:
    """Where drivers of this host and user keep spools, for actions that know no more than that."""
    return list(spool_places(Settings() if given.spool_dir is None else Settings(spool_dir=given.spool_dir)))


def places_of(settings: Settings) -> list[Path]:
    """The same, and the shared directory that takes what isn't delivered, if there is one."""
    shared = [] if settings.handover_path is None else [settings.handover_path]
    return [*spool_places(settings), *shared]


def chosen(places: Sequence[Path], names: Sequence[str], *, are_all_here: bool = True) -> list[Left]:
    """The spools that are meant; a HeadwaterError where a name is that of none, unless it may be elsewhere."""
    there = left_in(places)
    if not names:
        return there
    found = {name: [left for left in there if _is_called(left, name)] for name in names}
    for name, spools in found.items():
        if not spools and are_all_here:
            raise HeadwaterError(f"there is no spool {name}: `headwater spool status` shows those there are")
    meant = {left.directory for spools in found.values() for left in spools}
    return [left for left in there if left.directory in meant]


def _is_called(left: Left, name: str) -> bool:
    passport = left.passport
    names = {left.directory.name, str(left.directory), passport.application.id, str(passport.producer)}
    return name in names or Path(name).absolute() == left.directory
