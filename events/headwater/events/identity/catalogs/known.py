"""What is known of a catalog, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import IdentityError, Unknown
from headwater.events.identity.hosts import Endpoint, endpoint, port_number
from headwater.events.identity.paths import dataset_of_path, location_of
from headwater.events.identity.text import required
from headwater.events.names import CatalogId


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a table lies in the warehouse, for catalogs that leave no choice."""

    database_suffix: str | None = None
    """A table is in a database, which is one directory whose name ends so; else each part of a namespace is one."""
    selector: str | None = None
    """What begins with this in a table's name chooses a view of the table."""

    def table_of(self, name: str) -> str:
        """The name of the table itself."""
        return (name.partition(self.selector)[0] or name) if self.selector else name


class Naming(Enum):
    """How a catalog's tables are called beside their location."""

    DATABASE_TABLE = "{database}.{table}"
    GLUE = "table/{database}/{table}"
    CATALOG_TABLE = "{catalog}.{database}.{table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """A physical catalog. `names` is the namespace of the names it gives."""

    id: CatalogId
    names: str
    naming: Naming = Naming.DATABASE_TABLE
    folds: bool = False
    """Names are stored in lower case."""
    layout: Layout | None = None
    warehouse: str | None = None
    """Where new tables go by default, as far as it is known. It distinguishes no catalog from another by itself."""
    jdbc: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Of a JDBC catalog: its url and options, as configured. Not for recording."""


CatalogReader: TypeAlias = Callable[[str, Mapping[str, str], Environment], Catalog | Unknown]
"""Of a catalog's name, its options in lower case and where it is used, what it points at."""


def physical(kind: str, location: str) -> CatalogId:
    return CatalogId(type=required(kind, "a catalog's type"), location=required(location, "a catalog's location"))


def warehouse_of(text: str | None, environment: Environment, what: str) -> str:
    """A warehouse in one spelling."""
    return location_of(dataset_of_path(required(text, what), environment))


def known_warehouse(text: str | None, environment: Environment) -> str | None:
    """The same; None where it isn't given, or is a name that the catalog's server has for it."""
    if not text or not (text.startswith("/") or ":/" in text):
        return None
    try:
        return warehouse_of(text, environment, "a warehouse").rstrip("/")
    except IdentityError:
        return None


def service_of(uri: str | None, environment: Environment, what: str) -> str:
    """A service's URL in one spelling: no user, no query, no default port, no trailing slash."""
    return location_of(dataset_of_path(required(uri, what), environment)).rstrip("/")


def metastore_of(uris: str, environment: Environment) -> str:
    """`thrift://a:9083,thrift://b` → `hive://a:9083`."""
    places = [_thrift(uri) for uri in uris.split(",") if uri.strip()]
    return f"hive://{environment.authority(places)}"


def _thrift(uri: str) -> Endpoint:
    _, _, authority = uri.strip().rpartition("://")
    place = endpoint(authority.rstrip("/"))
    return Endpoint(place.host, place.port or port_number(None, 9083))
