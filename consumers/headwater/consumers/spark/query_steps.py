"""The steps of a query over messages, as SQL: classify each message, check its bytes, extract the event.

Each step uses the columns of the previous one as few times as possible. Spark reads every message once, or two to three
times if it pushes a filter on the event down through the steps. The caller applies `from_avro`: Spark 3.5 has it only
in the API, Spark 4 also in SQL.

A message must contain one event and nothing else, but `from_avro` stops at the end of the record and ignores what
follows. So each message is read with a marker behind it, the MD5 of its bytes, and a schema that ends with a field for
the marker. The marker is read only if the record ends where the message does. The fields before it are read, though
skipping would be faster: Avro 1.11 (Spark 3.5) skips a list by the size in the bytes, and loops forever if that is
negative.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from headwater.consumers.spark.readable_columns import quote, times_out_of_range, to_readable
from headwater.consumers.spark.schemas import KnownSchemas
from headwater.errors import ConfigurationError
from headwater.events.avro import MAX_EVENT_BYTES, Problem, WriterSchema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC

UNKNOWN_SCHEMA: Final = "unknown schema"
"""The problem of a message with an unknown schema; all others are values of headwater.events.avro.Problem."""
MARK_COLUMN: Final = "__headwater_mark"
EVENT_COLUMN: Final = "__headwater_event"
_REGISTRY_HEADER_BYTES: Final = 5


@dataclass(frozen=True)
class AvroRead:
    """One use of from_avro: the bytes of an expression, read with these schemas, where the condition holds."""

    condition: str
    content: str
    writer: str
    reader: str

    @property
    def options(self) -> dict[str, str]:
        """Corrupt bytes give a struct of nulls instead of failing the query."""
        return {"mode": "PERMISSIVE", "avroSchema": self.reader}


@dataclass(frozen=True)
class QuerySteps:
    """The SQL of each step, for messages in the column `value`."""

    value: str
    known: KnownSchemas

    def header(self) -> dict[str, str]:
        """Return the columns that follow from the fingerprint."""
        schemas = self.known.schemas
        kinds = {_text(s.fingerprint.hex()): _text(s.kind) for s in schemas}
        versions = {_text(s.fingerprint.hex()): str(s.version) for s in schemas}
        return {"kind": _case("fingerprint", kinds), "schema_version": _case("fingerprint", versions)}

    def fingerprint(self) -> str:
        """Return the fingerprint of the message's schema in hexadecimal; null without one."""
        value = self._value
        single = (
            f"if(startswith({value}, {_bytes(MAGIC)}) AND octet_length({value}) >= {HEADER_BYTES}, "
            f"lower(hex(substring({value}, {len(MAGIC) + 1}, {HEADER_BYTES - len(MAGIC)}))), NULL)"
        )
        ids = {_bytes(b"\0" + number.to_bytes(4, "big")): _text(s.fingerprint.hex()) for number, s in self.known.by_id}
        if not ids:
            return single
        return self._by_framing(single, _case(f"substring({value}, 1, {_REGISTRY_HEADER_BYTES})", ids))

    def of_these_schemas(self) -> str:
        """Return a condition on the fingerprint: it is one of the known schemas."""
        return f"fingerprint IN ({', '.join(_text(s.fingerprint.hex()) for s in self.known.schemas)})"

    def readings(self, reader: WriterSchema | None = None) -> list[AvroRead]:
        """Return how messages are read, with the marker behind them: with `reader`, or each with its own schema."""
        marked = f"concat({self._content()}, {mark_of(self._value)})"
        return [
            AvroRead(f"{_written_with(s)} AND {self._fits()}", marked, with_mark(s), with_mark(reader or s))
            for s in self.known.schemas
        ]

    def problem(self, mark: str) -> str:
        """Return what is wrong with a message, from its header and the marker that was read."""
        value, size = self._value, f"octet_length({self._value})"
        return f"""CASE
            WHEN {value} IS NULL OR {size} = 0 THEN {_text(Problem.EMPTY)}
            WHEN NOT {self._fits()} THEN {_text(Problem.TOO_LARGE)}
            WHEN NOT ({self._framed()}) THEN {_text(Problem.UNKNOWN_FRAMING)}
            WHEN {size} < {self._header_bytes()} THEN {_text(Problem.MALFORMED)}
            WHEN kind IS NULL THEN {_text(UNKNOWN_SCHEMA)}
            ELSE {_by_mark(f"{mark} = {mark_of(value)}")}
        END"""

    def sound_event(self, reader: WriterSchema) -> str:
        """Return null instead of an event whose marker doesn't match or that contains an invalid time."""
        sound = [f"e.{MARK} = {mark_of(self._value)}", *(f"NOT ({c})" for c in times_out_of_range(reader, "e"))]
        return f"transform(array({EVENT_COLUMN}), e -> if({' AND '.join(sound)}, e, NULL))[0]"

    def problem_of_event(self) -> str:
        """Return the problem, including those that only the event's values show."""
        return f"CASE WHEN problem IS NULL AND {EVENT_COLUMN} IS NULL THEN {_text(Problem.MALFORMED)} ELSE problem END"

    def event(self, reader: WriterSchema) -> str:
        """Return the event with readable columns and its current version, as the codec returns it."""
        return to_readable(reader, EVENT_COLUMN, fixed={"schema_version": str(reader.version)})

    @property
    def _value(self) -> str:
        return quote(self.value)

    def _fits(self) -> str:
        return f"octet_length({self._value}) <= {MAX_EVENT_BYTES}"

    def _framed(self) -> str:
        return " OR ".join(f"startswith({self._value}, {prefix})" for prefix in self._prefixes())

    def _prefixes(self) -> list[str]:
        return [_bytes(MAGIC), _bytes(b"\0")] if self.known.by_id else [_bytes(MAGIC)]

    def _by_framing(self, single: str, registry: str) -> str:
        """Leave registry ids out of the query if there are none."""
        return f"if(startswith({self._value}, X'00'), {registry}, {single})" if self.known.by_id else single

    def _header_bytes(self) -> str:
        return self._by_framing(str(HEADER_BYTES), str(_REGISTRY_HEADER_BYTES))

    def _content(self) -> str:
        start = self._by_framing(str(HEADER_BYTES + 1), str(_REGISTRY_HEADER_BYTES + 1))
        return f"substring({self._value}, {start})"


