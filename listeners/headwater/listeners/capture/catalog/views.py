"""Views: what they read, and which of its columns become which of theirs. Temporary ones are the session's business."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headwater.events import AlterView, ColumnLineage, CreateView, DropView, Effect, Event, Format, View, ViewSource
from headwater.events.base import Texts
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.batch.shapes import describe
from headwater.listeners.capture.catalog.evidence import EFFECTS, during, happened, looked_up
from headwater.listeners.capture.catalog.gone import dropped
from headwater.listeners.capture.catalog.places import Named, first_kind, is_temporary, second_kind
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.columns import Lineage, Origin, lineage_of
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import KnownTable, Scene
from headwater.listeners.capture.statements import Statement

_SPARKS: Final = "view."
"""Properties in which Spark keeps how a view is to be read: the names of its columns, the session's settings."""


def _created(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    told: Mapping[str, Any] = node.args["name"]
    query = node.plan_of("plan")
    if "Persisted" not in str(node.args.get("viewType")) or query is None:
        return
    named = first_kind(told, scene)
    if_not_exists = bool(node.args.get("allowExisting"))
    made = _is_made(named, statement) if if_not_exists else True
    if made is False:
        return
    view = view_of(named, node, query, statement, scene)
    known = scene.known(named.name)
    yield CreateView(
        context=named.catalog.context,
        effect=EFFECTS[made],
        sql=statement.sql,
        identifier=named.name,
        format=Format.VIEW,
        view=view,
        ignore_if_exists=if_not_exists,
        replaced=bool(node.args.get("replace")) and (known is not None or _did(named, "DropTableEvent", statement)),
    )
    if made:
        scene.remember(named.name, KnownTable(view))


def _is_made(named: Named, statement: Statement) -> bool | None:
    told = happened(statement, named.catalog, "CreateTableEvent", named.name.database, named.name.table)
    after = _after(named, statement)
    return during(statement, after.get("created")) if told is None and after is not None else told


def _did(named: Named, event: str, statement: Statement) -> bool:
    return happened(statement, named.catalog, event, named.name.database, named.name.table) is True


def view_of(named: Named, node: Node, query: int, statement: Statement, scene: Scene) -> View:
    """Its text and its lineage by the command, its columns as the catalog has them."""
    plan = statement.plan
    after = _after(named, statement)
    told = [(each["_1"], each.get("_2")) for each in node.args.get("userSpecifiedColumns", ())]
    columns = columns_of(plan, plan.nodes[query].output)
    if told:
        columns = tuple(
            c.model_copy(update={"name": n, "comment": text or c.comment})
            for c, (n, text) in zip(columns, told, strict=True)
        )
    if after is not None and "schemaText" in after:
        kept = columns_from_schema_json(after["schemaText"])
        columns = kept if [c.name for c in kept] == [c.name for c in columns] else columns
    sources, edges = _lineage(plan, query, [column.name for column in columns], scene)
    return View(
        columns=columns,
        sql=node.args.get("originalText"),
        sources=sources,
        lineage=edges,
        properties=Texts(node.args.get("properties") or {}),
        comment=node.args.get("comment"),
        owner=(after or {}).get("owner") or None,
    )


def _lineage(
    plan: Plan, query: int, names: list[str], scene: Scene
) -> tuple[tuple[ViewSource, ...], tuple[ColumnLineage, ...]]:
    lineage = lineage_of(plan, query)
    sources: dict[ViewSource, int] = {}
    places: dict[int, dict[int, None]] = {}
    for leaf in lineage.leaves:
        described, _ = describe(plan.nodes[leaf], plan, scene)
        for each in (described, *described.also):
            if each.source.dataset is None and each.source.table is None:
                continue  # rows that are no table's
            source = ViewSource(dataset=each.source.dataset, table=each.source.table)
            places.setdefault(leaf, {})[sources.setdefault(source, len(sources))] = None
    edges = _edges(lineage, plan.nodes[query].output, names, places)
    return tuple(sources), tuple(dict.fromkeys(edges))


def _edges(
    lineage: Lineage, output: tuple[int, ...], names: list[str], places: Mapping[int, Iterable[int]]
) -> Iterator[ColumnLineage]:
    for name, attribute in zip(names, output, strict=True):
        for origin in lineage.columns.get(attribute, ()):
            yield from (_edge(origin, place, (name,)) for place in places.get(origin.leaf, ()))
    for origin in lineage.indirect:
        yield from (_edge(origin, place, None) for place in places.get(origin.leaf, ()))


def _edge(origin: Origin, source: int, target: tuple[str, ...] | None) -> ColumnLineage:
    return ColumnLineage(
        output=0,
        input=source,
        source=origin.path,
        target=target,
        derivation=origin.derivation,
        expression=origin.expression,
    )


def _after(named: Named, statement: Statement) -> Mapping[str, Any] | None:
    """The view as it was kept when the statement had ended."""
    for told in looked_up(statement).get("tables", ()):
        key = ((told.get("database") or "").lower(), str(told.get("name", "")).lower())
        if key == (named.name.database.lower(), named.name.table.lower()) and told.get("type") == "VIEW":
            return dict(told)
    return None


def _kept(named: Named, statement: Statement, before: View | None) -> View | None:
    """The view after a command that leaves its query alone."""
    after = _after(named, statement)
    if after is None:
        return None
    properties = {k: v for k, v in after.get("properties", {}).items() if not k.startswith(_SPARKS)}
    told = View(
        columns=columns_from_schema_json(after["schemaText"]),
        sql=after.get("viewText"),
        properties=Texts(properties),
        comment=after.get("comment"),
        owner=after.get("owner") or None,
    )
    if before is None or before.sql != told.sql:
        return told
    return told.model_copy(update={"sources": before.sources, "lineage": before.lineage, "columns": before.columns})


def _queried_anew(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """ALTER VIEW … AS."""
    query = node.plan_of("query")
    if is_temporary(node.args["name"]) or query is None:
        return
    named = first_kind(node.args["name"], scene)
    before, after = _known(named, scene), _after(named, statement)
    new = view_of(named, node, query, statement, scene)
    kept = _kept(named, statement, None) if after is not None else before
    if kept is not None:
        new = new.model_copy(update={"properties": kept.properties, "comment": kept.comment, "owner": kept.owner})
    yield _altered(named, statement, before, new)
    scene.remember(named.name, KnownTable(new))


def with_properties(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """ALTER VIEW … SET or UNSET TBLPROPERTIES, and of its schema binding."""
    told: Mapping[str, Any] = node.args.get("tableName") or node.args["name"]
    if is_temporary(told):
        return
    named = first_kind(told, scene)
    before = _known(named, scene)
    new = _kept(named, statement, before)
    yield _altered(named, statement, before, new)
    _remember(named, new, scene)


def renamed(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    if is_temporary(node.args["oldName"]):
        return
    named = first_kind(node.args["oldName"], scene)
    new_name = first_kind(node.args["newName"], scene, named.name.database)
    before = _known(named, scene)
    new = _kept(new_name, statement, before) or before
    scene.forget(named.name)
    yield _altered(named, statement, before, new).model_copy(update={"renamed_to": new_name.name})
    _remember(new_name, new, scene)


def _altered(named: Named, statement: Statement, before: View | None, new: View | None) -> AlterView:
    return AlterView(
        context=named.catalog.context,
        effect=Effect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        format=Format.VIEW,
        view=before,
        new_view=new,
    )


def _remember(named: Named, view: View | None, scene: Scene) -> None:
    if view is None:
        scene.forget(named.name)
    else:
        scene.remember(named.name, KnownTable(view))


def _known(named: Named, scene: Scene) -> View | None:
    known = scene.known(named.name)
    return known.table if known is not None and isinstance(known.table, View) else None


def dropped_by_name(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """DropTableCommand of a view."""
    if not is_temporary(node.args["tableName"]):
        yield from _dropped(first_kind(node.args["tableName"], scene), node, statement, scene)


def _dropped_second(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    named = second_kind(node, statement.plan, scene)
    if named is not None:
        yield from _dropped(named, node, statement, scene)


def _dropped(named: Named, node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """As a table is dropped, told as a view."""
    before = _known(named, scene)
    for told in dropped(named, node, statement, scene):
        yield DropView(
            context=told.context,
            effect=told.effect,
            sql=told.sql,
            identifier=told.identifier,
            format=Format.VIEW,
            view=before,
            ignore_if_not_exists=told.ignore_if_not_exists,
        )


COMMANDS: Final[Mapping[str, Command]] = {
    "CreateViewCommand": Command(catalog=_created),
    "AlterViewAsCommand": Command(catalog=_queried_anew),
    "AlterViewSchemaBindingCommand": Command(catalog=with_properties),
    "DropView": Command(catalog=_dropped_second),
}
OF_VIEWS: Final[Mapping[str, Command]] = {
    "AlterTableSetPropertiesCommand": Command(catalog=with_properties),
    "AlterTableUnsetPropertiesCommand": Command(catalog=with_properties),
    "AlterTableRenameCommand": Command(catalog=renamed),
    "DropTableCommand": Command(catalog=dropped_by_name),
}
"""Commands of tables that are a view's where they say so."""
