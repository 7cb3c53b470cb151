"""`headwater spool ship`: what the next driver would deliver, without one."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.cli.spool.arguments import add_spools, chosen, configuration_of, settings_of
from headwater.config.units import seconds_of
from headwater.errors import ConfigurationError, TransientError
from headwater.listeners.bus import Bus, BusOptions, ListenerReport
from headwater.listeners.bus.handover import SUFFIX
from headwater.listeners.bus.options import Connect
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.spool_listing import SpoolStatus, list_spools
from headwater.listeners.hadoop import hadoop_with_own_jvm
from headwater.listeners.settings import PREFIX, Settings
from headwater.spi import Application
from headwater.terminal import printable

_SLICE = 0.2
_NOTE_SECONDS = 5.0
_STOP_SECONDS = 5.0
_SHOWN = 3
_ITSELF = Application("headwater-spool-ship", "headwater spool ship")


def _from(parser: Flags) -> None:
    text = "what spark.headwater.spool.handover names, or one file there: only what is there is meant"
    parser.flag("from", str, None, text, "PATH")


def _timeout(parser: Flags) -> None:
    parser.flag("timeout", seconds_of, None, "how long at most, such as 10min; else as long as it moves", "DURATION")


@command(
    """Deliver what dead drivers left to the listeners that --conf or --properties-file names, as the next driver would.

Ctrl-C, and whatever else ends it, leaves everything as far as it is delivered; the rest stays where it is. Exit code 75
if something still waits.""",
    "headwater spool ship --properties-file spark-defaults.conf",
    "headwater spool ship --conf spark.headwater.listeners=log --timeout 10min",
    "headwater spool ship --properties-file spark-defaults.conf --from s3a://lake/spools",
    flags=[add_spools, _from, _timeout],
)
def ship(given: Namespace, output: CommandOutput) -> int:
    place = getattr(given, "from")
    if place is not None:
        directory, _, name = place.rstrip("/").rpartition("/")
        given.spools += [name] if name.endswith(SUFFIX) else []
        given.conf = [*given.conf, (f"{PREFIX}spool.handover", (directory or ".") if name.endswith(SUFFIX) else place)]
    with hadoop_with_own_jvm(configuration_of(given)) as connect:
        return _ship(given, output, connect)


def _ship(given: Namespace, output: CommandOutput, connect: Connect) -> int:
    settings = settings_of(given)
    is_ours = _name_filter(settings, given.spools, are_files=getattr(given, "from") is not None)
    options = BusOptions(has_shipper=False, dead_spools=None, is_ours=is_ours, connect=connect)
    bus = Bus.open(configuration_of(given), _ITSELF, options=options)
    if not bus.report().listeners:
        raise ConfigurationError(f"say to whom: --conf {PREFIX}listeners=kafka, and what stands below {PREFIX}kafka.")
    progress = _Progress(bus, output, given.timeout, options.stall_seconds)
    try:
        while bus.ship(_SLICE) is None and not progress.is_over():
            pass
    finally:
        bus.stop(_STOP_SECONDS)
    for fault in bus.faults:
        raise fault
    left = [spool.directory for spool in list_spools([*spool_places(settings)]) if spool.status is not SpoolStatus.LIVE]
    left += map(Path, bus.handover_files)
    names = sorted({each.name for each in left if options.is_ours(each)})
    output.record("shipped", {"spools": bus.report().shipped, "left": len(names)})
    if names or bus.handover_error:
        raise TransientError(_reasons(names, progress.errors, bus.handover_error))
    return Exit.DONE


def _name_filter(settings: Settings, names: Sequence[str], *, are_files: bool) -> Callable[[Path], bool]:
    """By its name; a file that was handed over is known by its name alone, and isn't known yet."""
    if are_files:
        return lambda spool: spool.suffix == SUFFIX and (not names or spool.name in names)
    if not names:
        return lambda _: True
    there = chosen([*spool_places(settings)], names, are_all_here=settings.spool_handover is None)
    meant = {*names, *(left.directory.name for left in there)}
    return lambda spool: spool.name in meant


class _Progress:
    """Says how the shipping goes on, and knows when it doesn't any more."""

    def __init__(self, bus: Bus, output: CommandOutput, timeout: float | None, patience: float) -> None:
        self.errors: dict[str, str] = {}
        """The last error of each listener, by its name."""
        self._bus = bus
        self._output = output
        self._patience = patience
        self._moved = self._noted = began = time.monotonic()
        self._deadline = float("inf") if timeout is None else began + timeout
        self._seen: object = None

    def is_over(self) -> bool:
        """Return whether there is no time left, or nothing has moved for long."""
        shipping = self._bus.shipping
        reports = self._bus.report().listeners + (shipping.listeners if shipping else ())
        self._note_errors(reports)
        seen = self._bus.report().shipped, [report.lag for report in reports], shipping and shipping.spool
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._moved = seen, now
        if shipping and now - self._noted > _NOTE_SECONDS:
            self._noted = now
            to_go = ", ".join(f"{report.lag} records for {report.name}" for report in shipping.listeners)
            self._output.note(f"{shipping.spool.name}: {to_go or 'nothing'} to go")
        return now > self._deadline or now - self._moved > self._patience

    def _note_errors(self, reports: tuple[ListenerReport, ...]) -> None:
        for report in reports:
            if report.last_error and self.errors.get(report.name) != report.last_error:
                self.errors[report.name] = report.last_error
                self._output.note(printable(f"{report.name}: {report.last_error}"))


def _reasons(left: Sequence[str], errors: Mapping[str, str], taking: str) -> str:
    if not left:
        return f"what was handed over can't be taken up now: {taking}"
    names = ", ".join(left[:_SHOWN]) + (", …" if len(left) > _SHOWN else "")
    reasons = "; ".join([*(f"{name} says {words}" for name, words in errors.items()), *([taking] if taking else [])])
    why = reasons or "`headwater spool status` shows for whom"
    return f"{len(left)} spools wait for other listeners, or for those that take nothing now ({names}): {why}"
