"""What clients of a server asked for that failed before Spark ran anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headwater.events import StatementFailed, TableName
from headwater.events.jobs import Sink
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import OwnedDrafts, Owner
from headwater.listeners.capture.records import ClientFailureRecord
from headwater.listeners.jobs.run_end import make_error_details

_GRPC_STATUS: Final = re.compile(r"[A-Z_]+: (?=\[)")
"""What gRPC puts before a message."""
_PLAN: Final = ";\n"
"""Behind this an analysis error shows the plan, with the literals that are in it."""
_FULL_NAME_PARTS: Final = 3


def client_failure(record: ClientFailureRecord, context: CaptureContext) -> OwnedDrafts:
    """The session's: which name it has for its job isn't known here, nothing of it ran."""
    failed = StatementFailed(
        outputs=tuple(_sink(name, context) for name in record.targets),
        error=make_error_details("unknown", _GRPC_STATUS.sub("", record.message, count=1).partition(_PLAN)[0]),
    )
    return OwnedDrafts(Owner(record, is_session=True), (failed,))


def _sink(name: Sequence[str], context: CaptureContext) -> Sink:
    """A name that leaves the catalog or database to the session is what was written, and no table's name."""
    if len(name) == _FULL_NAME_PARTS and context.catalog_called(name[0]) is not None:
        return Sink(dataset=None, table=TableName(catalog=name[0], database=name[1], table=name[2]))
    return Sink(dataset=None, opaque=".".join(name))
