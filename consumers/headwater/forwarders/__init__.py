"""Events to other systems: a package or module for each, behind the interface in `api`.

api      the interface of a forwarder
"""

from headwater.forwarders.api import (
    BusEvent,
    CheckableForwarder,
    ClosableForwarder,
    Forwarder,
    ForwarderContext,
    ForwarderFactory,
    KnownLineage,
    PreviewableForwarder,
    RefusedEventsError,
)

__all__ = [
    "BusEvent",
    "CheckableForwarder",
    "ClosableForwarder",
    "Forwarder",
    "ForwarderContext",
    "ForwarderFactory",
    "KnownLineage",
    "PreviewableForwarder",
    "RefusedEventsError",
]
