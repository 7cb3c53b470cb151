"""What a client hears beside the answers to its requests, and passes on to whoever looks at the listener."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, ThrottleEvent

from headwater.publishers.kafka.errors import THROTTLED, KafkaProblem, describe_error, is_cause

_LOG: Final = logging.getLogger(__name__)
_CONNECTION_LOST: Final = "FAIL"
_HUNG_UP_AT_ONCE: Final = "in state APIVERSION_QUERY"
"""The other side hung up when it was spoken to."""


class ErrorTracker:
    """Gathers what `error_cb` and `throttle_cb` receive: while a client is polled, on the thread that polls."""

    def __init__(self, report: Callable[[str, str], None], hide: Callable[[str], str]) -> None:
        self.last: KafkaProblem | None = None
        """Since the last `clear`; one that nobody but a person can mend stays before any other."""
        self.has_no_answer = False
        """All brokers were tried since the last `clear`."""
        self.losses = 0
        """Connections that were lost, or couldn't be made."""
        self._report = report
        self._hide = hide

    def callbacks(self) -> dict[str, Any]:
        """To be added to the settings of a client."""
        return {"error_cb": self.on_error, "throttle_cb": self._on_throttle, "logger": self}

    def clear(self) -> None:
        self.last = None
        self.has_no_answer = False

    def on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.has_no_answer = True  # why not was reported for each
        elif is_cause(error):
            self.add(describe_error(error))

    def add(self, trouble: KafkaProblem) -> None:
        trouble = KafkaProblem(trouble.cause, self._hide(trouble.words))
        if self.last is None or trouble.is_permanent or not self.last.is_permanent:
            self.last = trouble
        self._report(trouble.cause, trouble.words)

    def explain(self, otherwise: str) -> str:
        """The cause that was reported, where one was."""
        return otherwise if self.last is None else f"{otherwise}: {self.last.words}"

    def log(self, _level: int, text: str, *arguments: object) -> None:
        """What librdkafka logs, each attempt to connect above all. A connection that is lost and made anew at once is
        reported nowhere else."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s", self._hide(text % arguments))
        if arguments[:1] == (_CONNECTION_LOST,):
            self.losses += 1
            line = text % arguments
            if _HUNG_UP_AT_ONCE in line:
                self.on_error(KafkaError(KafkaError._BAD_MSG, line.partition("]: ")[2] or line))

    def _on_throttle(self, event: ThrottleEvent) -> None:
        words = f"the brokers slow this client down, by {event.throttle_time:.1f} s just now: its quota is used up"
        self._report(THROTTLED, words)
