"""The interfaces between rooms: listeners and the factories that make them, and the records they are handed."""

from headwater.spi.examining import Condition, Examinable, Finding
from headwater.spi.factories import (
    LISTENERS,
    RESERVED_NAMES,
    Factories,
    NamedFactory,
    check_name,
    listener_factories,
    name_and_reference,
)
from headwater.spi.listeners import (
    CALL_SECONDS,
    Application,
    Clock,
    DurableListener,
    Listener,
    ListenerContext,
    ListenerFactory,
)
from headwater.spi.records import Batch, Decode, Position, Record, RecordError

__all__ = [
    "CALL_SECONDS",
    "LISTENERS",
    "RESERVED_NAMES",
    "Application",
    "Batch",
    "Clock",
    "Condition",
    "Decode",
    "DurableListener",
    "Examinable",
    "Factories",
    "Finding",
    "Listener",
    "ListenerContext",
    "ListenerFactory",
    "NamedFactory",
    "Position",
    "Record",
    "RecordError",
    "check_name",
    "listener_factories",
    "name_and_reference",
]
