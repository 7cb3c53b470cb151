"""Tables of Spark's own catalog whose rows another system has: those USING jdbc, say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.events import DatasetId, Table
from headwater.events.identity import IdentityError
from headwater.listeners.capture.catalog.named_tables import NamedTable, dataset_at
from headwater.listeners.capture.context import CaptureContext, ExternalRows, KnownFormats
from headwater.listeners.capture.plan.tree import PlanNode

OPTION_PREFIX: Final = "option."
"""As Spark puts options among the properties of a v1 table."""


def external_options(node: PlanNode, system: str, formats: KnownFormats) -> Mapping[str, str] | None:
    """Of the table that a v1 command makes from a query, where its rows go into that system."""
    table = node.args.get("table")
    if node.name != "CreateDataSourceTableAsSelectCommand" or not isinstance(table, Mapping):
        return None
    owner = formats.of_provider(table.get("provider"))
    if owner is None or owner.external_rows is None or owner.name != system:
        return None
    options: Mapping[str, str] = table.get("storage", {}).get("options", {})
    return options


def dataset_of_table(named: NamedTable, table: Table | None, context: CaptureContext) -> DatasetId | None:
    """The dataset that a table is, by its description: where its location is, or another system that has its rows, if
    its options name one dataset there."""
    rows = _rows_of(table.provider, context.formats) if table is not None and named.in_session_catalog else None
    if table is None or rows is None:
        return dataset_at(named, table.location if table else None, context)
    options = {
        k.removeprefix(OPTION_PREFIX): text for k, text in table.properties.items() if k.startswith(OPTION_PREFIX)
    }
    try:
        return rows.dataset(options, context.environment)
    except IdentityError:
        return None


def reported_options(provider: str | None, options: Mapping[str, str], formats: KnownFormats) -> Mapping[str, str]:
    """Those of a table's options that may be recorded."""
    rows = _rows_of(provider, formats)
    return options if rows is None else rows.reported_options(options)


def _rows_of(provider: str | None, formats: KnownFormats) -> ExternalRows | None:
    owner = formats.of_provider(provider)
    return None if owner is None else owner.external_rows
