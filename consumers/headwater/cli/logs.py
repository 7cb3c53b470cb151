"""The log of a process that runs for long, on standard error: a line for each thing, for people or as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Final

from headwater.terminal import printable, printable_lines

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
FIELDS: Final = "headwater"
"""The attribute of a record that holds what it is about, by names: `extra={"headwater": {"events": 5}}`."""


@contextmanager
def logging_as(form: str, level: str) -> Generator[None, None, None]:
    """Log in this way until the context ends, then as before: somebody else may use the logger in this process."""
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    logger = logging.getLogger("headwater")
    level_before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level_before)


class _SafeFormatter(logging.Formatter):
    """Hides secrets in what plug-ins and libraries put into their errors, such as the URL of a request."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        from headwater.events.redaction import redact  # noqa: PLC0415 - it imports pydantic

        return str(redact(super().formatException(ei)))


class _Text(_SafeFormatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, {})
        words = "".join(f" {name}={value}" for name, value in fields.items())
        text = printable(f"{_moment(record)} {record.levelname.lower():<7} {record.getMessage()}{words}")
        return f"{text}\n{printable_lines(self.formatException(record.exc_info))}" if record.exc_info else text


class _Json(_SafeFormatter):
    def format(self, record: logging.LogRecord) -> str:
        words = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            words["error"] = self.formatException(record.exc_info)
        return json.dumps(words, default=str)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
