"""The schemas that events are written with: every released one, and those learned from the bus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final

from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

from headwater.events.avro.errors import DecodeError, Problem
from headwater.events.avro.safety import bounded, fields_by_record
from headwater.events.avro.schema import NAMESPACE
from headwater.events.avro.upgrade import Resolution

MAX_SCHEMA_BYTES: Final = 1 << 18
"""The largest schema of ours has 1/20 of that."""
MAX_LEARNED: Final = 4_096
MAX_LEARNED_BYTES: Final = 4 << 20
"""Of the text of all that a codec has learned; the form that fastavro works with takes some ten times as much."""
MAX_VERSION: Final = 2**31 - 1
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
    """A schema from the bus, checked: it may come from anybody. Its text is what the checks left of it."""
    _refuse_large(text)
    try:
        return _checked(json.loads(text))
    except (DecodeError, MemoryError):
        raise
    except Exception as e:  # the text can be anything, and so can the error of the libraries
        raise DecodeError(Problem.BAD_SCHEMA, f"no Avro record schema: {e}") from e


def _checked(told: Any) -> WriterSchema:
    name = told.get("name") if isinstance(told, dict) else None
    schema = bounded(told, _own_fields(name.rpartition(".")[2]) if isinstance(name, str) else {})
    namespace, _, kind = schema["name"].rpartition(".")
    if namespace != NAMESPACE:
        raise DecodeError(Problem.BAD_SCHEMA, f"a record of {NAMESPACE} is expected, not {schema['name']}")
    version = _version(told, kind)
    text = json.dumps({**schema, "version": version}, separators=(",", ":"))
    _refuse_large(text)  # names became full
    return WriterSchema(kind, version, fingerprint_of(schema), text)


def _refuse_large(text: str) -> None:
    if len(text) > MAX_SCHEMA_BYTES:
        raise DecodeError(
            Problem.TOO_LARGE, f"a schema of {len(text)} characters, where {MAX_SCHEMA_BYTES} are allowed"
        )


def _version(told: dict[str, Any], kind: str) -> int:
    """0 if it doesn't say: registries may leave out what Avro doesn't know, and an event says its version itself."""
    version = told.get("version", 0)
    if type(version) is not int or not 0 <= version <= MAX_VERSION:  # True is an int too
        raise DecodeError(
            Problem.BAD_SCHEMA, f"a schema of {kind} says version {version}: versions are from 0 to 2^31 - 1"
        )
    return version


def _own_fields(kind: str) -> Mapping[str, frozenset[str]]:
    """What records of that kind are resolved to here: the fields of each record in its newest schema."""
    versions = [file for file in _released_files().values() if file.startswith(f"{kind}.v")]
    newest = max(versions, key=lambda file: int(file[len(kind) + 2 :].removesuffix(".avsc")), default=None)
    return _fields_in(newest) if newest else {}


@cache
def _fields_in(file: str) -> Mapping[str, frozenset[str]]:
    return fields_by_record(json.loads(_released(file).text))


class SchemaBook:
    """Finds the writer's schema by the fingerprint in an event's bytes. Not thread-safe: one per codec.

    The package's own are always there. Learned ones, which anybody can tell, share a fixed room: those not used for the
    longest time make place for others, and are unknown until they are told again.
    """

    def __init__(self) -> None:
        self._files: Mapping[str, str] = _released_files()
        self._schemas: dict[bytes, WriterSchema] = {}
        self._learned: dict[bytes, WriterSchema] = {}
        """The last used stands last."""
        self._learned_bytes = 0

    def find(self, fingerprint: bytes) -> WriterSchema | None:
        """None means that nobody has told it yet, or that it made place for others."""
        found = self._schemas.get(fingerprint)
        return found if found is not None else self._find_elsewhere(fingerprint)

    def _find_elsewhere(self, fingerprint: bytes) -> WriterSchema | None:
        if file := self._files.get(fingerprint.hex()):
            return self._schemas.setdefault(fingerprint, _released(file))
        learned = self._learned.pop(fingerprint, None)
        if learned is not None:
            self._learned[fingerprint] = learned
        return learned

    def learn(self, text: str) -> WriterSchema:
        """Take in a schema that came over the bus, or from a registry."""
        schema = read_schema(text)
        known = self.find(schema.fingerprint)
        if known is not None:
            return known
        self._learned[schema.fingerprint] = schema
        self._learned_bytes += len(schema.text)
        while self._learned_bytes > MAX_LEARNED_BYTES or len(self._learned) > MAX_LEARNED:
            oldest = self._learned.pop(next(iter(self._learned)))
            self._learned_bytes -= len(oldest.text)
        return schema


def released() -> tuple[WriterSchema, ...]:
    """Every schema that was ever released, of every kind and version."""
    return tuple(_released(file) for file in _released_files().values())


def current(kind: str, version: int) -> WriterSchema:
    """The released schema of that version of a kind."""
    return _released(f"{kind}.v{version}.avsc")


def _directory() -> Any:
    return resources.files("headwater.events") / "schemas"


@cache
def _released_files() -> Mapping[str, str]:
    """File names by fingerprint."""
    index: dict[str, dict[str, str]] = json.loads((_directory() / _INDEX).read_text(encoding="utf-8"))
    return {entry["fingerprint"]: file for file, entry in index.items()}


def _released(file: str) -> WriterSchema:
    text = (_directory() / file).read_text(encoding="utf-8")
    schema = json.loads(text)
    return WriterSchema(schema["name"], schema["version"], fingerprint_of(schema), text)
