"""The one place where what an old version wrote becomes the newest, and what a newer one wrote is read as today's.

Avro's rules of resolution are applied to values, after all bytes were read by the schema that wrote them. fastavro can
do it while reading, but passes over what the reader doesn't know without looking for the end of the bytes: there, a few
of them can claim 2^60 items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from types import NoneType
from typing import Any, Final

from headwater.events.avro.converters import Convert
from headwater.events.avro.schema import version_of
from headwater.events.envelope import Event
from headwater.events.errors import DecodeError, Problem

STEPS: Final[Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""What to do, beyond Avro's own resolution, to come from that version of a kind to the next."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NAMED: Final = frozenset({"record", "enum", "fixed"})
_PROMOTED: Final[dict[tuple[str, str], Convert | None]] = {
    ("int", "long"): None,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): None,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): bytes.decode,
}
_IN_PYTHON: Final[dict[str, type]] = {
    "null": NoneType,
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "string": str,
    "array": list,
    "map": dict,
}


def upgraded(kind: type[Event], version: int, record: dict[str, Any]) -> dict[str, Any]:
    """The record, already resolved to the newest schema, with the meaning of the newest version."""
    newest = version_of(kind)
    for step in range(max(version, 0), newest):  # a version below 0 would be a long way up
        record = STEPS.get((kind.__name__, step), _keep_record)(record)
    record["schema_version"] = newest
    return record


def _keep_record(record: dict[str, Any]) -> dict[str, Any]:
    return record


class Resolution:
    """How records of one schema become those of another, both as fastavro parsed them; compiled once per pair.

    Values in unions must have been read with their types' names. What doesn't fit raises a DecodeError where it is met.
    """

    def __init__(self, written: dict[str, Any], wanted: dict[str, Any]) -> None:
        self._written: dict[str, Any] = written["__named_schemas"]
        self._wanted: dict[str, Any] = wanted["__named_schemas"]
        self._records: dict[tuple[str, str], Convert | None] = {}
        self._convert = self._type(written, wanted)

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        resolved: dict[str, Any] = record if self._convert is None else self._convert(record)
        return resolved

    def _type(self, written: Any, wanted: Any) -> Convert | None:
        written, wanted = _in_full(written, self._written), _in_full(wanted, self._wanted)
        if isinstance(written, list):
            return self._union(written, wanted)
        if isinstance(wanted, list):
            wanted = next((b for b in (_in_full(b, self._wanted) for b in wanted) if _matches(written, b)), None)
        if wanted is None or not _matches(written, wanted):
            return _never(f"{_word(written)} where something else is expected")
        return self._matching(written, wanted)

    def _matching(self, written: Any, wanted: Any) -> Convert | None:
        kind = _kind(written)
        if kind == "record":
            pair = (written["name"], wanted["name"])
            if pair not in self._records:
                self._records[pair] = self._record(written, wanted)
            return self._records[pair]
        if kind == "array":
            return _each_item(self._type(written["items"], wanted["items"]))
        if kind == "map":
            return _each_value(self._type(written["values"], wanted["values"]))
        return _known_word(written, wanted) if kind == "enum" else _leaf(written, wanted)

    def _union(self, branches: list[Any], wanted: Any) -> Convert:
        """Chosen by their names or, those without names, by what they are in Python: a union has one of each."""
        found: dict[Any, Convert | None] = {}
        for branch in (_in_full(b, self._written) for b in branches):
            key = branch["name"] if _kind(branch) in _NAMED else _in_python(branch)
            found.setdefault(key, self._type(branch, wanted))

        def choose(value: Any) -> Any:
            name, inner = value if type(value) is tuple else (type(value), value)
            convert = found[name]
            return inner if convert is None else convert(inner)

        return choose

    def _record(self, written: dict[str, Any], wanted: dict[str, Any]) -> Convert | None:
        types = {field["name"]: field["type"] for field in written["fields"]}
        names = [field["name"] for field in wanted["fields"]]
        missing = [field for field in wanted["fields"] if field["name"] not in types]
        if without := [field["name"] for field in missing if "default" not in field]:
            return _never(f"{written['name']} has no {', '.join(without)}")
        converts = [
            (field["name"], self._type(types[field["name"]], field["type"]))
            for field in wanted["fields"]
            if field["name"] in types
        ]
        if set(names) == set(types) and all(convert is None for _, convert in converts):
            return None
        defaults = {field["name"]: field["default"] for field in missing}

        def read(value: dict[str, Any]) -> dict[str, Any]:
            record = dict(defaults)
            for name, convert in converts:
                record[name] = value[name] if convert is None else convert(value[name])
            return record

        return read


def _in_full(schema: Any, named: Mapping[str, Any]) -> Any:
    return named.get(schema, schema) if isinstance(schema, str) else schema


def _kind(schema: Any) -> str:
    kind: str = schema["type"] if isinstance(schema, dict) else schema
    return kind


def _word(schema: Any) -> str:
    return str(schema["name"]) if _kind(schema) in _NAMED else _kind(schema)


def _is_time(schema: Any) -> bool:
    return isinstance(schema, dict) and "logicalType" in schema


def _in_python(schema: Any) -> type:
    return datetime if _is_time(schema) else _IN_PYTHON[_kind(schema)]


def _matches(written: Any, wanted: Any) -> bool:
    kind = _kind(written)
    if kind != _kind(wanted):
        return (kind, _kind(wanted)) in _PROMOTED and not _is_time(written)
    if kind in _NAMED:
        same: bool = written["name"].rpartition(".")[2] == wanted["name"].rpartition(".")[2]
        return same and written.get("size") == wanted.get("size")
    return _is_time(wanted) or not _is_time(written)


def _leaf(written: Any, wanted: Any) -> Convert | None:
    if _is_time(wanted) and not _is_time(written):
        return _time
    return _PROMOTED.get((_kind(written), _kind(wanted)))


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _known_word(written: dict[str, Any], wanted: dict[str, Any]) -> Convert | None:
    known = frozenset(wanted["symbols"])
    if known.issuperset(written["symbols"]):
        return None
    default = wanted.get("default")
    if default is None:
        return lambda word: word if word in known else _never(f"the word {word} is unknown")(word)
    return lambda word: word if word in known else default


def _each_item(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda items: [convert(item) for item in items]


def _each_value(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: {key: convert(value) for key, value in values.items()}


def _never(why: str) -> Convert:
    def fail(_: Any) -> Any:
        raise DecodeError(Problem.MALFORMED, f"it can't be resolved to today's schema: {why}")

    return fail
