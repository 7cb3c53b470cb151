"""What relations of all formats have in common in a plan: columns by their attributes, names as catalogs say them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from headwater.events import TableName
from headwater.events.identity import IdentityError
from headwater.events.identity.text import joined
from headwater.events.names import Generation
from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json, from_field
from headwater.listeners.capture.context import SESSION_CATALOG
from headwater.listeners.capture.plan.tree import Attribute, Plan, PlanError, PlanNode

_SHORT: Final = 100
"""Characters of a type and metadata up to which columns are kept."""
STREAMS: Final = frozenset({"StreamingRelation", "StreamingRelationV2"})
"""Leaves that are streams, of v1 of sources and of the second."""
RDDS: Final = frozenset({"LogicalRDD", "ExternalRDD"})
"""Leaves that are the rows of an RDD."""

__all__ = [
    "RDDS",
    "STREAMS",
    "columns_from_schema_json",
    "columns_of",
    "parse_generation",
    "parse_uuid",
    "stream_of",
    "stream_options",
    "table_name",
    "v2_name",
]


def columns_of(plan: Plan, attributes: Iterable[int]) -> tuple[Column, ...]:
    """The columns that attributes of a relation are, with comments and whatever else their metadata holds."""
    return tuple(_column(plan.attribute(number)) for number in attributes)


def _column(attribute: Attribute) -> Column:
    if attribute.type is None:
        raise PlanError(f"column {attribute.name} has no type: the plan isn't resolved")
    metadata = attribute.metadata or "{}"
    make = _short_column if len(attribute.type) + len(metadata) < _SHORT else _make_column
    return make(attribute.name, attribute.type, attribute.nullable, metadata)


def _make_column(name: str, kind: str, nullable: bool, metadata: str) -> Column:
    is_nullable = "true" if nullable else "false"
    text = json.dumps(name, ensure_ascii=False)
    return from_field(f'{{"name":{text},"type":{kind},"nullable":{is_nullable},"metadata":{metadata}}}')


_short_column = lru_cache(maxsize=4_096)(_make_column)
"""Tables have columns of the same name and type again and again; here they are one object."""


def table_name(table: Mapping[str, Any] | None) -> TableName | None:
    """Of a CatalogTable; none without one."""
    if table is None:
        return None
    return TableName(
        catalog=table.get("catalog") or SESSION_CATALOG, database=table.get("database") or "", table=table["name"]
    )


def v2_name(catalog: str, identifier: Mapping[str, Any]) -> TableName:
    """Of an Identifier of a V2 catalog."""
    return TableName(catalog=catalog, database=joined(identifier["namespace"]), table=identifier["name"])


def stream_of(node: PlanNode) -> Mapping[str, Any] | None:
    """The v1 source that is read as a stream; None where the node is no such stream."""
    return node.args.get("dataSource") if node.name == "StreamingRelation" else None


def stream_options(node: PlanNode) -> dict[str, str]:
    """What a query asked of the stream that it reads."""
    options = (stream_of(node) or {}).get("options") or node.args.get("extraOptions") or {}
    return {key.lower(): text for key, text in options.items() if isinstance(text, str)}


_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def parse_uuid(text: str) -> UUID | None:
    """None where it isn't written as a UUID."""
    return UUID(text) if _UUID.fullmatch(text) else None


def parse_generation(read: Callable[[str], Generation], text: str | None) -> Generation | None:
    """None where the format's own facts tell none, or none that can be read."""
    try:
        return read(text) if text else None
    except IdentityError:
        return None
