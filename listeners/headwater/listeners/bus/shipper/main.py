"""The shipper itself: delivers the spool of its driver while that lives, and what is left of it afterwards."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from headwater.errors import TransientError
from headwater.events.health import Gap
from headwater.journal import Cursor, JournalReader
from headwater.journal.lock import is_locked
from headwater.journal.reader import Tail
from headwater.journal.writer import LOCK_NAME
from headwater.listeners.bus.bus import Bus
from headwater.listeners.bus.delivery import Delivery
from headwater.listeners.bus.handover import open_handover
from headwater.listeners.bus.listener_creation import configured_listeners
from headwater.listeners.bus.report import ProgressSignal
from headwater.listeners.bus.shipper.messages import KIND, Channel, ShipperState
from headwater.listeners.bus.shipper.start import Orders
from headwater.listeners.settings import PREFIX, read_settings
from headwater.listeners.threads import DaemonThread

_STATE_SECONDS: Final = 0.1
"""Between two reports of a busy shipper, unless the driver waits."""
_IDLE_SECONDS: Final = 0.5
_PARENT_SECONDS: Final = 1.0
_ABANDONED_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 5.0
_STOP_SECONDS: Final = 2.0
_DRIVERS_OWN: Final = tuple(f"{PREFIX}{section}" for section in ("metrics.", "spool.handover"))
"""What only a driver does."""


def main(fields: Mapping[str, Any], descriptor: int) -> None:
    """Run until the driver has ended, and for `linger` seconds more if something of its spool is left."""
    orders = Orders.from_json(fields)
    channel = Channel(socket.socket(fileno=descriptor))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    root = logging.getLogger()
    root.setLevel(fields["log_level"])
    forwarding = _ForwardingHandler(channel)
    root.addHandler(forwarding)
    _end_with(fields["driver"], channel)
    DriverSpoolDelivery(orders, channel).run()
    root.removeHandler(forwarding)
    root.addHandler(logging.StreamHandler())  # into the file beside the spool
    ship_rest(orders)
    # Whatever counts is on the disk. To take the interpreter down would wait for native clients, perhaps for ever, with
    # locks that keep others from what is left.
    logging.shutdown()
    os._exit(0)


class DriverSpoolDelivery:
    """Delivers what a living driver appends, and what dead drivers left before."""

    def __init__(self, orders: Orders, channel: Channel) -> None:
        self._channel = channel
        self._spool = ForeignSpool(orders.spool)
        self._signal = _StateSignal()
        self._gaps: dict[int, Gap] = {}
        """Those that the driver hasn't emitted yet."""
        self._gap_numbers = count(1)
        self._is_awaited = False
        self._is_stopping = False
        settings, _ = read_settings(orders.configuration)
        self._settings = settings
        specs = [spec for spec in configured_listeners(settings)[0] if spec.name in orders.listeners]
        self._delivery = Delivery(
            specs,
            orders.configuration,
            orders.application,
            settings,
            orders.options,
            clock=_DriverClock(channel),
            source=self._spool,
            handover=open_handover(settings, None) if settings.handover_path else None,
            has_queues=False,
            progress=self._signal,
            on_gap=self._send_gap,
            on_known=lambda _: self._signal.notify(),
        )
        if any(worker.spool_dispatcher is None for worker in self._delivery.workers):
            raise TransientError(f"{orders.spool} can't be read now")  # the driver starts another process

    def run(self) -> None:
        """Until the driver is gone."""
        self._delivery.start()
        states = DaemonThread("headwater-shipper-state", self._send_states)
        states.start()
        for message in self._channel.receive():
            self._obey(message)
        if not self._is_stopping:
            self._stop(time.monotonic() + _ABANDONED_SECONDS)
        self._delivery.dead_spools.give_back(time.monotonic() + self._settings.spool_handover_timeout)

    def _obey(self, message: Mapping[str, Any]) -> None:
        kind = message[KIND]
        if kind == "gap":
            self._gaps.pop(message["number"], None)
        elif kind == "flush":
            self._spool.next_offset = message["end"]
            self._is_awaited = True
            self._signal.notify()
        elif kind == "stop":
            self._spool.next_offset = message["end"]
            self._stop(time.monotonic() + message["seconds"])
            self._channel.send_state(self._state())
            self._channel.send("released")

    def _stop(self, deadline: float) -> None:
        self._is_stopping = self._is_awaited = True
        self._delivery.begin_stop(deadline)
        self._delivery.stop(deadline)

    def _send_gap(self, gap: Gap) -> None:
        number = next(self._gap_numbers)
        self._gaps[number] = gap
        self._channel.send("gap", number=number, gap=gap.model_dump(mode="json", exclude_defaults=True))

    def _send_states(self) -> None:
        last: object = None
        for _ in self._signal.changes():
            state = self._state()
            seen = (state.acknowledged, state.faults, state.shipped, state.has_looked, *map(_essence, state.listeners))
            if seen != last:
                last = seen
                if not self._channel.send_state(state):
                    return
                if not self._is_awaited:
                    time.sleep(_STATE_SECONDS)

    def _state(self) -> ShipperState:
        delivery = self._delivery
        acknowledged = {
            worker.name: worker.spool_dispatcher.acknowledged_offset
            for worker in delivery.workers
            if worker.spool_dispatcher is not None
        }
        faults = {
            worker.name: (type(worker.fault).__name__, str(worker.fault))
            for worker in delivery.workers
            if worker.fault is not None
        }
        dead_spools = delivery.dead_spools
        return ShipperState(delivery.report(), acknowledged, faults, dead_spools.shipped, dead_spools.looked.is_set())


