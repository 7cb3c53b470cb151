"""Small words that the lines of all kinds are made of. Snapshots are shown in full: a line is what people search in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from headwater.events.jobs import DatasetRef, ErrorDetails
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Transform
from headwater.events.types import TypeTextError, parse_json, simple_string

T = TypeVar("T")

LISTED: Final = 6
"""Of a list that can be long, so many are shown."""
LONGEST_TEXT: Final = 200
LONGEST_NAME: Final = 60


def joined(*parts: str, by: str = " ") -> str:
    """The parts that say something."""
    return by.join(part for part in parts if part)


def listed(items: Sequence[T], word: Callable[[T], str], by: str = ", ") -> str:
    """The first of them in words, and how many more there are."""
    texts = [word(item) for item in items[:LISTED]]
    rest = len(items) - len(texts)
    return by.join([*texts, f"{rest:,} more"] if rest else texts)


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """Without the end of a text that is too long for a line."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return shortened(lines[0]) if lines else ""


def labelled(word: str, value: object) -> str:
    """The word with the value behind it; nothing where there is no value."""
    return "" if value is None or value == "" else f"{word} {value}"


def seconds_of(moment: datetime) -> str:
    return moment.replace(tzinfo=None, microsecond=0).isoformat(sep=" ") + "Z"


def place(dataset: DatasetId | None, table: TableName | None, opaque: str | None = None) -> str:
    """By the name that people gave it; else where it is; else what is known of what Spark doesn't show."""
    if table is not None:
        return str(table)
    if dataset is not None:
        return str(dataset)
    return f"({shortened(opaque, LONGEST_NAME)})" if opaque else "(unknown)"


def place_of(what: DatasetRef) -> str:
    on_branch = labelled("branch", what.branch)
    return joined(place(what.dataset, what.table, what.opaque), on_branch)


def version(what: DatasetRef, snapshot: int | None, text: str | None, candidates: Sequence[int] = ()) -> str:
    """The version in words: what it may be where that isn't sure, `?` where there must be one and it isn't known."""
    if snapshot is not None:
        return joined(str(snapshot), labelled("at", text))
    if text:
        return shortened(text, LONGEST_NAME)
    if candidates:
        return f"({' or '.join(map(str, candidates[:LISTED]))}?)"
    return "?" if what.dataset is not None and what.format.has_versions else ""


def step(before: object, after: object) -> str:
    """`4→9`, or as much of it as is known."""
    if before is None and after is None:
        return ""
    return f"{'' if before is None else before}→{'?' if after is None else after}"


def path(parts: FieldPath) -> str:
    return ".".join(parts)


def paths(columns: Iterable[FieldPath]) -> str:
    return ", ".join(map(path, columns))


def type_name(type_json: str) -> str:
    """As SQL and Spark's own messages have it; what is no type stays as it is."""
    try:
        return shortened(simple_string(parse_json(type_json)), LONGEST_NAME)
    except TypeTextError:
        return shortened(type_json, LONGEST_NAME)


def column_names(columns: Sequence[Column]) -> str:
    return f"({listed(columns, lambda column: column.name)})" if columns else ""


def transform(how: Transform) -> str:
    """`bucket(16, id)`, `day`."""
    columns = [path(column) for column in how.columns]
    if how.is_identity and len(columns) == 1:
        return columns[0]
    inside = ", ".join([*how.arguments, *columns])
    return f"{how.name}({inside})" if inside else how.field_name or how.name


def pairs(items: Mapping[str, object]) -> str:
    """`a=1, b=2`."""
    texts = [f"{key}={value}" for key, value in items.items()]
    return listed(texts, lambda each: shortened(each, LONGEST_NAME))


def describe_error(error: ErrorDetails | None) -> str:
    if error is None:
        return ""
    kind = error.type.rpartition(".")[2]
    return joined(kind, first_line(error.message), by=": ")
