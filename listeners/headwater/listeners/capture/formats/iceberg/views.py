"""Views that Iceberg's own catalogs keep, as its extensions make and drop them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from headwater.events import CreateView, DropView, Effect, Event, Format, View
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import KnownTable, Scene
from headwater.listeners.capture.statements import Statement


def _created(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    # these ask the formats what a query reads
    from headwater.listeners.capture.catalog.places import second_kind  # noqa: PLC0415
    from headwater.listeners.capture.catalog.views import view_of  # noqa: PLC0415

    named, query = second_kind(node, statement.plan, scene), node.plan_of("query")
    if named is None or query is None:
        return
    lenient = bool(node.args.get("allowExisting"))
    known = scene.known(named.name)
    if lenient and known is not None:
        return
    view = view_of(named, _as_sparks(node), query, statement, scene)
    yield CreateView(
        context=named.catalog.context,
        effect=Effect.UNKNOWN if lenient else Effect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        format=Format.VIEW,
        view=view,
        ignore_if_exists=lenient,
        replaced=bool(node.args.get("replace")) and known is not None,
    )
    scene.remember(named.name, KnownTable(view))


def _as_sparks(node: Node) -> Node:
    """With the arguments called as Spark's own command calls them."""
    aliases, comments = node.args.get("columnAliases") or [], node.args.get("columnComments") or []
    names = [{"_1": name, "_2": comment} for name, comment in zip(aliases, comments, strict=False)]
    told = {"originalText": node.args.get("queryText"), "userSpecifiedColumns": names}
    return replace(node, args={**node.args, **told})


def _dropped(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    from headwater.listeners.capture.catalog.places import second_kind  # noqa: PLC0415 - as above

    named = second_kind(node, statement.plan, scene)
    if named is None:
        return
    lenient = bool(node.args.get("ifExists"))
    known = scene.forget(named.name)
    yield DropView(
        context=named.catalog.context,
        effect=Effect.UNKNOWN if lenient and known is None else Effect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        format=Format.VIEW,
        view=known.table if known is not None and isinstance(known.table, View) else None,
        ignore_if_not_exists=lenient,
    )


COMMANDS: Final[Mapping[str, Command]] = {
    "CreateIcebergView": Command(catalog=_created),
    "DropIcebergView": Command(catalog=_dropped),
    "ShowIcebergViews": Command(ignored="it only lists views"),
}
