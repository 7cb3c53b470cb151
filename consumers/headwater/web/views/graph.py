"""The graph around a table: one step up and down, more on demand."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field
from sqlalchemy import Connection

from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.rendering.html import graph
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Content, Query, View, command_line, limits_of


class GraphQuery(Query):
    of: str = Field(description="the table in the middle", max_length=70_000)
    up: int = Field(1, ge=0, le=20, description="how many steps upstream")
    down: int = Field(1, ge=0, le=20, description="how many steps downstream")
    as_of: datetime | None = Field(None, description="as it was known at a time")


class GraphContent(Content):
    of: str
    svg: str = Field(description="the picture", exclude=True)


def _ask(connection: Connection, query: GraphQuery, limits: QuestionLimits) -> GraphContent:
    up = upstream_tables(connection, query.of, depth=query.up, as_of=query.as_of, at_most=limits.rows)
    down = downstream_tables(connection, query.of, depth=query.down, as_of=query.as_of, at_most=limits.rows)
    picture = graph((up, down), "g")
    return GraphContent(of=query.of, svg=str(picture), complete_until=up.complete_until, limits=limits_of(up, down))


GRAPH = View(
    "graph",
    "Graph",
    "Tables and jobs around a table.",
    GraphQuery,
    GraphContent,
    _ask,
    lambda query: command_line("lineage", "upstream", query.of, depth=query.up, as_of=query.as_of),
    in_menu=False,
)
