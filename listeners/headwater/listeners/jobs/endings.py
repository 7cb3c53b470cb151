"""How runs end, as far as that is known."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Final

from headwater.events.jobs import ErrorDetails, JobStatus

_LONGEST: Final = 8_000
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]")
_SQL_STATE: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})\b")
_JAVA_FRAMES: Final = "\n\tat "


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The terminal status of a run, and what was seen of it."""

    status: JobStatus
    exit_code: int | None = None
    signal: int | None = None
    error: BaseException | None = None
    told: ErrorDetails | None = None
    """The error, where it is known in words only."""

    def details(self) -> ErrorDetails | None:
        """The error in words. This can take a call into the JVM, which Java's own errors make to say what they are."""
        if self.error is None:
            return self.told
        kind = type(self.error)
        return in_words(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."), _message(self.error))


ENDED: Final = Ending(status=JobStatus.ENDED)
FINISHED: Final = Ending(status=JobStatus.FINISHED)


def of_exit(error: BaseException | None) -> Ending:
    """The end of something that was left by this exception, or by none."""
    if error is None:
        return FINISHED
    if isinstance(error, KeyboardInterrupt):
        return Ending(status=JobStatus.KILLED, signal=int(signal.SIGINT))
    if isinstance(error, SystemExit):
        code = exit_code_of(error)
        return Ending(status=JobStatus.FAILED if code else JobStatus.FINISHED, exit_code=code)
    if isinstance(error, GeneratorExit):  # a generator that nobody reads to its end
        return ENDED
    return Ending(status=JobStatus.FAILED, error=error)


def in_words(kind: str, message: str) -> ErrorDetails:
    """An error by its class and message; Spark's own say in their message which one it is."""
    condition = _CONDITION.match(message)
    state = _SQL_STATE.search(message)
    return ErrorDetails(
        type=kind,
        message=message[:_LONGEST],
        condition=condition[1] if condition else None,
        sql_state=state[1] if state else None,
    )


def exit_code_of(error: SystemExit) -> int:
    """What the operating system is told: 8 bits of a number, nothing for None, 1 for words."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _message(error: BaseException) -> str:
    described = getattr(error, "desc", None)  # of Spark's errors; as text they bring Java's stack along
    try:
        text = described if isinstance(described, str) else str(error)
    except Exception as e:  # noqa: BLE001 - anybody's __str__, perhaps of a JVM that is gone
        text = f"it can't be said what: {type(e).__name__}"
    return text.partition(_JAVA_FRAMES)[0].strip()[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
