"""Describes changes of a table in words, from the details stored in `modifications`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final


def describe_changes(kind: str, detail: dict[str, Any]) -> tuple[str, ...]:
    """Return a short sentence for each change."""
    return tuple(_words(kind, detail))


def format_type(type_json: str) -> str:
    """Return a type as people write it, from Spark's type JSON."""
    try:
        return _type(json.loads(type_json))
    except (ValueError, KeyError, TypeError, AttributeError):
        return type_json


def _words(kind: str, detail: dict[str, Any]) -> Iterator[str]:
    if kind in {"CreateTable", "CreateView"}:
        definition = detail.get("table") or detail.get("view") or {}
        columns = ", ".join(
            f"{column['name']} {format_type(column['type'])}" for column in definition.get("columns", [])
        )
        yield f"{'replaced' if detail.get('replaced') else 'made'} with ({columns})"
    elif kind == "AlterTable":
        for change in detail.get("changes", []):
            yield _CHANGES.get(change.get("change", ""), _other)(change)
    elif kind == "AlterView" and detail.get("renamed_to"):
        yield f"renamed to {_name(detail['renamed_to'])}"
    elif kind in {"CreateTag", "DropTag"}:
        yield f"tag {detail.get('tag')}" + _at(detail)
    elif kind in {"CreateBranch", "DropBranch", "BranchMerged", "MainReplaced"}:
        yield f"branch {detail.get('branch')}" + _at(detail)


def _at(detail: dict[str, Any]) -> str:
    return "" if detail.get("snapshot") is None else f" at {detail['snapshot']}"


def _path(change: dict[str, Any]) -> str:
    return ".".join(change.get("path", ()))


def _name(table: dict[str, Any]) -> str:
    return ".".join(part for part in (table.get("catalog"), table.get("database"), table.get("table")) if part)


def _other(change: dict[str, Any]) -> str:
    rest = {name: value for name, value in change.items() if name != "change"}
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in change.get("change", "changed"))
    return f"{words.strip()} {json.dumps(rest, ensure_ascii=False)}" if rest else words.strip()


_CHANGES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "AddColumn": lambda c: f"added column {_path(c)} {format_type(c['type'])}",
    "DropColumn": lambda c: f"dropped column {_path(c)}",
    "RenameColumn": lambda c: f"renamed column {_path(c)} to {c['new_name']}",
    "RetypeColumn": lambda c: f"retyped column {_path(c)} to {format_type(c['type'])}",
    "RecommentColumn": lambda c: f"commented column {_path(c)}",
    "MoveColumn": lambda c: f"moved column {_path(c)}",
    "ChangeNullability": lambda c: f"column {_path(c)} {'may be' if c.get('nullable') else 'is never'} null",
    "ChangeDefault": lambda c: f"default of column {_path(c)} is {c.get('default')}",
    "SetProperty": lambda c: f"set {c['key']} = {c['value']}",
    "RemoveProperty": lambda c: f"removed {c['key']}",
    "SetComment": lambda c: f"commented {c.get('comment')!r}",
    "SetLocation": lambda c: f"moved to {c['location']}",
    "RenameTable": lambda c: f"renamed to {_name(c['table'])}",
    "OtherChange": lambda c: c.get("what") or "changed",
}


def _type(type_json: Any) -> str:
    if isinstance(type_json, str):
        return type_json
    kind = type_json["type"]
    if kind == "array":
        return f"array<{_type(type_json['elementType'])}>"
    if kind == "map":
        return f"map<{_type(type_json['keyType'])}, {_type(type_json['valueType'])}>"
    if kind == "struct":
        fields = ", ".join(f"{field['name']}: {_type(field['type'])}" for field in type_json["fields"])
        return f"struct<{fields}>"
    return str(kind if isinstance(kind, str) else type_json)
