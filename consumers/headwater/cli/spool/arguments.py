"""What `headwater spool` is given: where spools are, what drivers are configured with, and which spools are meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.cli.flags import Flags, pair
from headwater.config import from_file
from headwater.errors import HeadwaterError
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.spool_listing import SpoolSummary, list_spools
from headwater.listeners.settings import PREFIX, Settings, read_settings, spool_directory


def add_directory(parser: Flags) -> None:
    """Add the flag that says where spools are."""
    text = f"where spools are kept, else spark.headwater.spool.dir, else {spool_directory()}"
    parser.flag("spool-dir", Path, None, text, "DIR")


def add_spools(parser: Flags) -> None:
    """Add where spools are, how drivers are configured, and which spools are meant."""
    add_directory(parser)
    text = "a property as the drivers have it, such as spark.headwater.spool.max.bytes=4g"
    parser.flags("conf", pair, text, "KEY=VALUE")
    parser.flag("properties-file", Path, None, "their properties, such as spark-defaults.conf; --conf wins", "FILE")
    text = "one that is meant, by its name, path, application or producer; all, if none is given"
    parser.word("spools", str, text, "SPOOL", "*")


def configuration_of(given: Any) -> dict[str, str]:
    """Return the drivers' configuration, as far as it is known here."""
    from_properties = from_file(given.properties_file) if given.properties_file else {}
    own = {} if given.spool_dir is None else {f"{PREFIX}spool.dir": str(given.spool_dir)}
    return {**from_properties, **dict(given.conf), **own}


def settings_of(given: Any) -> Settings:
    """Return the drivers' settings; raises the first fault."""
    settings, faults = read_settings(configuration_of(given))
    for fault in faults:
        raise fault
    return settings


def local_places(given: Any) -> list[Path]:
    """Return where drivers of this host and user keep spools, for commands that know no more than that."""
    return list(spool_places(Settings() if given.spool_dir is None else Settings(spool_dir=given.spool_dir)))


def chosen(places: Sequence[Path], names: Sequence[str], *, are_all_here: bool = True) -> list[SpoolSummary]:
    """Return the spools that are meant; a HeadwaterError where a name is that of none, unless it may be elsewhere."""
    there = list_spools(places)
    if not names:
        return there
    found = {name: [left for left in there if _is_called(left, name)] for name in names}
    for name, spools in found.items():
        if not spools and are_all_here:
            raise HeadwaterError(f"there is no spool {name}: `headwater spool status` shows those there are")
    meant = {left.directory for spools in found.values() for left in spools}
    return [left for left in there if left.directory in meant]


def _is_called(left: SpoolSummary, name: str) -> bool:
    passport = left.manifest
    names = {left.directory.name, str(left.directory), passport.application.id, str(passport.producer)}
    return name in names or Path(name).absolute() == left.directory
