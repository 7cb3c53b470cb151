"""`headwater spool ship`: what the next driver would deliver, without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.cli.exits import Exit
from headwater.cli.output import Output
from headwater.cli.spool.arguments import chosen, configuration_of, places_of, settings_of
from headwater.errors import ConfigurationError, TransientError
from headwater.listeners.bus import Bus, BusOptions, ListenerReport
from headwater.listeners.bus.listing import Standing, left_in
from headwater.listeners.bus.remote import Connect
from headwater.listeners.hadoop import own_jvm
from headwater.listeners.settings import PREFIX, Settings
from headwater.spi import Application

_SLICE = 0.2
_NOTE_SECONDS = 5.0
_STOP_SECONDS = 5.0
_SHOWN = 3
_ITSELF = Application("headwater-spool-ship", "headwater spool ship")


def ship(given: Any, output: Output) -> int:
    """Ctrl-C, and whatever else ends it, leaves everything as far as it is delivered; the rest stays where it is."""
    with own_jvm(configuration_of(given)) as connect:
        return _ship(given, output, connect)


def _ship(given: Any, output: Output, connect: Connect) -> int:
    settings = settings_of(given)
    options = BusOptions(dead_spools=None, is_meant=_meant(settings, given.spools), connect=connect)
    bus = Bus.open(configuration_of(given), _ITSELF, options=options)
    if not bus.report().listeners:
        raise ConfigurationError(f"say to whom: --conf {PREFIX}listeners=kafka, and what stands below {PREFIX}kafka.")
    watch = _Watch(bus, output, given.timeout, options.patience)
    try:
        while bus.ship(_SLICE) is None and not watch.is_over():
            pass
    finally:
        bus.stop(_STOP_SECONDS)
    for fault in bus.faults:
        raise fault
    left = [each.directory for each in left_in(places_of(settings)) if each.standing is not Standing.LIVE]
    left += [Path(each.name) for each in bus.handed]
    names = sorted({each.name for each in left if options.is_meant(each)})
    output.record("Shipped", {"spools": bus.report().shipped, "left": len(names)})
    if names or bus.taking_trouble:
        raise TransientError(_words(names, watch.troubles, bus.taking_trouble))
    return Exit.DONE


def _meant(settings: Settings, names: Sequence[str]) -> Callable[[Path], bool]:
    """By what it is called; what is elsewhere is known by its name alone, and isn't known yet."""
    if not names:
        return lambda _: True
    is_elsewhere = settings.handover_uri is not None
    meant = {left.directory.name for left in chosen(places_of(settings), names, are_all_here=not is_elsewhere)}
    meant |= {*names} if is_elsewhere else set()
    return lambda spool: spool.name in meant


class _Watch:
    """Tells how it gets on, and knows when it doesn't any more."""

    def __init__(self, bus: Bus, output: Output, timeout: float | None, patience: float) -> None:
        self.troubles: dict[str, str] = {}
        """What listeners said last, by their names."""
        self._bus = bus
        self._output = output
        self._patience = patience
        self._moved = self._noted = began = time.monotonic()
        self._deadline = float("inf") if timeout is None else began + timeout
        self._seen: object = None

    def is_over(self) -> bool:
        """Whether there is no time left, or nothing has moved for long."""
        shipping = self._bus.shipping
        reports = self._bus.report().listeners + (shipping.listeners if shipping else ())
        self._note_troubles(reports)
        seen = self._bus.report().shipped, [report.lag for report in reports], shipping and shipping.spool
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._moved = seen, now
        if shipping and now - self._noted > _NOTE_SECONDS:
            self._noted = now
            to_go = ", ".join(f"{report.lag} records for {report.name}" for report in shipping.listeners)
            self._output.note(f"{shipping.spool.name}: {to_go or 'nothing'} to go")
        return now > self._deadline or now - self._moved > self._patience

    def _note_troubles(self, reports: tuple[ListenerReport, ...]) -> None:
        for report in reports:
            if report.last_error and self.troubles.get(report.name) != report.last_error:
                self.troubles[report.name] = report.last_error
                self._output.note(f"{report.name}: {report.last_error}")


def _words(left: Sequence[str], troubles: Mapping[str, str], taking: str) -> str:
    if not left:
        return f"what was handed over can't be taken up now: {taking}"
    names = ", ".join(left[:_SHOWN]) + (", …" if len(left) > _SHOWN else "")
    told = "; ".join([*(f"{name} says {words}" for name, words in troubles.items()), *([taking] if taking else [])])
    why = told or "`headwater spool status` shows for whom"
    return f"{len(left)} spools wait for other listeners, or for those that take nothing now ({names}): {why}"
