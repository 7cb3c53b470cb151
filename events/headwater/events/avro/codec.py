"""Events to bytes and back.

Written are always the newest versions. What is read may be older (it is upgraded), newer or of an unknown kind (its
bytes are kept as they are), or no event at all: then there is one typed error that says what is wrong and where, never
anything else, and memory stays within a multiple of the bytes that came in.
"""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any, Final, TypeAlias

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from pydantic import ValidationError

from headwater.events.avro.converters import reader_of, writer_of
from headwater.events.avro.framing import Framing, SingleObject
from headwater.events.avro.quick_reader import quick_reader
from headwater.events.avro.schema import version_of
from headwater.events.avro.schema_cache import MAX_VERSION, SchemaCache, WriterSchema, current
from headwater.events.avro.upgrade import upgraded
from headwater.events.envelope import Event, UnknownEvent
from headwater.events.errors import DecodeError, EncodeError, EventTooLargeError, Problem
from headwater.events.kinds import KINDS

MAX_EVENT_BYTES: Final = 1_000_000
"""Just under what a Kafka broker takes by default."""
MAX_FAULTS: Final = 50
_STAMPED: Final = ("sequence", "family_sequence", "time")


Decoded: TypeAlias = Event | UnknownEvent


class Codec:
    """Encodes and decodes events. Thread-safe, as far as its framing is.

    >>> from headwater.events import Heartbeat
    >>> from headwater.events.producer import Producer
    >>> Producer("application_1").emit(Heartbeat(), lambda event, data: print(Codec().decode(data) == event))[0].kind
    True
    'Heartbeat'
    """

    def __init__(
        self,
        framing: Framing | None = None,
        *,
        schemas: SchemaCache | None = None,
        max_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self._framing = framing or SingleObject()
        self._max_bytes = max_bytes
        self._schemas = schemas or SchemaCache()

    def encode(self, event: Event | UnknownEvent) -> bytes:
        """The bytes of an event that a producer stamped."""
        if isinstance(event, UnknownEvent):
            return event.raw
        if not event.stamped:
            raise EncodeError(f"this {event.kind} has no place in an order yet: let a Producer stamp it")
        schema = current_schema(type(event))
        data = self._encode_body(event, schema)
        if len(data) > self._max_bytes:
            raise EventTooLargeError(f"this {event.kind} takes {len(data)} bytes, and {self._max_bytes} are allowed")
        return data

    def _encode_body(self, event: Event, schema: WriterSchema) -> bytes:
        buffer = io.BytesIO()
        buffer.write(self._framing.header(schema))
        try:
            schemaless_writer(buffer, schema.parsed, writer_of(type(event))(event))
        except Exception as e:  # a model made without validation can hold anything
            raise EncodeError(f"this {event.kind} isn't what its type says: {e}") from e
        return buffer.getvalue()

    def stamp_again(self, data: bytes, event: Event) -> bytes:
        """The bytes of an event that was encoded with another place in the order, or time: only these are written."""
        schema = current_schema(type(event))
        header, envelope = self._framing.header(schema), _envelope_of(type(event))
        source = io.BytesIO(data)
        source.seek(len(header))
        fields: Any = schemaless_reader(source, envelope, None)
        fields.update({name: getattr(event, name) for name in _STAMPED})
        stamped = io.BytesIO()
        stamped.write(header)
        schemaless_writer(stamped, envelope, fields)
        stamped.write(memoryview(data)[source.tell() :])
        return stamped.getvalue()

    def decode(self, data: bytes) -> Decoded:
        """The event in these bytes; a DecodeError if there is none."""
        if len(data) > self._max_bytes:
            raise DecodeError(Problem.TOO_LARGE, f"{len(data)} bytes, where {self._max_bytes} are allowed")
        framed = self._framing.open(data, self._schemas)
        schema = framed.schema
        if schema is None:
            return UnknownEvent(raw=data, fingerprint=framed.fingerprint)
        kind = KINDS.get(schema.kind)
        if kind is None:
            return UnknownEvent(data, framed.fingerprint, schema.kind, schema.version)
        return self._event(data, framed.offset, kind, schema)

    def _event(self, data: bytes, offset: int, kind: type[Event], schema: WriterSchema) -> Event | UnknownEvent:
        mine = current_schema(kind)
        if schema.fingerprint == mine.fingerprint:
            event = _read_quickly(data, offset, kind)
            if event is not None:
                return event
            record = _record(data, offset, schema)
            if record["schema_version"] <= mine.version:
                return _validate(kind, record)
        return _another_version(data, offset, kind, schema)


def _read_quickly(data: bytes, offset: int, kind: type[Event]) -> Event | None:
    """Return the event if its bytes are plain."""
    read = quick_reader(kind)
    if read is None:
        return None
    try:
        event: Event = read(data, offset)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever the bytes did to it: the other way says what is wrong
        return None
    return event


@cache
def current_schema(kind: type[Event]) -> WriterSchema:
    """What a kind is written with today."""
    return current(kind.__name__, version_of(kind))


@cache
def _envelope_of(kind: type[Event]) -> Any:
    """The schema of what a kind begins with: everything up to the last of what a producer stamps."""
    schema = json.loads(current_schema(kind).text)
    names = [field["name"] for field in schema["fields"]]
    last = max(map(names.index, _STAMPED))
    return parse_schema({**schema, "fields": schema["fields"][: last + 1]})


def _record(data: bytes, offset: int, schema: WriterSchema, *, names: bool = False) -> dict[str, Any]:
    """What stands there; with `names`, values in unions are pairs with the name of their type, if it has one."""
    source = io.BytesIO(data)
    source.seek(offset)
    try:
        record = schemaless_reader(source, schema.parsed, None, return_named_type=names)
    except MemoryError:  # it is bounded by the bytes: this process has none left, and another one may read them
        raise
    except Exception as e:  # the bytes can be anything, and fastavro raises many kinds of errors for them
        raise DecodeError(Problem.MALFORMED, _words(e, source, data), offset=source.tell(), kind=schema.kind) from e
    if source.tell() != len(data):
        extra = len(data) - source.tell()
        raise DecodeError(Problem.TRAILING_BYTES, f"{extra} too many", offset=source.tell(), kind=schema.kind)
    if not isinstance(record, dict):
        raise DecodeError(Problem.MALFORMED, "no record", offset=offset, kind=schema.kind)
    return record


def _another_version(data: bytes, offset: int, kind: type[Event], schema: WriterSchema) -> Event | UnknownEvent:
    """Its schema says that it is newer, or the event itself does: a version can change the meaning alone."""
    mine = current_schema(kind)
    record = _record(data, offset, schema, names=True)
    event_version = record.get("schema_version")
    version = max(schema.version, event_version) if isinstance(event_version, int) else schema.version
    if version > MAX_VERSION:
        raise DecodeError(Problem.INVALID, f"schema_version: {version} is none", offset=offset, kind=schema.kind)
    if schema.version < mine.version and version <= mine.version:
        return _validate(kind, upgraded(kind, schema.version, _resolve(record, schema, mine)))
    try:
        known = _validate(kind, {**_resolve(record, schema, mine), "schema_version": mine.version})
    except DecodeError:
        known = None
    return UnknownEvent(data, schema.fingerprint, schema.kind, version, known)


def _resolve(record: dict[str, Any], schema: WriterSchema, mine: WriterSchema) -> dict[str, Any]:
    try:
        return schema.resolution(mine)(record)
    except (ValueError, OverflowError) as e:  # text that is none, a time beyond all calendars
        raise DecodeError(Problem.MALFORMED, f"{type(e).__name__}: {e}", kind=schema.kind) from e


def _validate(kind: type[Event], record: dict[str, Any]) -> Event:
    convert = reader_of(kind)
    try:
        return kind.model_validate(record if convert is None else convert(record))
    except ValidationError as e:
        raise DecodeError(Problem.INVALID, _faults(e), kind=kind.__name__) from e
    except ValueError as e:  # the converter's
        raise DecodeError(Problem.INVALID, str(e), kind=kind.__name__) from e


def _faults(e: ValidationError) -> str:
    """Each with its field, as long as they are few: pydantic lists all or none, at some kilobytes each."""
    if e.error_count() > MAX_FAULTS:
        return f"{e.error_count()} faults, too many to list"
    return "; ".join(f"{'.'.join(map(str, f['loc'])) or 'event'}: {f['msg']}" for f in e.errors(include_url=False))


def _words(e: Exception, source: io.BytesIO, data: bytes) -> str:
    """fastavro's own words tell what it stumbled over, seldom why."""
    at_end = isinstance(e, EOFError | IndexError) and source.tell() == len(data)
    return "the bytes end too early" if at_end else f"{type(e).__name__}: {e}"
