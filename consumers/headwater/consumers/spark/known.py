"""Which writers' schemas a query can read, and by which header their messages are told apart."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headwater.errors import ConfigurationError, TerminalError
from headwater.events.avro import WriterSchema, current_schema, released
from headwater.events.avro.book import fingerprint_of, read_schema
from headwater.events.avro.errors import DecodeError
from headwater.events.avro.schema import NAMESPACE
from headwater.events.avro.upgrade import STEPS
from headwater.events.kinds import KINDS

_MESSAGE: Final = {
    "type": "record",
    "name": "SchemaMessage",
    "namespace": NAMESPACE,
    "fields": [{"name": "schema", "type": "string"}],
}
SCHEMA_MESSAGE: Final = WriterSchema("SchemaMessage", 1, fingerprint_of(_MESSAGE), json.dumps(_MESSAGE))
"""What a message that tells a schema is written with."""


@dataclass(frozen=True)
class Known:
    """The schemas that a query can read by: those of the package, and what the caller adds."""

    schemas: tuple[WriterSchema, ...]
    by_id: tuple[tuple[int, WriterSchema], ...] = ()
    """By their ids in a schema registry; none means that no message is framed with an id."""
    added: tuple[WriterSchema, ...] = ()
    """Those that aren't the package's: nobody has tried yet whether Spark accepts them."""

    def of_kind(self, kind: str) -> Known:
        """Only what is needed to read one kind."""
        return Known(
            tuple(s for s in self.schemas if s.kind == kind),
            tuple((number, s) for number, s in self.by_id if s.kind == kind),
            tuple(s for s in self.added if s.kind == kind),
        )


def known_schemas(texts: Iterable[str] = (), texts_by_id: Mapping[int, str] | None = None) -> Known:
    """The package's schemas with these texts; a ConfigurationError names the text that is none."""
    found = {s.fingerprint: s for s in (*released(), SCHEMA_MESSAGE)}
    own = frozenset(found)
    for number, text in enumerate(texts):
        schema = checked_schema(text, f"schemas[{number}]")
        found.setdefault(schema.fingerprint, schema)
    by_id: list[tuple[int, WriterSchema]] = []
    for number, text in (texts_by_id or {}).items():
        schema = checked_schema(text, f"schemas_by_id[{number}]")
        by_id.append((_registry_id(number), found.setdefault(schema.fingerprint, schema)))
    return Known(tuple(found.values()), tuple(by_id), tuple(s for f, s in found.items() if f not in own))


def reader_schema(kind: str, known: Known, read_as: str | None = None) -> WriterSchema:
    """The schema that gives the columns: `read_as`, else the package's newest, else the newest of those added."""
    if read_as is not None:
        schema = checked_schema(read_as, "read_as")
        if schema.kind != kind:
            raise ConfigurationError(f"read_as is a schema of {schema.kind}, where {kind} is read")
    elif kind in KINDS:
        schema = current_schema(KINDS[kind])
    else:
        schema = _newest_added(kind, known)
    if not any(f["name"] == "schema_version" and f["type"] == "int" for f in schema.parsed["fields"]):
        raise ConfigurationError(f"the schema of {kind} has no int schema_version, as every event has: it is none")
    _refuse_steps(schema, known)
    return schema


def _newest_added(kind: str, known: Known) -> WriterSchema:
    added = [s for s in known.schemas if s.kind == kind and s is not SCHEMA_MESSAGE]
    if not added:
        names = {s.kind for s in known.schemas} - {SCHEMA_MESSAGE.kind}
        near = difflib.get_close_matches(kind, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "add its schema with schemas=, as schemas_in finds it"
        raise ConfigurationError(f"no schema of the kind {kind!r} is known: {hint}")
    return max(added, key=lambda s: s.version)


def _refuse_steps(reader: WriterSchema, known: Known) -> None:
    """Avro's own resolution is all that Spark does: where more is needed, its values would be silently wrong."""
    for writer in known.schemas:
        for kind, step in STEPS:
            if kind == reader.kind == writer.kind and writer.version <= step < reader.version:
                raise TerminalError(
                    f"version {step} of {kind} needs a step of headwater.events.avro.upgrade that Spark doesn't take: "
                    f"read the kind by headwater.events.avro.Codec, or leave its old schemas out"
                )


def checked_schema(text: str, where: str) -> WriterSchema:
    """The schema in a text that may come from anybody; a ConfigurationError that says `where` it stood."""
    try:
        schema = read_schema(text)
    except DecodeError as e:
        raise ConfigurationError(f"{where} is no schema of an event: {e}") from e
    if not 0 <= schema.version < 2**31:
        raise ConfigurationError(f"{where} says version {schema.version}: versions are from 0 to 2^31 - 1")
    return schema


def _registry_id(number: int) -> int:
    if not 0 <= number < 2**32:
        raise ConfigurationError(f"{number} is no id of a schema registry: those are from 0 to 2^32 - 1")
    return number
