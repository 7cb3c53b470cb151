"""Where a reader begins: a search, and without one what was heard of last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.jobs import jobs, tables
from headwater.lineage.questions.search import NAMED, FoundKind, FoundThing, search
from headwater.lineage.store import Store
from headwater.web.json_form import answer_fields, json_text, json_value
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Given, Parameter, View, address, command_line, value_of

_RECENT: Final = 30


class SearchView(View):
    """Tables, jobs, columns, runs and snapshots by a text."""

    path = "search"
    title = "Search"
    summary = "Tables, columns, jobs, runs and snapshots by a part of a name, a number or an id."
    template = "search.html"
    parameters = (
        Parameter("q", "what to find"),
        Parameter("names", "only tables and jobs, which is quick: 1"),
    )

    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:
        with store.engine.connect() as connection:
            text = value_of(given, "q")
            if text:
                found = self._found(connection, given, limits)
                return {"q": text, "answer": found, "found": [(each, address_of(each)) for each in found]}
            known, recent = tables(connection, at_most=limits.rows), jobs(connection, at_most=_RECENT)
            return {"q": None, "tables": known, "jobs": recent}

    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        with store.engine.connect() as connection:
            answer = self._found(connection, given, limits)
        rows = [{**json_value(each), "address": address_of(each)} for each in answer]
        return json_text({**answer_fields(answer), "rows": rows})

    def command(self, given: Given) -> str:
        text = value_of(given, "q")
        return command_line("search", text) if text else command_line("table", "list")

    def _found(self, connection: Any, given: Given, limits: QuestionLimits) -> Answer[FoundThing]:
        kinds: Sequence[FoundKind] = NAMED if value_of(given, "names") else tuple(FoundKind)
        return search(connection, value_of(given, "q") or "", kinds=kinds, at_most=min(50, limits.rows))


def address_of(found: FoundThing) -> str:
    """Return the page of something that was found."""
    if found.kind is FoundKind.JOB:
        return address("job/runs", job=found.name)
    if found.kind is FoundKind.RUN:
        return address("job/runs", run=found.name)
    if found.kind is FoundKind.COLUMN:
        return address("table", name=found.detail)
    if found.kind is FoundKind.SNAPSHOT:
        return address("table/snapshots", table=found.detail)
    return address("table", name=found.name)


SEARCH: Final = SearchView()
