"""Framing for topics with a schema registry: a zero byte and the schema's id there.

The client is Confluent's own (the extra `registry`), which knows all ways to authenticate; any registry that speaks its
HTTP protocol serves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events.avro.framing import Framed, SingleObject
from headwater.events.avro.schema import NAMESPACE
from headwater.events.avro.schema_cache import SchemaCache, WriterSchema, fingerprint_of
from headwater.events.errors import DecodeError, Problem
from headwater.plugins import extra_command

_MAGIC: Final = b"\x00"
_HEADER_BYTES: Final = 5
_NOT_FOUND: Final = 404
_ASK_AGAIN_SECONDS: Final = 10.0
_MAX_MISSING: Final = 10_000
_MAX_KNOWN: Final = 10_000


class RegistryUnavailableError(TransientError):
    """The schema registry doesn't answer, or not now."""


class RegistryRefusedError(TerminalError):
    """The schema registry says no: to the credentials, or to the schema."""


class Registry(Protocol):
    """What is needed of a schema registry. Both raise errors of the two types above."""

    def register(self, subject: str, schema: str) -> int:
        """The id of the schema under that subject, which is registered if it isn't yet."""
        ...

    def lookup(self, id: int) -> str | None:  # noqa: A002 - it is the id
        """The schema with that id; None if there is none."""
        ...


class Confluent:
    """The framing. Subjects are `<topic>-<record name>`, because a topic holds events of many kinds.

    What isn't framed for a registry is read as single-object encoding: a topic may have had no registry once.
    """

    def __init__(self, registry: Registry, topic: str) -> None:
        self._registry = registry
        self._topic = topic
        self._headers: dict[bytes, bytes] = {}
        self._fingerprints: dict[int, bytes] = {}
        """Of the schemas in the registry, by their ids."""
        self._missing: dict[int, float] = {}
        self._plain = SingleObject()

    def header(self, schema: WriterSchema) -> bytes:
        """The bytes that name the schema; asks the registry once per schema."""
        header = self._headers.get(schema.fingerprint)
        if header is None:
            subject = f"{self._topic}-{NAMESPACE}.{schema.kind}"
            header = _MAGIC + self._registry.register(subject, schema.text).to_bytes(4, "big")
            self._headers[schema.fingerprint] = header
        return header

    def open(self, data: bytes, schemas: SchemaCache) -> Framed:
        """Find the schema that these bytes name; asks the registry once per id that it knows."""
        if data[:1] != _MAGIC:
            return self._plain.open(data, schemas)
        if len(data) < _HEADER_BYTES:
            raise DecodeError(Problem.MALFORMED, "the schema's id is cut off", offset=len(data))
        number = int.from_bytes(data[1:_HEADER_BYTES], "big")
        schema = self._schema(number, schemas)
        return Framed(_HEADER_BYTES, schema.fingerprint if schema else data[1:_HEADER_BYTES], schema)

    def _schema(self, number: int, schemas: SchemaCache) -> WriterSchema | None:
        fingerprint = self._fingerprints.get(number)
        if fingerprint is None:
            if time.monotonic() < self._missing.get(number, 0.0):
                return None
            text = self._registry.lookup(number)
            if text is None:
                self._miss(number)
                return None
            if len(self._fingerprints) >= _MAX_KNOWN:
                self._fingerprints.clear()
            fingerprint = self._fingerprints[number] = _fingerprint(text)
        return schemas.find(fingerprint)

    def _miss(self, number: int) -> None:
        """Not asked again for a while: a topic full of foreign bytes must not become a flood of requests."""
        if len(self._missing) >= _MAX_MISSING:
            self._missing.clear()
        self._missing[number] = time.monotonic() + _ASK_AGAIN_SECONDS


def _fingerprint(text: str) -> bytes:
    """Of a schema in the registry. Nothing but the fingerprint is taken from there: the schema is the package's own."""
    try:
        return fingerprint_of(json.loads(text))
    except Exception:  # noqa: BLE001 - anybody can have registered anything: then it is one that nobody knows
        return b""


class HttpRegistry:
    """A registry at a URL. `configuration` is that of Confluent's client: `url`, `basic.auth.user.info`, `ssl.…`."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        try:
            from confluent_kafka import schema_registry  # noqa: PLC0415 - an extra
        except ImportError as e:
            raise ConfigurationError(f"schema.registry.url needs an extra: {extra_command('registry')}") from e
        self._library = schema_registry
        try:
            self._client = schema_registry.SchemaRegistryClient(dict(configuration))
        except (ValueError, TypeError) as e:
            raise ConfigurationError(f"schema.registry: {e}") from e

    def register(self, subject: str, schema: str) -> int:
        try:
            return int(self._client.register_schema(subject, self._library.Schema(schema, "AVRO")))
        except Exception as e:  # the client lets errors of its HTTP library through
            raise self._translated_error(e, f"register {subject}") from e

    def lookup(self, id: int) -> str | None:  # noqa: A002 - it is the id
        try:
            return str(self._client.get_schema(id).schema_str)
        except Exception as e:  # the client lets errors of its HTTP library through
            if getattr(e, "http_status_code", None) == _NOT_FOUND:
                return None
            raise self._translated_error(e, f"look up schema {id}") from e

    def _translated_error(self, e: Exception, what: str) -> HeadwaterError:
        status = getattr(e, "http_status_code", None)
        if isinstance(status, int) and 400 <= status < 500 and status not in {408, 429}:
            return RegistryRefusedError(f"the schema registry refuses to {what}: {e}")
        return RegistryUnavailableError(f"the schema registry can't {what} now: {type(e).__name__}: {e}")
