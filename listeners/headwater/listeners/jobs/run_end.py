"""How runs end, as far as that is known.

The runs of streaming queries: each start of one, which belongs to the application or block that started it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from headwater.events.base import StringMap
from headwater.events.jobs import ErrorDetails, JobStatus, StartPosition, StreamDetails
from headwater.events.names import JobName
from headwater.events.redaction import READ


@dataclass(frozen=True, kw_only=True)
class QueryStart:
    """What is known of a query that runs."""

    stream: StreamDetails
    session: Mapping[str, str] = field(default_factory=dict)
    """What the session that started it says that the application doesn't say."""
    tags: Iterable[str] = ()
    """Job tags of the thread that started it."""
    starts_at: tuple[StartPosition, ...] = ()


@dataclass(eq=False)
class QueryRun:
    """A query that was started: a run of its job."""

    job: JobName
    run: UUID
    parent_job: JobName
    parent_run: UUID
    has_ended: bool = False


_MAX_MESSAGE_LENGTH: Final = READ
"""Redaction keeps less of it: what is cut before it would hide where a password ends."""
_MAX_PARAMETER_LENGTH: Final = 2_000
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]")
_SQL_STATE: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})\b")
_JAVA_FRAMES: Final = "\n\tat "


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """The terminal status of a run, and what was seen of it."""

    status: JobStatus
    exit_code: int | None = None
    signal: int | None = None
    error: BaseException | None = None
    details_without_error: ErrorDetails | None = None
    """The error, where it is known in words only."""

    def details(self) -> ErrorDetails | None:
        """The error in words. This can take a call into the JVM, which Java's own errors make to say what they are."""
        if self.error is None:
            return self.details_without_error
        kind = type(self.error)
        return make_error_details(
            f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
            _message_of(self.error),
            _parameters_of(self.error),
        )


ENDED: Final = RunEnd(status=JobStatus.ENDED)
FINISHED: Final = RunEnd(status=JobStatus.FINISHED)


def run_end_of(error: BaseException | None) -> RunEnd:
    """The end of something that was left by this exception, or by none."""
    if error is None:
        return FINISHED
    if isinstance(error, KeyboardInterrupt):
        return RunEnd(status=JobStatus.KILLED, signal=int(signal.SIGINT))
    if isinstance(error, SystemExit):
        code = exit_code_of(error)
        return RunEnd(status=JobStatus.FAILED if code else JobStatus.FINISHED, exit_code=code)
    if isinstance(error, GeneratorExit):  # a generator that nobody reads to its end
        return ENDED
    return RunEnd(status=JobStatus.FAILED, error=error)


def make_error_details(kind: str, message: str, parameters: Mapping[str, str] | None = None) -> ErrorDetails:
    """An error by its class and message; Spark's own say in their message which one it is."""
    condition = _CONDITION.match(message)
    state = _SQL_STATE.search(message)
    return ErrorDetails(
        type=kind,
        message=message[:_MAX_MESSAGE_LENGTH],
        condition=condition[1] if condition else None,
        sql_state=state[1] if state else None,
        parameters=StringMap(parameters or {}),
    )


def exit_code_of(error: SystemExit) -> int:
    """What the operating system gets: 8 bits of a number, nothing for None, 1 for words."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _parameters_of(error: BaseException) -> dict[str, str]:
    """What Spark filled into the message; errors of others have none."""
    try:
        found: Any = getattr(error, "getMessageParameters", dict)()
        return {str(key): str(value)[:_MAX_PARAMETER_LENGTH] for key, value in dict(found or {}).items()}
    except Exception:  # noqa: BLE001 - a JVM that is gone, or a method of that name which is somebody's own
        return {}


def _message_of(error: BaseException) -> str:
    described = getattr(error, "desc", None)  # of Spark's errors; as text they bring Java's stack along
    try:
        text = described if isinstance(described, str) else str(error)
    except Exception as e:  # noqa: BLE001 - anybody's __str__, perhaps of a JVM that is gone
        text = f"it can't be said what: {type(e).__name__}"
    return text.partition(_JAVA_FRAMES)[0].strip()[:_MAX_MESSAGE_LENGTH].encode("utf-8", "replace").decode("utf-8")
