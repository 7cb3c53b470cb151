"""The shipper: a process of its own, one per driver, in which listeners with native clients work.

The driver appends to its spool and nothing else; the shipper reads the spool with the listeners' cursors and delivers.
Whatever it dies of, the driver goes on, and starts it again. It outlives a driver for a while, and delivers what that
one left. `ShipperProcess` is the driver's side, `main` the other one, `messages` what they say to each other.
"""

from __future__ import annotations

from headwater.listeners.bus.shipper.supervisor import ShipperProcess

__all__ = ["ShipperProcess"]
