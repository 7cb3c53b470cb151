"""An answer as JSON: documented in docs/questions.md, and stable."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from headwater.lineage.questions.columns import Column, ColumnEdge
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.tables import TableEdge
from headwater.lineage.questions.versions import Lineage, SnapshotEdge, Span, StateEdge, Version

FORM: Final = 1
"""Grows when something that was there means something else; what is new may be there at any time."""
_LONGS: Final = frozenset({"snapshot", "since", "barrier", "first", "last", "parent"})
"""They don't fit what JavaScript counts with: as everywhere in headwater's JSON they are texts."""
_KINDS: Final = {TableEdge: "table", SnapshotEdge: "snapshot", StateEdge: "state", ColumnEdge: "column"}


def as_json(answer: Lineage[Any], *, indent: int | None = None) -> str:
    return json.dumps(plain(answer), ensure_ascii=False, indent=indent)


def plain(answer: Lineage[Any]) -> dict[str, Any]:
    """What is written as JSON."""
    return {
        "form": FORM,
        "of": answer.of,
        "direction": answer.direction,
        "basis": None if answer.basis is None else answer.basis.value,
        "note": answer.note or None,
        "complete_until": _plain(answer.complete_until),
        "is_partial": answer.is_partial,
        "limits": [
            {"why": each.why.value, "about": each.about, "detail": each.detail or None} for each in answer.limits
        ],
        "edges": [edge(row) for row in answer.rows],
    }


def edge(row: Any) -> dict[str, Any]:
    """One edge, as streams give them."""
    return {"edge": _KINDS[type(row)], **_fields(row)}


def _fields(row: Any) -> dict[str, Any]:
    return {name: _long(value) if name in _LONGS else _plain(value) for name, value in vars(row).items()}


def _long(value: Any) -> Any:
    return str(value) if isinstance(value, int) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Dataset):
        return {"namespace": value.namespace, "name": value.name, "known_as": list(value.known_as)}
    if isinstance(value, (Version, Span, Column)):
        return _fields(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
