"""Which table, view or database a command of DDL is about, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import DatasetId, TableName
from headwater.events.catalog import DatabaseName
from headwater.events.identity import IdentityError, Unknown, symlink_of
from headwater.events.identity.text import joined
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.relations import v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_TEMPORARY: Final = "global_temp"
_RESOLVED: Final = frozenset({"ResolvedTable", "ResolvedIdentifier", "ResolvedPersistentView"})
_CHILDREN: Final = ("table", "child", "name", "ident")


@dataclass(frozen=True)
class NamedTable:
    """A table or view by the name that it has in a catalog."""

    catalog: SessionNamedCatalog
    name: TableName
    resolved: PlanNode | None = None
    """The node that tells it, in v2 commands."""

    @property
    def in_session_catalog(self) -> bool:
        return self.catalog.name == SESSION_CATALOG

    def renamed(self, parts: Sequence[str]) -> NamedTable:
        """Another name in the same catalog, which may be spelled out in front."""
        own = list(parts)
        if len(own) > 2 and own[0] == self.catalog.name:  # a namespace and a name are always left
            own = own[1:]
        name = TableName(catalog=self.catalog.name, database=joined(own[:-1]), table=own[-1])
        return NamedTable(self.catalog, name)


def name_v1_table(fields: Mapping[str, Any], context: CaptureContext, database: str = "") -> NamedTable:
    """Of a TableIdentifier or a CatalogTable. `database` is for one that doesn't say its own."""
    catalog = context.session_catalog()
    name = fields["name"] if "name" in fields else fields["table"]
    table = TableName(catalog=SESSION_CATALOG, database=fields.get("database") or database, table=name)
    return NamedTable(catalog, table)


def name_v2_table(node: PlanNode, plan: Plan, context: CaptureContext) -> NamedTable | None:
    """Of what the command's table or name was resolved to; None where it wasn't."""
    for argument in _CHILDREN:
        index = node.plan_of(argument)
        resolved = None if index is None else plan.nodes[index]
        if resolved is None or resolved.name not in _RESOLVED or "catalog" not in resolved.args:
            continue
        catalog = context.catalog(resolved.args["catalog"])
        return NamedTable(catalog, v2_name(catalog.name, resolved.args["identifier"]), resolved)
    return None


def database_of(node: PlanNode, plan: Plan, context: CaptureContext) -> tuple[SessionNamedCatalog, DatabaseName] | None:
    """Of the namespace that a command is about: resolved, or a name in Spark's own catalog."""
    for argument in ("name", "namespace", "child"):
        index = node.plan_of(argument)
        resolved = None if index is None else plan.nodes[index]
        if resolved is not None and resolved.name == "ResolvedNamespace" and resolved.args.get("namespace"):
            catalog = context.catalog(resolved.args["catalog"])
            return catalog, DatabaseName(catalog=catalog.name, database=joined(resolved.args["namespace"]))
    database = node.args.get("databaseName")
    if not isinstance(database, str):
        return None
    return context.session_catalog(), DatabaseName(catalog=SESSION_CATALOG, database=database)


def is_temporary(fields: Mapping[str, Any]) -> bool:
    """Whether a view's TableIdentifier is one of the session's: those are in no database of a catalog."""
    return not fields.get("database") or fields["database"].lower() == _TEMPORARY


def dataset_at(named: NamedTable, location: str | None, context: CaptureContext) -> DatasetId | None:
    """The dataset; None where only a name is known that the location, once it is, would take the place of."""
    catalog = named.catalog.catalog
    if location is None and (isinstance(catalog, Unknown) or (catalog.layout is None and not catalog.jdbc)):
        return None
    return context.dataset(named.catalog, named.name, location)


def dataset_of_view(named: NamedTable, context: CaptureContext) -> DatasetId | None:
    """The dataset that a view is. It has no place: it is its catalog's name for it."""
    catalog = named.catalog.catalog
    if isinstance(catalog, Unknown):
        return None
    try:
        return context.dataset(named.catalog, named.name, None) if catalog.jdbc else symlink_of(catalog, named.name)
    except IdentityError:
        return None
