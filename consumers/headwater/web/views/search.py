"""The page that a reader begins with: search, and what is in the store."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field
from sqlalchemy import Connection

from headwater.lineage.questions.jobs import jobs, tables
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Content, Query, View, address, command_line, limits_of


class SearchQuery(Query):
    q: str | None = Field(None, description="what to find: a part of a name, or a snapshot's number", max_length=1000)


class Found(BaseModel):
    """A thing that was found."""

    kind: str
    name: str
    detail: str = ""
    last: datetime | None = None
    address: str


class SearchContent(Content):
    q: str | None
    found: list[Found]


def _ask(connection: Connection, query: SearchQuery, limits: QuestionLimits) -> SearchContent:
    known, run = tables(connection, at_most=limits.rows), jobs(connection, at_most=limits.rows)
    found = [
        Found(kind="table", name=each.table, detail=each.place, last=each.last, address=address("graph", of=each.table))
        for each in known
    ] + [
        Found(kind="job", name=each.job, detail=each.job_type or "", last=each.last, address=address("job", name=each.job))
        for each in run
        if each.job
    ]
    wanted = (query.q or "").lower()
    kept = [each for each in found if wanted in each.name.lower()]
    return SearchContent(q=query.q, found=kept, complete_until=known.complete_until, limits=limits_of(known, run))


SEARCH = View(
    "search",
    "Search",
    "Tables, columns, jobs, runs and snapshots by name or number.",
    SearchQuery,
    SearchContent,
    _ask,
    lambda _: command_line("table", "list"),
)
