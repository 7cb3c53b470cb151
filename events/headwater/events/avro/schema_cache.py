"""The schemas that events are written with: every released one, and those that a program adds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final

from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

from headwater.events.avro.schema import NAMESPACE
from headwater.events.avro.upgrade import Resolution
from headwater.events.errors import DecodeError, Problem

MAX_VERSION: Final = 2**31 - 1
_INDEX: Final = "index.json"
_SCHEMA: Final = ".avsc"


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

    def resolution(self, wanted: WriterSchema) -> Resolution:
        """How its records become those of another one."""
        found = self._resolutions.get(wanted.fingerprint)
        if found is None:
            found = self._resolutions[wanted.fingerprint] = Resolution(self.parsed, wanted.parsed)
        return found

    @cached_property
    def _resolutions(self) -> dict[bytes, Resolution]:
        return {}


def fingerprint_of(schema: Any) -> bytes:
    """The 8 bytes that stand for a schema in single-object encoding."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def read_schema(text: str) -> WriterSchema:
    """The schema of an event kind from its text; a DecodeError where it is none."""
    try:
        content = json.loads(text)
        parsed: Any = parse_schema(content)
        namespace, _, kind = str(parsed["name"]).rpartition(".")
        version = content.get("version", 0)
    except Exception as e:  # the text can be anything, and so can the error of the libraries
        raise DecodeError(Problem.BAD_SCHEMA, f"no Avro record schema: {e}") from e
    if namespace != NAMESPACE or parsed["type"] != "record":
        raise DecodeError(Problem.BAD_SCHEMA, f"a record of {NAMESPACE} is expected, not {parsed['name']}")
    if type(version) is not int or not 0 <= version <= MAX_VERSION:  # True is an int too
        raise DecodeError(
            Problem.BAD_SCHEMA, f"a schema of {kind} says version {version}: versions are from 0 to 2^31 - 1"
        )
    return WriterSchema(kind, version, fingerprint_of(content), text)


class SchemaCache:
    """Finds the writer's schema by the fingerprint in an event's bytes.

    It knows the package's own schemas, and those that the program adds: of a newer headwater, say. Schemas that stand
    in a topic or in a registry are never taken in: a schema can make a few bytes mean unboundedly much.
    """

    def __init__(self, added: Iterable[WriterSchema] = ()) -> None:
        self._files: Mapping[str, str] = _released_files()
        self._schemas = {schema.fingerprint: schema for schema in added}

    def find(self, fingerprint: bytes) -> WriterSchema | None:
        """The schema; None where neither the package nor the program knows it."""
        found = self._schemas.get(fingerprint)
        if found is None and (file := self._files.get(fingerprint.hex())):
            return self._schemas.setdefault(fingerprint, _read_released(file))
        return found


def released() -> tuple[WriterSchema, ...]:
    """Every schema that was ever released, of every kind and version."""
    return tuple(_read_released(file) for file in _released_files().values())


def current(kind: str, version: int) -> WriterSchema:
    """The released schema of that version of a kind."""
    return _read_released(f"{kind}.v{version}.avsc")


def _directory() -> Any:
    return resources.files("headwater.events") / "schemas"


@cache
def _released_files() -> Mapping[str, str]:
    """File names by fingerprint."""
    index: dict[str, dict[str, str]] = json.loads(_texts()[_INDEX])
    return {entry["fingerprint"]: file for file, entry in index.items()}


@cache
def _texts() -> Mapping[str, str]:
    """All files at once: later, a driver may have no descriptor left, and an event that nobody can encode is lost."""
    files = (path for path in _directory().iterdir() if path.name == _INDEX or path.name.endswith(_SCHEMA))
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def _read_released(file: str) -> WriterSchema:
    text = _texts()[file]
    schema = json.loads(text)
    return WriterSchema(schema["name"], schema["version"], fingerprint_of(schema), text)
