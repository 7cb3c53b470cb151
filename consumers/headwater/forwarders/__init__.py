"""Events to other systems: a package or module for each, behind the interface in `api`.

api             the interface of a forwarder
http_delivery   calls that block, in a thread; what an answer over HTTP means
event_facts     what several forwarders tell of an event in the same way
runner          polls, makes whole events, sends them, commits
dead_letters    makes events of records, or letters; sends letters again
delivery        retries by class of error; isolation finds the events that a target fails on
process         several forwarders, each on a thread of its own
starting        where a forwarder begins
state           what is on disk: known_lineage, dead letters, progress
configuration   the keys of a forwarder, which events it gets, and where its class is found
metrics, status what probes, Prometheus and people ask
"""

from headwater.forwarders.api import (
    BusEvent,
    CheckableForwarder,
    ClosableForwarder,
    Forwarder,
    ForwarderContext,
    ForwarderFactory,
    KnownLineage,
    PeriodicForwarder,
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
    "PeriodicForwarder",
    "PreviewableForwarder",
    "RefusedEventsError",
]
