"""SQL expressions that turn Spark's columns into readable ones.

Spark represents a UUID as 16 bytes, and a union of two types as a struct with a member for each, at any depth. Edges
between columns are numbers that point at names.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fastavro.schema import parse_schema

from headwater.events.avro import WriterSchema
from headwater.events.avro.schema import NAMESPACE
from headwater.events.column_lineage import MAX_EDGE_TEXT, MAX_EDGES, ColumnEdges

_UUID: Final = f"{NAMESPACE}.Uuid"
_EDGES: Final = f"{NAMESPACE}.{ColumnEdges.__name__}"
_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""From year 1 to year 9999, as dates of Python, of SQL and of events go."""


def quote(name: str) -> str:
    """Quote a column name for SQL."""
    return f"`{name.replace('`', '``')}`"


def to_readable(schema: WriterSchema, at: str, *, fixed: dict[str, str]) -> str:
    """Return SQL for a record with UUIDs as text and their unions as one text. `fixed` replaces fields."""
    presenter = _Presenter(schema)
    return presenter.record(presenter.root, at, 0, fixed) or at


def to_columns(schema: WriterSchema, at: str, *, fixed: dict[str, str]) -> str:
    """Return SQL for a record with its fields as they are. `fixed` replaces fields."""
    names = [field["name"] for field in json.loads(schema.text)["fields"]]
    pairs = ", ".join(f"'{name}', {fixed.get(name) or f'{at}.{quote(name)}'}" for name in names)
    return f"named_struct({pairs})"


def times_out_of_range(schema: WriterSchema, at: str) -> list[str]:
    """Return SQL conditions that hold if a record contains an invalid time. Only corrupt bytes do."""
    walk = _OutOfRange(schema)
    return walk.record(walk.root, at, 0)


class _Types:
    """Resolves the named types of a schema."""

    def __init__(self, schema: WriterSchema) -> None:
        self._named: dict[str, Any] = {}
        self.root: Any = parse_schema(json.loads(schema.text), self._named)

    def resolve(self, schema: Any) -> Any:
        """The type as a dict, or as a list where it is a union."""
        return self._named.get(schema, {"type": schema}) if isinstance(schema, str) else schema


class _Presenter(_Types):
    """Builds the expressions. None means that Spark's own representation is readable."""

    def record(self, schema: Any, at: str, depth: int, fixed: dict[str, str] | None = None) -> str | None:
        fields = {f["name"]: f"{at}.{quote(f['name'])}" for f in schema["fields"]}
        changed = {f["name"]: self._of(f["type"], fields[f["name"]], depth) for f in schema["fields"]}
        changed.update(fixed or {})
        if not any(changed.values()):
            return None
        pairs = ", ".join(f"'{name}', {changed[name] or plain}" for name, plain in fields.items())
        return f"if({at} IS NULL, NULL, named_struct({pairs}))"

    def _of(self, schema: Any, at: str, depth: int) -> str | None:
        schema = self.resolve(schema)
        if isinstance(schema, list):
            return self._union(schema, at, depth)
        kind = schema["type"]
        if kind == "record":
            return _edges(at) if schema["name"] == _EDGES else self.record(schema, at, depth)
        if kind in {"array", "map"}:
            return self._collection(schema, at, depth)
        return _uuid_text(at) if kind == "fixed" and schema["name"] == _UUID else None

    def _collection(self, schema: Any, at: str, depth: int) -> str | None:
        item = f"x{depth}"
        array = schema["type"] == "array"
        inner = self._of(schema["items" if array else "values"], item, depth + 1)
        if inner is None:
            return None
        return f"transform({at}, {item} -> {inner})" if array else f"transform_values({at}, (k, {item}) -> {inner})"

    def _union(self, branches: list[Any], at: str, depth: int) -> str | None:
        options = [self.resolve(b) for b in branches if b != "null"]
        if len(options) == 1:
            return self._of(options[0], at, depth)
        if not any(o.get("name") == _UUID for o in options):
            return None
        if not all(o.get("name") == _UUID or o["type"] == "string" for o in options):
            return None
        members = [(o, f"{at}.member{number}") for number, o in enumerate(options)]
        return f"coalesce({', '.join(self._of(option, member, depth) or member for option, member in members)})"


class _OutOfRange(_Types):
    def record(self, schema: Any, at: str, depth: int) -> list[str]:
        return [c for f in schema["fields"] for c in self._of(f["type"], f"{at}.{quote(f['name'])}", depth)]

    def _of(self, schema: Any, at: str, depth: int) -> list[str]:
        schema = self.resolve(schema)
        if isinstance(schema, list):
            options = [b for b in schema if b != "null"]
            return self._of(options[0], at, depth) if len(options) == 1 else []
        kind = schema["type"]
        if kind == "record":
            return self.record(schema, at, depth)
        if kind == "array":
            inner = self._of(schema["items"], f"x{depth}", depth + 1)
            return [f"exists({at}, x{depth} -> {' OR '.join(inner)})"] if inner else []
        if schema.get("logicalType") == "timestamp-micros":
            return [f"unix_micros({at}) NOT BETWEEN {_FIRST_MICROS}L AND {_LAST_MICROS}L"]
        return []


def _uuid_text(at: str) -> str:
    groups = ((1, 4), (5, 2), (7, 2), (9, 2), (11, 6))
    text = ", '-', ".join(f"hex(substring({at}, {start}, {length}))" for start, length in groups)
    return f"lower(concat({text}))"


def _edges(at: str) -> str:
    """Return SQL for edges as a list of structs. It is null where they are more, or have more text, than an event can
    have; a name that isn't there is null. So bytes that are wrong neither end a query nor fill its memory."""
    path, text = f"get({at}.paths, {{}})", f"get({at}.expressions, {{}})"
    edge = (
        f"named_struct('output', g.output, 'input', g.input, 'source', {path.format('s')}, "
        f"'target', {path.format('get(g.targets, i)')}, 'derivation', g.derivation, "
        f"'expression', {text.format('get(g.expressions, i)')})"
    )
    count = f"aggregate({at}.groups, 0L, (n, g) -> n + size(g.sources))"
    longest_path = f"coalesce(array_max(transform({at}.paths, p -> length(array_join(p, '')))), 0)"
    longest_text = f"coalesce(array_max(transform({at}.expressions, e -> length(e))), 0)"
    fits = f"{count} <= {MAX_EDGES} AND {count} * (2 * {longest_path} + {longest_text}) <= {MAX_EDGE_TEXT}"
    return f"if({fits}, flatten(transform({at}.groups, g -> transform(g.sources, (s, i) -> {edge}))), NULL)"
