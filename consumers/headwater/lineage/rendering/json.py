"""Renders an answer as JSON. The form is documented in docs/questions.md and stable."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from headwater.lineage.questions.columns import ColumnEdge, ColumnRef
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lineage_answers import (
    DatasetVersion,
    LineageAnswer,
    SnapshotEdge,
    StateEdge,
    VersionRange,
)
from headwater.lineage.questions.tables import TableEdge
from headwater.terminal import printable_json

FORM: Final = 1
"""The version of the form. It changes when the meaning of a field changes; new fields may be added at any time."""
_LONGS: Final = frozenset({"snapshot", "since", "barrier", "first", "last", "parent"})
"""64-bit integers are written as texts, because JavaScript can't represent them."""
_KINDS: Final = {TableEdge: "table", SnapshotEdge: "snapshot", StateEdge: "state", ColumnEdge: "column"}


def as_json(answer: LineageAnswer[Any], *, indent: int | None = None) -> str:
    return printable_json(plain(answer), indent=indent)


def plain(answer: LineageAnswer[Any]) -> dict[str, Any]:
    """Return the answer as plain values, ready for JSON."""
    return {
        "form": FORM,
        "of": answer.of,
        "direction": answer.direction,
        "basis": None if answer.basis is None else answer.basis.value,
        "note": answer.note or None,
        "complete_until": _json_value(answer.complete_until),
        "is_partial": answer.is_partial,
        "limits": [
            {"why": limit.why.value, "about": limit.about, "detail": limit.detail or None} for limit in answer.limits
        ],
        "edges": [edge(row) for row in answer.rows],
    }


def edge(row: Any) -> dict[str, Any]:
    """Return one edge as plain values, as streams write it."""
    return {"edge": _KINDS[type(row)], **_fields(row)}


def _fields(row: Any) -> dict[str, Any]:
    return {name: _long(value) if name in _LONGS else _json_value(value) for name, value in vars(row).items()}


def _long(value: Any) -> Any:
    return str(value) if isinstance(value, int) else _json_value(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, Dataset):
        return {"namespace": value.namespace, "name": value.name, "known_as": list(value.known_as)}
    if isinstance(value, (DatasetVersion, VersionRange, ColumnRef)):
        return _fields(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
