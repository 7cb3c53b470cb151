"""The steps of a query over messages, as SQL: what each is, whether its bytes are sound, and the event in it.

Each step uses columns of the one before, and as few times as can be: Spark reads every message once, and twice or
thrice where it pushes a filter over the event down through the steps. `from_avro` itself is left to the
caller: Spark 3.5 has it as a function of its API only, Spark 4 in SQL too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headwater.consumers.spark.known import Known
from headwater.consumers.spark.marker import MARK, mark_of, with_mark
from headwater.consumers.spark.presentation import presented, quoted, times_out_of_range
from headwater.events.avro import MAX_EVENT_BYTES, Problem, WriterSchema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC

UNKNOWN_SCHEMA: Final = "unknown schema"
"""The problem of a message whose schema nobody has told yet; all others are those of headwater.events.avro.Problem."""
MARK_COLUMN: Final = "__headwater_mark"
EVENT_COLUMN: Final = "__headwater_event"
_REGISTRY_HEADER_BYTES: Final = 5


@dataclass(frozen=True)
class Reading:
    """One use of from_avro: the bytes that an expression gives, by these schemas, where the condition holds."""

    condition: str
    content: str
    writer: str
    reader: str

    @property
    def options(self) -> dict[str, str]:
        """Bad bytes give a struct of nulls, and don't end the query."""
        return {"mode": "PERMISSIVE", "avroSchema": self.reader}


@dataclass(frozen=True)
class Steps:
    """The SQL of each step, for messages in the column `value`."""

    value: str
    known: Known

    def header(self) -> dict[str, str]:
        """The columns that the header tells: these two by the fingerprint."""
        schemas = self.known.schemas
        kinds = {_text(s.fingerprint.hex()): _text(s.kind) for s in schemas}
        versions = {_text(s.fingerprint.hex()): str(s.version) for s in schemas}
        return {"kind": _case("fingerprint", kinds), "schema_version": _case("fingerprint", versions)}

    def fingerprint(self) -> str:
        """The fingerprint of the schema that the header names, in hexadecimal; null where it names none."""
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
        """A condition on the fingerprint: one of the known schemas."""
        return f"fingerprint IN ({', '.join(_text(s.fingerprint.hex()) for s in self.known.schemas)})"

    def readings(self, reader: WriterSchema | None = None) -> list[Reading]:
        """How messages are read, with the mark behind them: by `reader`, or each by its own schema."""
        marked = f"concat({self._content()}, {mark_of(self._value)})"
        return [
            Reading(f"{_written_with(s)} AND {self._fits()}", marked, with_mark(s), with_mark(reader or s))
            for s in self.known.schemas
        ]

    def problem(self, mark: str) -> str:
        """What is wrong with a message, as far as its header tells, and the mark that was read behind it."""
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
        """Null instead of what isn't sound: the mark isn't behind it, or it has a time that isn't one."""
        sound = [f"e.{MARK} = {mark_of(self._value)}", *(f"NOT ({c})" for c in times_out_of_range(reader, "e"))]
        return f"transform(array({EVENT_COLUMN}), e -> if({' AND '.join(sound)}, e, NULL))[0]"

    def problem_of_event(self) -> str:
        """As `problem`, with what only the values of an event show."""
        return f"CASE WHEN problem IS NULL AND {EVENT_COLUMN} IS NULL THEN {_text(Problem.MALFORMED)} ELSE problem END"

    def event(self, reader: WriterSchema) -> str:
        """The event with readable columns, and with the version that it has now, as the codec gives it."""
        return presented(reader, EVENT_COLUMN, fixed={"schema_version": str(reader.version)})

    @property
    def _value(self) -> str:
        return quoted(self.value)

    def _fits(self) -> str:
        return f"octet_length({self._value}) <= {MAX_EVENT_BYTES}"

    def _framed(self) -> str:
        return " OR ".join(f"startswith({self._value}, {prefix})" for prefix in self._prefixes())

    def _prefixes(self) -> list[str]:
        return [_bytes(MAGIC), _bytes(b"\0")] if self.known.by_id else [_bytes(MAGIC)]

    def _by_framing(self, single: str, registry: str) -> str:
        """Who reads no ids doesn't see in the query that there are such."""
        return f"if(startswith({self._value}, X'00'), {registry}, {single})" if self.known.by_id else single

    def _header_bytes(self) -> str:
        return self._by_framing(str(HEADER_BYTES), str(_REGISTRY_HEADER_BYTES))

    def _content(self) -> str:
        start = self._by_framing(str(HEADER_BYTES + 1), str(_REGISTRY_HEADER_BYTES + 1))
        return f"substring({self._value}, {start})"


def _by_mark(whole: str) -> str:
    """The condition stands here once: Spark evaluates it again wherever it stands in a filter that is pushed down."""
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