def ship_rest(orders: Orders) -> None:
    """Deliver what a driver left that has ended, as the next one would; for `linger` seconds at most."""
    spool, deadline = orders.spool, time.monotonic() + orders.linger
    if orders.linger <= 0 or not spool.exists() or is_locked(spool / LOCK_NAME):
        return
    configuration = {key: value for key, value in orders.configuration.items() if not key.startswith(_DRIVERS_OWN)}
    options = replace(
        orders.options,
        only=frozenset(orders.listeners),
        has_shipper=False,
        dead_spools=None,
        look_interval=min(_LOOK_SECONDS, orders.options.look_interval),
        is_ours=lambda place: place == spool,
    )
    bus = Bus.open(configuration, orders.application, options=options)
    try:
        while spool.exists() and (left := deadline - time.monotonic()) > 0:
            if bus.ship(min(left, _STATE_SECONDS)) is not None:
                time.sleep(min(left, _STATE_SECONDS))
    finally:
        bus.stop(_STOP_SECONDS)


class ForeignSpool:
    """The spool of the driver, which alone appends to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.next_offset = 0
        """As the driver reported it the last time it waited for something."""
        self._reader = JournalReader.open(directory)

    def cursor(self, name: str) -> Cursor:
        return self._reader.cursor(name)

    def tail(self, position: int) -> Tail:
        return self._reader.tail(position)


class _DriverClock:
    """The clock is the driver's."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def observe(self, micros: int) -> None:
        self._channel.offer("clock", micros=micros)


class _StateSignal(ProgressSignal):
    """Wakes the thread that reports, too."""

    def __init__(self) -> None:
        super().__init__()
        self._event = threading.Event()

    def notify(self) -> None:
        super().notify()
        self._event.set()

    def changes(self) -> Iterator[None]:
        """Yield whenever something may have changed; what fails shows without a notice."""
        while True:
            self._event.wait(_IDLE_SECONDS)
            self._event.clear()
            yield


class _ForwardingHandler(logging.Handler):
    """Has the driver log what is logged here."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._channel.send("log", logger=record.name, level=record.levelno, text=self.format(record))
        except Exception:  # noqa: BLE001 - a record that can't be formatted harms nobody
            self.handleError(record)


def _end_with(driver: int, channel: Channel) -> None:
    """Where somebody else has the driver's end of the channel too, by a fork, its end shows in who our parent is."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(_PARENT_SECONDS)
        channel.close()

    DaemonThread("headwater-shipper-parent", watch).start()


def _essence(report: Any) -> tuple[object, ...]:
    """What of a report is worth sending again: not how old something is."""
    return report.state, report.durable, report.received, report.acknowledged, report.failures, dict(report.errors)
