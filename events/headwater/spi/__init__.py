"""For authors of plug-ins: base classes of listeners, what they are given, and the checks of `headwater doctor`.

The bus finds factories by `headwater.spi.factories`. Nothing here imports another package but `events` and `errors`.
"""

from headwater.spi.diagnosis import CheckResult, CheckStatus, Diagnosable
from headwater.spi.listeners import (
    CALL_SECONDS,
    WRONG_KEY,
    Application,
    Clock,
    DurableListener,
    Listener,
    ListenerContext,
    ListenerFactory,
)
from headwater.spi.records import EventRecord, RecordBatch, RecordError, RefusedRecordError, SpoolPosition

__all__ = [
    "CALL_SECONDS",
    "WRONG_KEY",
    "Application",
    "CheckResult",
    "CheckStatus",
    "Clock",
    "Diagnosable",
    "DurableListener",
    "EventRecord",
    "Listener",
    "ListenerContext",
    "ListenerFactory",
    "RecordBatch",
    "RecordError",
    "RefusedRecordError",
    "SpoolPosition",
]
