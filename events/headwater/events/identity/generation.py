"""Finds the generation of a table: the id that changes when the table is dropped and made again, and only then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.text import required
from headwater.events.names import Generation

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_MILLIS = re.compile(r"[0-9]{1,18}", re.ASCII)


def iceberg_generation(table_uuid: str) -> Generation:
    """`table.uuid()`."""
    if not _UUID.fullmatch(required(table_uuid, "an Iceberg table's uuid")):
        msg = "an Iceberg table's uuid isn't a UUID; take it from the table's metadata, not from its properties"
        raise IdentityError(msg)
    return UUID(table_uuid)


def delta_generation(metadata_id: str) -> Generation:
    """`metaData.id` of the log: a UUID by custom, any text by the protocol."""
    text = required(metadata_id, "a Delta table's metaData.id")
    return UUID(text) if _UUID.fullmatch(text) else text


def paimon_generation(schema_0_millis: str | int) -> Generation:
    """`timeMillis` of `schema/schema-0`: when the table was made. Later schemas don't count."""
    text = required(str(schema_0_millis), "the creation time of Paimon's schema-0")
    if not _MILLIS.fullmatch(text) or int(text) == 0:
        msg = "the creation time of Paimon's schema-0 isn't milliseconds since 1970; read timeMillis of schema/schema-0"
        raise IdentityError(msg)
    return str(int(text))


_GENERATION_PROPERTIES: Final[Mapping[str, tuple[str, Callable[[str], Generation]]]] = {
    "iceberg": ("table-uuid", iceberg_generation),
    "delta": ("metadata.id", delta_generation),
    "paimon": ("schema-0.timemillis", paimon_generation),
}


def generation_of(table_format: str, facts: Mapping[str, str], create_event: str | None = None) -> Generation | None:
    """Return the generation from the format's own facts, or None if nothing tells it.

    Iceberg tells `table-uuid`, Delta `metaData.id`, Paimon `schema-0.timeMillis`. For other formats, and where the
    fact is missing, the id of the CreateTable event stands for it.
    """
    values = {key.lower(): value for key, value in facts.items()}
    key, read = _GENERATION_PROPERTIES.get(table_format.lower(), ("", None))
    if read is not None and values.get(key):
        return read(values[key])
    return required(create_event, "the id of the CreateTable event") if create_event is not None else None
