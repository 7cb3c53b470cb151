"""What a command that runs for months says on standard error: a line for each thing, for people or as JSON."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Final, TextIO

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
FIELDS: Final = "headwater"
"""The attribute of a record that holds what it is about, by names: `extra={"headwater": {"events": 5}}`."""


def begin(form: str, level: str) -> logging.Handler:
    """From here on. Whoever calls this takes the handler away again."""
    handler = _Handler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    logger = logging.getLogger("headwater")
    handler.level_before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    return handler


def end(handler: logging.Handler) -> None:
    """As it was before."""
    logger = logging.getLogger("headwater")
    logger.removeHandler(handler)
    if isinstance(handler, _Handler):
        logger.setLevel(handler.level_before)


class _Handler(logging.StreamHandler[TextIO]):
    level_before = logging.NOTSET
    """The logger's, where somebody else has one in this process."""


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, {})
        told = "".join(f" {name}={value}" for name, value in fields.items())
        text = f"{_moment(record)} {record.levelname.lower():<7} {record.getMessage()}{told}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
