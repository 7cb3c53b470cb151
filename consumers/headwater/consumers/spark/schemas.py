"""The schemas with which a query reads events, and the headers that distinguish them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.errors import ConfigurationError, TerminalError
from headwater.events.avro import WriterSchema, current_schema, released
from headwater.events.avro.schema_cache import read_schema
from headwater.events.avro.upgrade import STEPS
from headwater.events.errors import DecodeError
from headwater.events.kinds import KINDS


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas that a query can use: those of the package, and those that the caller adds."""

    schemas: tuple[WriterSchema, ...]
    by_id: tuple[tuple[int, WriterSchema], ...] = ()
    """By their ids in a schema registry. Empty means that no message has such an id."""
    added: tuple[WriterSchema, ...] = ()
    """Schemas that the package doesn't contain. Spark may still refuse them."""

    def of_kind(self, kind: str) -> KnownSchemas:
        """Return the schemas of one kind."""
        return KnownSchemas(
            tuple(s for s in self.schemas if s.kind == kind),
            tuple((number, s) for number, s in self.by_id if s.kind == kind),
            tuple(s for s in self.added if s.kind == kind),
        )


def known_schemas(texts: Iterable[str] = (), texts_by_id: Mapping[int, str] | None = None) -> KnownSchemas:
    """Return the package's schemas and these. Raises a ConfigurationError for a text that is no event schema."""
    found = {s.fingerprint: s for s in released()}
    own = frozenset(found)
    for number, text in enumerate(texts):
        schema = checked_schema(text, f"schemas[{number}]")
        found.setdefault(schema.fingerprint, schema)
    by_id: list[tuple[int, WriterSchema]] = []
    for number, text in (texts_by_id or {}).items():
        schema = checked_schema(text, f"schemas_by_id[{number}]")
        by_id.append((_registry_id(number), found.setdefault(schema.fingerprint, schema)))
    return KnownSchemas(tuple(found.values()), tuple(by_id), tuple(s for f, s in found.items() if f not in own))


def reader_schema(kind: str, known: KnownSchemas, read_as: str | None = None) -> WriterSchema:
    """Return the schema that defines the columns: `read_as`, or the package's newest, or the newest added one."""
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


def _newest_added(kind: str, known: KnownSchemas) -> WriterSchema:
    added = [s for s in known.schemas if s.kind == kind]
    if not added:
        names = {s.kind for s in known.schemas}
        near = difflib.get_close_matches(kind, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "add its schema with schemas="
        raise ConfigurationError(f"no schema of the kind {kind!r} is known: {hint}")
    return max(added, key=lambda s: s.version)


def _refuse_steps(reader: WriterSchema, known: KnownSchemas) -> None:
    """Refuse versions that need more than Avro's schema resolution, which is all that Spark does: values would be
    silently wrong."""
    for writer in known.schemas:
        for kind, step in STEPS:
            if kind == reader.kind == writer.kind and writer.version <= step < reader.version:
                raise TerminalError(
                    f"version {step} of {kind} needs a step of headwater.events.avro.upgrade that Spark doesn't take: "
                    f"read the kind by headwater.events.avro.Codec, or leave its old schemas out"
                )


def checked_schema(text: str, where: str) -> WriterSchema:
    """Parse a schema from an untrusted text. `where` says in the error message where the text came from."""
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
