"""Views that Iceberg's own catalogs keep, as its extensions make and drop them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from headwater.events import CreateView, DropView, Event, Format
from headwater.events.catalog import ModificationEffect
from headwater.events.tables import View
from headwater.listeners.capture.catalog.named_tables import dataset_of_view, name_v2_table
from headwater.listeners.capture.catalog.views import view_of
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, KnownTable
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement


def _create_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named, query = name_v2_table(node, statement.plan, context), node.plan_of("query")
    if named is None or query is None:
        return
    lenient = bool(node.args.get("allowExisting"))
    known = context.find_known(named.name)
    if lenient and known is not None:
        return
    view = view_of(named, _as_spark_command(node), query, statement, context)
    yield CreateView(
        context=named.catalog.context,
        effect=ModificationEffect.UNKNOWN if lenient else ModificationEffect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_view(named, context),
        format=Format.VIEW,
        view=view,
        ignore_if_exists=lenient,
        replaced=bool(node.args.get("replace")) and known is not None,
    )
    context.remember(named.name, KnownTable(view))


def _as_spark_command(node: PlanNode) -> PlanNode:
    """With the arguments called as Spark's own command calls them."""
    aliases, comments = node.args.get("columnAliases") or [], node.args.get("columnComments") or []
    names = [{"_1": name, "_2": comment} for name, comment in zip(aliases, comments, strict=False)]
    fields = {"originalText": node.args.get("queryText"), "userSpecifiedColumns": names}
    return replace(node, args={**node.args, **fields})


def _drop_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named = name_v2_table(node, statement.plan, context)
    if named is None:
        return
    lenient = bool(node.args.get("ifExists"))
    known = context.forget(named.name)
    yield DropView(
        context=named.catalog.context,
        effect=ModificationEffect.UNKNOWN if lenient and known is None else ModificationEffect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_view(named, context),
        format=Format.VIEW,
        view=known.table if known is not None and isinstance(known.table, View) else None,
        ignore_if_not_exists=lenient,
    )


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateIcebergView": CommandRule(catalog=_create_view),
    "DropIcebergView": CommandRule(catalog=_drop_view),
    "ShowIcebergViews": CommandRule(ignored="it only lists views"),
}
