"""What the systems have in common: the scheme of a namespace, and names without our quotes."""

from __future__ import annotations

from typing import Final

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.jdbc.dialects import DIALECTS
from headwater.events.identity.text import split
from headwater.events.names import DatasetId

DATABASES: Final = frozenset({dialect.name for dialect in DIALECTS.values()})
_NAMED_BY_PARTS: Final = DATABASES | {"hive", "unitycatalog"}


def scheme_of(dataset: DatasetId) -> str:
    return dataset.namespace.partition(":")[0]


def plain_name(dataset: DatasetId) -> str:
    """The name as others write it: dots between the parts, and no quotes around a part that holds one."""
    if scheme_of(dataset) not in _NAMED_BY_PARTS:
        return dataset.name
    try:
        return ".".join(split(dataset.name))
    except IdentityError:
        return dataset.name
