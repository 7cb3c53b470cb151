"""The schemas that events are written with: every released one, and those learned from the bus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, Final

from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

from headwater.events.avro.errors import DecodeError, Problem
from headwater.events.avro.safety import refuse_unbounded
from headwater.events.avro.schema import NAMESPACE

MAX_SCHEMA_BYTES: Final = 1 << 20
MAX_LEARNED: Final = 4_096
_INDEX: Final = "index.json"


@dataclass(frozen=True)
class WriterSchema:
    """A schema that some writer wrote events with."""

    kind: str
    version: int
    fingerprint: bytes
    """CRC-64-AVRO of the canonical form, as it stands in the bytes of an event."""
    text: str

    @cached_property
    def parsed(self) -> Any:
        """The form that fastavro works with."""
        return parse_schema(json.loads(self.text))


def fingerprint_of(schema: Any) -> bytes:
    """The 8 bytes that stand for a schema in single-object encoding."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def read_schema(text: str) -> WriterSchema:
    """A schema from the bus, checked: it may come from anybody."""
    if len(text) > MAX_SCHEMA_BYTES:
        raise DecodeError(
            Problem.TOO_LARGE, f"a schema of {len(text)} characters, where {MAX_SCHEMA_BYTES} are allowed"
        )
    try:
        schema = json.loads(text)
        refuse_unbounded(schema)
        parsed: Any = parse_schema(schema)
        namespace, _, kind = parsed["name"].rpartition(".")
        found = WriterSchema(kind, int(schema.get("version", 0)), fingerprint_of(schema), text)
    except DecodeError:
        raise
    except Exception as e:  # the text can be anything, and so can the error of the libraries
        raise DecodeError(Problem.BAD_SCHEMA, f"no Avro record schema: {e}") from e
    if namespace != NAMESPACE:
        raise DecodeError(Problem.BAD_SCHEMA, f"a record of {NAMESPACE} is expected, not {parsed['name']}")
    return found


class SchemaBook:
    """Finds the writer's schema by the fingerprint in an event's bytes. Not thread-safe: one per codec."""

    def __init__(self) -> None:
        self._files: Mapping[str, str] = _released_files()
        self._schemas: dict[bytes, WriterSchema] = {}
        self._learned = 0

    def find(self, fingerprint: bytes) -> WriterSchema | None:
        """None means that nobody has told it yet."""
        found = self._schemas.get(fingerprint)
        if found is None and (file := self._files.get(fingerprint.hex())):
            found = self._schemas[fingerprint] = _released(file)
        return found

    def learn(self, text: str) -> WriterSchema:
        """Take in a schema that came over the bus, or from a registry."""
        schema = read_schema(text)
        known = self.find(schema.fingerprint)
        if known is not None:
            return known
        if self._learned >= MAX_LEARNED:
            raise DecodeError(Problem.BAD_SCHEMA, f"{MAX_LEARNED} schemas were learned already: is somebody flooding?")
        self._learned += 1
        self._schemas[schema.fingerprint] = schema
        return schema


def released() -> tuple[WriterSchema, ...]:
    """Every schema that was ever released, of every kind and version."""
    return tuple(_released(file) for file in _released_files().values())


def current(kind: str, version: int) -> WriterSchema:
    """The released schema of that version of a kind."""
    return _released(f"{kind}.v{version}.avsc")


def _directory() -> Any:
    return resources.files("headwater.events") / "schemas"


def _released_files() -> dict[str, str]:
    """File names by fingerprint."""
    index: dict[str, dict[str, str]] = json.loads((_directory() / _INDEX).read_text(encoding="utf-8"))
    return {entry["fingerprint"]: file for file, entry in index.items()}


def _released(file: str) -> WriterSchema:
    text = (_directory() / file).read_text(encoding="utf-8")
    schema = json.loads(text)
    return WriterSchema(schema["name"], schema["version"], fingerprint_of(schema), text)
