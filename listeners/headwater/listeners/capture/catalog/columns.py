"""The columns that a statement asks a new table to have: listed, or those of the query that fills it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement


def requested_columns(node: PlanNode, statement: Statement) -> tuple[Column, ...]:
    plan = statement.plan
    if "query" in node.args:
        return columns_of_query(node, statement)
    if "tableSchema" in node.args:
        return columns_from_schema_json(plan.types[node.args["tableSchema"]["schema"]])
    return tuple(_defined_columns(node, statement))


def columns_of_query(node: PlanNode, statement: Statement) -> tuple[Column, ...]:
    """What a query's columns become: all of them may be null, whatever the query's are."""
    plan = statement.plan
    query = node.plan_of("query")
    columns = () if query is None else columns_of(plan, plan.nodes[query].output)
    names = node.args.get("outputColumnNames") or [column.name for column in columns]
    return tuple(c.model_copy(update={"name": n, "nullable": True}) for c, n in zip(columns, names, strict=True))


def _defined_columns(node: PlanNode, statement: Statement) -> Iterator[Column]:
    """As Spark 4 has them: an expression each."""
    plan = statement.plan
    for reference in node.expressions_of("columns"):
        args = plan.expressions[reference].details.get("args", {})
        default: Mapping[str, Any] = args.get("defaultValue") or {}
        text = plan.expressions[default["x"]].details.get("args", {}) if "x" in default else default
        column = Column(
            name=args["name"],
            type=plan.types[args["dataType"]["type"]],
            nullable=args.get("nullable", True),
            comment=args.get("comment"),
            default=text.get("originalSQL"),
            generated=args.get("generationExpression"),
        )
        yield column
