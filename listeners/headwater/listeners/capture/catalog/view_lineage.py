"""What the query of a view reads: its tables and views by their names, and which of their columns become which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headwater.events import ColumnLineage, TableName
from headwater.events.identity.text import joined
from headwater.events.tables import ViewSource
from headwater.listeners.capture.batch.write_lineage import describe_relations
from headwater.listeners.capture.catalog.named_tables import NamedTable, dataset_of_view, name_v1_table
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext
from headwater.listeners.capture.plan.columns import ColumnOrigin, QueryLineage, lineage_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode


def lineage_of_view(
    plan: Plan, query: int, names: list[str], context: CaptureContext
) -> tuple[tuple[ViewSource, ...], tuple[ColumnLineage, ...]]:
    """Return what the query reads, and its edges between columns, of which `names` are the view's.

    A view in the query is a source itself: whoever defines it anew doesn't make a new definition of this one."""
    views = _views_in(plan, query, context)
    lineage = lineage_of(plan, query, views)
    sources: dict[ViewSource, int] = {}
    places: dict[int, dict[int, None]] = {}
    for leaf in lineage.leaves:
        named = views.get(leaf)
        found = _sources(plan.nodes[leaf], plan, context) if named is None else [_view_source(named, context)]
        for source in found:
            places.setdefault(leaf, {})[sources.setdefault(source, len(sources))] = None
    edges = _edges(lineage, plan.nodes[query].output, names, places)
    return tuple(sources), tuple(dict.fromkeys(edges))


def _sources(leaf: PlanNode, plan: Plan, context: CaptureContext) -> Iterator[ViewSource]:
    """Yield the tables of a leaf, and nothing for rows that are no table's."""
    described, _ = describe_relations(leaf, plan, context)
    for relation in (described, *described.also):
        if relation.source.dataset is not None or relation.source.table is not None:
            yield ViewSource(dataset=relation.source.dataset, table=relation.source.table)


def _view_source(named: NamedTable, context: CaptureContext) -> ViewSource:
    return ViewSource(dataset=dataset_of_view(named, context), table=named.name)


def _views_in(plan: Plan, query: int, context: CaptureContext) -> dict[int, NamedTable]:
    """Return the nodes of a query that are a catalog's views, by their place."""
    found = {}
    for node in plan.nodes[: query + 1]:
        named = _session_view(node, context) or _catalog_view(node, plan, context)
        if named is not None:
            found[node.index] = named
    return found


def _session_view(node: PlanNode, context: CaptureContext) -> NamedTable | None:
    """Return which view of Spark's own catalog a node is. Of a temporary one the plan has no description."""
    fields = node.args.get("desc")
    if node.name != "View" or not isinstance(fields, Mapping) or not fields.get("database"):
        return None
    return name_v1_table(fields, context)


def _catalog_view(node: PlanNode, plan: Plan, context: CaptureContext) -> NamedTable | None:
    """Return which view of another catalog a node is: Spark puts its query below an alias that is its full name. Below
    the full name of a table is the table itself."""
    alias = node.args.get("identifier")
    if node.name != "SubqueryAlias" or not isinstance(alias, Mapping) or not alias.get("qualifier"):
        return None
    catalog = context.catalog_called(alias["qualifier"][0])
    if catalog is None or catalog.name == SESSION_CATALOG or len(alias["qualifier"]) < 2:
        return None
    named = NamedTable(
        catalog, TableName(catalog=catalog.name, database=joined(alias["qualifier"][1:]), table=alias["name"])
    )
    below = (describe_relations(leaf, plan, context)[0] for leaf in plan.subtree(node.index) if not leaf.inputs)
    return None if any(relation.source.table == named.name for relation in below) else named


def _edges(
    lineage: QueryLineage, output: tuple[int, ...], names: list[str], places: Mapping[int, Iterable[int]]
) -> Iterator[ColumnLineage]:
    for name, attribute in zip(names, output, strict=True):
        for origin in lineage.columns.get(attribute, ()):
            yield from (_edge(origin, place, (name,)) for place in places.get(origin.leaf, ()))
    for origin in lineage.indirect:
        yield from (_edge(origin, place, None) for place in places.get(origin.leaf, ()))


def _edge(origin: ColumnOrigin, source: int, target: tuple[str, ...] | None) -> ColumnLineage:
    return ColumnLineage(
        output=0,
        input=source,
        source=origin.path,
        target=target,
        derivation=origin.derivation,
        expression=origin.expression,
    )
