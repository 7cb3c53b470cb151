"""What a factory can offer to `headwater doctor`: checks of everything that its listener would need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from headwater.spi.listeners import ListenerContext


class CheckStatus(str, Enum):
    """How a check ended.

    >>> CheckStatus("warning") is CheckStatus.WARNING
    True
    """

    OK = "ok"
    WARNING = "warning"
    """It works, and somebody should look at it."""
    ERROR = "error"
    """It doesn't work, or what is promised doesn't hold."""


@dataclass(frozen=True)
class CheckResult:
    """What one check found. None of the texts holds a secret.

    >>> CheckResult.error("topic", "there is no topic events", "kafka-topics.sh --create --topic events").status.value
    'error'
    """

    step: str
    """What was checked, in a word or two."""
    status: CheckStatus
    message: str
    advice: str = ""
    """What to change, if anything: the key, or a command that can be copied."""

    @classmethod
    def ok(cls, step: str, message: str) -> CheckResult:
        return cls(step, CheckStatus.OK, message)

    @classmethod
    def warning(cls, step: str, message: str, advice: str = "") -> CheckResult:
        return cls(step, CheckStatus.WARNING, message, advice)

    @classmethod
    def error(cls, step: str, message: str, advice: str = "") -> CheckResult:
        return cls(step, CheckStatus.ERROR, message, advice)


@runtime_checkable
class Diagnosable(Protocol):
    """A listener factory that can check what its listener would meet.

    >>> class AuditFactory:
    ...     def create(self, context): ...
    ...     def diagnose(self, context):
    ...         yield CheckResult.ok("file", f"{context.configuration['file']} can be written to")
    >>> isinstance(AuditFactory(), Diagnosable)
    True
    """

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        """Check everything that the listener needs, and yield each result as soon as it is known.

        End where the next check makes no sense any more. A check may write where the listener writes: one event,
        `Closed`, of a producer that emits nothing else. Each check comes back within some seconds, whatever the target
        does. An exception shows as an error.
        """
        ...
