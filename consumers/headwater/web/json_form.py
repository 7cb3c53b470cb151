"""Answers as JSON: the fields of what questions return, with numbers of snapshots as texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, Final

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.datasets import Dataset

_LONGS: Final = frozenset({"snapshot", "parent", "since", "barrier", "first_snapshot", "last_snapshot", "produced"})
"""Fields with 64 bits, of which JavaScript rounds the largest."""


def json_text(value: object) -> str:
    return json.dumps(json_value(value), ensure_ascii=False)


def json_value(value: object) -> Any:
    """Return what JSON has for it: times in ISO 8601, spans in seconds."""
    for kind, convert in _CONVERTERS:
        if isinstance(value, kind):
            return convert(value)
    if is_dataclass(value):
        return {each.name: _field(each.name, getattr(value, each.name)) for each in fields(value)}
    return str(value)


def answer_fields(answer: Answer[Any]) -> dict[str, Any]:
    """Return the rows of an answer, and how far they can be believed."""
    return {
        "rows": [json_value(row) for row in answer.rows],
        "complete_until": json_value(answer.complete_until),
        "limits": [json_value(limit) for limit in answer.limits],
    }


def _field(name: str, value: object) -> Any:
    if name in _LONGS and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return json_value(value)


def _utc(value: datetime) -> str:
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


_CONVERTERS: Final[Sequence[tuple[Any, Callable[[Any], Any]]]] = (
    (Enum, lambda value: value.value),
    ((bool, int, float, str, type(None)), lambda value: value),
    (datetime, _utc),
    (timedelta, timedelta.total_seconds),
    (Dataset, lambda value: {"label": value.label, "place": value.place, "known_as": list(value.known_as)}),
    (Answer, answer_fields),
    (Mapping, lambda value: {str(name): _field(str(name), each) for name, each in value.items()}),
    ((list, tuple), lambda value: [json_value(each) for each in value]),
)
