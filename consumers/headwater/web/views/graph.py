"""The graph around a table or a column. It begins with one step each way; more is shown on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from headwater.cli.flags import moment
from headwater.lineage.questions.columns import downstream_columns, upstream_columns
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.questions.names import find
from headwater.lineage.questions.tables import TableEdge, downstream_tables, tables_with_neighbours, upstream_tables
from headwater.lineage.rendering.html.drawing import Box
from headwater.lineage.rendering.html.svg import BoxLinks
from headwater.lineage.store import Store
from headwater.web.json_form import json_text
from headwater.web.pictures import draw, label_of, page_of
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Given, Parameter, View, WrongAddressError, address, command_line, value_of

_DEEPEST: Final = 20


@dataclass(frozen=True)
class _Request:
    """What an address asks for."""

    of: str
    up: int
    down: int
    as_of: datetime | None
    open_up: tuple[str, ...]
    open_down: tuple[str, ...]

    @classmethod
    def of_given(cls, given: Given) -> _Request:
        as_of = value_of(given, "as-of")
        return cls(
            value_of(given, "of") or "",
            _steps(given, "up"),
            _steps(given, "down"),
            None if as_of is None else _moment(as_of),
            tuple(given.get("open-up", ())),
            tuple(given.get("open-down", ())),
        )


class GraphView(View):
    """Tables and jobs around a table; with a column, columns."""

    path = "graph"
    title = "Graph"
    summary = "The tables and jobs around a table, or the columns around a column, as far as you open it."
    template = "graph.html"
    parameters = (
        Parameter("of", "TABLE, or TABLE.COLUMN for columns", is_required=True),
        Parameter("up", "how many steps to what it is made from", default="1"),
        Parameter("down", "how many steps to what is made from it", default="1"),
        Parameter("as-of", "as it was known at a time: 2026-03-01T12:00, or 7d ago"),
        Parameter("open-up", "a table of which one step more is shown", is_repeated=True),
        Parameter("open-down", "a table of which one step more is shown", is_repeated=True),
    )

    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:
        asked = _Request.of_given(given)
        with store.engine.connect() as connection:
            answers = list(_answers(connection, asked, limits))
            links_of = _opener(connection, answers, asked, given) if _is_of_tables(answers) else page_of
            subject = find(connection, asked.of)
        return {"answers": answers, "picture": draw(answers, "g", links_of=links_of), "table": subject.dataset}

    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        with store.engine.connect() as connection:
            return json_text({"answers": list(_answers(connection, _Request.of_given(given), limits))})

    def command(self, given: Given) -> str:
        asked = _Request.of_given(given)
        return command_line("lineage", "upstream", asked.of, depth=asked.up, as_of=value_of(given, "as-of"))


def _answers(connection: Connection, asked: _Request, limits: QuestionLimits) -> Iterator[LineageAnswer[Any]]:
    named = find(connection, asked.of)
    options: dict[str, Any] = {"as_of": asked.as_of, "at_most": limits.rows}
    if named.column is not None:
        yield upstream_columns(connection, named.dataset, named.column, depth=asked.up, **options)
        yield downstream_columns(connection, named.dataset, named.column, depth=asked.down, **options)
        return
    yield upstream_tables(connection, named.dataset, depth=asked.up, **options)
    yield downstream_tables(connection, named.dataset, depth=asked.down, **options)
    for table in asked.open_up:
        yield upstream_tables(connection, table, depth=1, **options)
    for table in asked.open_down:
        yield downstream_tables(connection, table, depth=1, **options)


def _is_of_tables(answers: list[LineageAnswer[Any]]) -> bool:
    return all(isinstance(row, TableEdge) for answer in answers for row in answer)


def _opener(
    connection: Connection, answers: list[LineageAnswer[Any]], asked: _Request, given: Given
) -> Callable[[Box], BoxLinks]:
    """Return what gives each table marks at the sides at which more is known than is shown."""
    shown: dict[str, Dataset] = {
        end.label: end for answer in answers for row in answer for end in (row.target, row.source)
    }
    has_source = {row.target.label for answer in answers for row in answer}
    has_target = {row.source.label for answer in answers for row in answer}
    above = tables_with_neighbours(connection, {each.key for each in shown.values()}, upward=True)
    below = tables_with_neighbours(connection, {each.key for each in shown.values()}, upward=False)

    def links_of(box: Box) -> BoxLinks:
        links, label = page_of(box), "" if box.is_job else label_of(box)
        if label not in shown:
            return links
        key = shown[label].key
        up = key in above and label not in has_source and label not in asked.open_up
        down = key in below and label not in has_target and label not in asked.open_down
        return links._replace(
            before=_opened(given, "open-up", label) if up else None,
            after=_opened(given, "open-down", label) if down else None,
        )

    return links_of


def _opened(given: Given, name: str, label: str) -> str:
    more: dict[str, Any] = {**given, name: (*given.get(name, ()), label)}
    return address("graph", **more)


def _steps(given: Given, name: str) -> int:
    text = value_of(given, name) or "1"
    if not text.isdecimal() or int(text) > _DEEPEST:
        raise WrongAddressError(f"{name} is a number of steps from 0 to {_DEEPEST}, not {text!r}")
    return int(text)


def _moment(text: str) -> datetime:
    try:
        return moment(text)
    except ValueError as e:
        raise WrongAddressError(f"as-of: {e}") from None


GRAPH: Final = GraphView()