def _by_mark(whole: str) -> str:
    """Use the condition only once: Spark evaluates it again in each place of a pushed-down filter."""
    words = f"map('false', {_text(Problem.TRAILING_BYTES)}, 'unread', {_text(Problem.MALFORMED)})"
    return f"element_at({words}, coalesce(CAST({whole} AS STRING), 'unread'))"


def _case(what: str, values: dict[str, str]) -> str:
    branches = " ".join(f"WHEN {key} THEN {value}" for key, value in values.items())
    return f"CASE {what} {branches} END"


def _written_with(schema: WriterSchema) -> str:
    return f"fingerprint = {_text(schema.fingerprint.hex())}"


def _bytes(data: bytes) -> str:
    return f"X'{data.hex().upper()}'"


def _text(value: str | Problem) -> str:
    return f"'{value.value if isinstance(value, Problem) else value}'"


MARK: Final = "headwater_end"
_FIELD: Final = {"name": MARK, "type": {"type": "fixed", "name": "HeadwaterEnd", "size": 16}}


def mark_of(value: str) -> str:
    """Return SQL for the marker behind a message's bytes."""
    return f"unhex(md5({value}))"


def with_mark(schema: WriterSchema) -> str:
    """Return an event's schema with the marker field at its end."""
    content = json.loads(schema.text)
    if any(field["name"] == MARK for field in content["fields"]):
        raise ConfigurationError(f"the schema of {schema.kind} has a field {MARK}, which is the name of the mark")
    return json.dumps({**content, "fields": [*content["fields"], _FIELD]})
