"""The listener bus: the spool, the listeners' threads, and what dead drivers left.

bus = Bus.open(configuration, Application(id, name))
bus.emit(draft)
bus.stop(timeout=5)
"""

from __future__ import annotations

from headwater.listeners.bus.bus import Bus
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.report import BusReport, ListenerReport, ListenerState, SpoolShipment

__all__ = ["Bus", "BusOptions", "BusReport", "ListenerReport", "ListenerState", "SpoolShipment"]
