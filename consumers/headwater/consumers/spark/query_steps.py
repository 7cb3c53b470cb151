"""The steps of a query over messages, as SQL: classify each message, check its bytes, extract the event.

The caller applies `from_avro`: Spark 3.5 has it only in the API, Spark 4 also in SQL.

A message must contain one event and nothing else, but `from_avro` stops at the end of the record and ignores what
follows. So each message is read with a marker behind it, 16 random bytes that nobody outside of this process knows, and
a schema that ends with a field for the marker. The marker is read only if the record ends where the message does. The
fields before it are read, though skipping would be faster: Avro 1.11 (Spark 3.5) skips a list by the size in the bytes,
and loops forever if that is negative.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any, Final

from headwater.consumers.spark.readable_columns import quote, times_out_of_range, to_columns, to_readable
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
        ids = {_bytes(_registry_header(number)): _text(s.fingerprint.hex()) for number, s in self.known.by_id}
        if not ids:
            return single
        return self._by_framing(single, _case(f"substring({value}, 1, {_REGISTRY_HEADER_BYTES})", ids))

    def of_these_schemas(self) -> str:
        """Return a condition on the messages: their header names one of the known schemas."""
        return " OR ".join(f"({self._written_with(s)})" for s in self.known.schemas)

    def readings(self, reader: WriterSchema | None = None) -> list[AvroRead]:
        """Return how messages are read, with the marker behind them: with `reader`, or each with its own schema."""
        marked = f"concat({self._content()}, {_MARK_BYTES})"
        return [
            AvroRead(f"({self._written_with(s)}) AND {self._fits()}", marked, with_mark(s), with_mark(reader or s))
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
            ELSE {_by_mark(f"{mark} = {_MARK_BYTES}")}
        END"""

    def problem_of_event(self, reader: WriterSchema) -> str:
        """Return the problem, including those that only the event's values show."""
        problem, malformed = self.problem(f"{EVENT_COLUMN}.{MARK}"), _text(Problem.MALFORMED)
        return f"coalesce({problem}, if({_are_times_sound(reader)}, NULL, {malformed}))"

    def event(self, reader: WriterSchema, *, raw: bool) -> str:
        """Return the event with its current version, as the codec returns it; null if its marker doesn't match, or if
        it contains an invalid time. `raw` leaves the columns as Spark makes them, else they are readable."""
        present = to_columns if raw else to_readable
        event = present(reader, EVENT_COLUMN, fixed={"schema_version": str(reader.version)})
        return f"if({EVENT_COLUMN}.{MARK} = {_MARK_BYTES} AND {_are_times_sound(reader)}, {event}, NULL)"

    def _written_with(self, schema: WriterSchema) -> str:
        """Return a condition on the messages. Bytes are compared, since the fingerprint as text costs more."""
        headers = [MAGIC + schema.fingerprint, *(_registry_header(n) for n, s in self.known.by_id if s is schema)]
        return " OR ".join(f"startswith({self._value}, {_bytes(each)})" for each in headers)

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


def _are_times_sound(reader: WriterSchema) -> str:
    """Return a condition on an event, which is false and never null."""
    wrong = times_out_of_range(reader, EVENT_COLUMN)
    return f"NOT coalesce({' OR '.join(f'({each})' for each in wrong)}, false)" if wrong else "true"


def _registry_header(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def _bytes(data: bytes) -> str:
    return f"X'{data.hex().upper()}'"


def _text(value: str | Problem) -> str:
    return f"'{value.value if isinstance(value, Problem) else value}'"


MARK: Final = "headwater_end"
_FIELD: Final[dict[str, Any]] = {"name": MARK, "type": {"type": "fixed", "name": "HeadwaterEnd", "size": 16}}

_MARK_BYTES: Final = _bytes(secrets.token_bytes(_FIELD["type"]["size"]))
"""SQL for the marker behind a message's bytes. It is the same for all queries, so that equal ones are equal plans."""


def with_mark(schema: WriterSchema) -> str:
    """Return an event's schema with the marker field at its end."""
    content = json.loads(schema.text)
    if any(field["name"] == MARK for field in content["fields"]):
        raise ConfigurationError(f"the schema of {schema.kind} has a field {MARK}, which is the name of the mark")
    return json.dumps({**content, "fields": [*content["fields"], _FIELD]})
