"""Which table, view or database a command of DDL is about, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import DatabaseName, DatasetId, Table, TableName
from headwater.events.identity import Unknown
from headwater.events.identity.text import joined
from headwater.listeners.capture.catalog.elsewhere import dataset_elsewhere
from headwater.listeners.capture.formats.relations import system_of, v2_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import SESSION_CATALOG, NamedCatalog, Scene

_TEMPORARY: Final = "global_temp"
_RESOLVED: Final = frozenset({"ResolvedTable", "ResolvedIdentifier", "ResolvedPersistentView"})
_CHILDREN: Final = ("table", "child", "name", "ident")


@dataclass(frozen=True)
class Named:
    """A table or view by the name that it has in a catalog."""

    catalog: NamedCatalog
    name: TableName
    resolved: Node | None = None
    """The node that tells it, in commands of the second kind."""

    @property
    def in_session_catalog(self) -> bool:
        return self.catalog.name == SESSION_CATALOG

    def renamed(self, parts: Sequence[str]) -> Named:
        """Another name in the same catalog, which may be spelled out in front."""
        own = list(parts)
        if len(own) > 2 and own[0] == self.catalog.name:  # a namespace and a name are always left
            own = own[1:]
        name = TableName(catalog=self.catalog.name, database=joined(own[:-1]) if own[1:] else "", table=own[-1])
        return Named(self.catalog, name)


def first_kind(told: Mapping[str, Any], scene: Scene, database: str = "") -> Named:
    """Of a TableIdentifier or a CatalogTable. `database` is for one that doesn't say its own."""
    catalog = scene.session_catalog()
    name = told["name"] if "name" in told else told["table"]
    table = TableName(catalog=SESSION_CATALOG, database=told.get("database") or database, table=name)
    return Named(catalog, table)


def second_kind(node: Node, plan: Plan, scene: Scene) -> Named | None:
    """Of what the command's table or name was resolved to; None where it wasn't."""
    for argument in _CHILDREN:
        index = node.plan_of(argument)
        resolved = None if index is None else plan.nodes[index]
        if resolved is None or resolved.name not in _RESOLVED or "catalog" not in resolved.args:
            continue
        catalog = scene.catalog(resolved.args["catalog"])
        return Named(catalog, v2_name(catalog.name, resolved.args["identifier"]), resolved)
    return None


def database_of(node: Node, plan: Plan, scene: Scene) -> tuple[NamedCatalog, DatabaseName] | None:
    """Of the namespace that a command is about: resolved, or a name in Spark's own catalog."""
    for argument in ("name", "namespace", "child"):
        index = node.plan_of(argument)
        resolved = None if index is None else plan.nodes[index]
        if resolved is not None and resolved.name == "ResolvedNamespace" and resolved.args.get("namespace"):
            catalog = scene.catalog(resolved.args["catalog"])
            return catalog, DatabaseName(catalog=catalog.name, database=joined(resolved.args["namespace"]))
    told = node.args.get("databaseName")
    if not isinstance(told, str):
        return None
    return scene.session_catalog(), DatabaseName(catalog=SESSION_CATALOG, database=told)


def is_temporary(told: Mapping[str, Any]) -> bool:
    """Whether a view's TableIdentifier is one of the session's: those are in no database of a catalog."""
    return not told.get("database") or told["database"].lower() == _TEMPORARY


def dataset_at(named: Named, location: str | None, scene: Scene) -> DatasetId | None:
    """The dataset; None where only a name is known that the location, once it is, would take the place of."""
    catalog = named.catalog.catalog
    if location is None and (isinstance(catalog, Unknown) or (catalog.layout is None and not catalog.jdbc)):
        return None
    return scene.dataset(named.catalog, named.name, location)


def dataset_of(named: Named, table: Table | None, scene: Scene) -> DatasetId | None:
    """The dataset that a table is, by its description: where its location is, or another system that has its rows."""
    if table is not None and named.in_session_catalog and system_of(table.provider) is not None:
        return dataset_elsewhere(table, scene.site)
    return dataset_at(named, table.location if table else None, scene)
