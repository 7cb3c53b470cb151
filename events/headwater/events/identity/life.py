"""Which life of a table: what changes when it is dropped and made again, and never otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.text import required
from headwater.events.names import Life

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_MILLIS = re.compile(r"[0-9]{1,18}", re.ASCII)


def iceberg_life(table_uuid: str) -> Life:
    """`table.uuid()`."""
    if not _UUID.fullmatch(required(table_uuid, "an Iceberg table's uuid")):
        msg = "an Iceberg table's uuid isn't a UUID; take it from the table's metadata, not from its properties"
        raise IdentityError(msg)
    return UUID(table_uuid)


def delta_life(metadata_id: str) -> Life:
    """`metaData.id` of the log: a UUID by custom, any text by the protocol."""
    text = required(metadata_id, "a Delta table's metaData.id")
    return UUID(text) if _UUID.fullmatch(text) else text


def paimon_life(schema_0_millis: str | int) -> Life:
    """`timeMillis` of `schema/schema-0`: when the table was made. Later schemas don't count."""
    text = required(str(schema_0_millis), "the creation time of Paimon's schema-0")
    if not _MILLIS.fullmatch(text) or int(text) == 0:
        msg = "the creation time of Paimon's schema-0 isn't milliseconds since 1970; read timeMillis of schema/schema-0"
        raise IdentityError(msg)
    return str(int(text))


_TELLING: Final[Mapping[str, tuple[str, Callable[[str], Life]]]] = {
    "iceberg": ("table-uuid", iceberg_life),
    "delta": ("metadata.id", delta_life),
    "paimon": ("schema-0.timemillis", paimon_life),
}


def life_of(table_format: str, facts: Mapping[str, str], create_event: str | None = None) -> Life | None:
    """The life by what the format tells: `table-uuid` (Iceberg), `metaData.id` (Delta), `schema-0.timeMillis` (Paimon).

    Of other formats, and where the fact is missing, the id of the CreateTable event; without that the life isn't known.
    """
    told = {key.lower(): value for key, value in facts.items()}
    key, read = _TELLING.get(table_format.lower(), ("", None))
    if read is not None and told.get(key):
        return read(told[key])
    return required(create_event, "the id of the CreateTable event") if create_event is not None else None
