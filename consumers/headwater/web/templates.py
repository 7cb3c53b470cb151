"""Fills the templates: what values look like on a page, and what names lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from headwater.cli.output import shown
from headwater.lineage.rendering.tree import limit_text
from headwater.terminal import printable_lines
from headwater.web.views import Given, View
from headwater.web.views.base import LONGEST_NAME, address

_PAGES: Final = Path(str(files("headwater.web"))) / "pages"
_LONGEST: Final = 400
"""How many characters of a name or text are shown; all of it is in its tooltip."""


class Templates:
    """Makes pages."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_PAGES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(address=address, MENU=MENU, TABLE_PAGES=TABLE_PAGES)
        self._environment.filters.update(cell=cell, shown=shown_shortly, moment=moment, limit_text=limit_text, lines=printable_lines)
        self._environment.filters.update(
            row_of=lambda each: (each.table, each.place, each.first, each.last),
            job_row=lambda each: (each.job, each.parent, each.last),
        )

    def page(self, view: View, given: Given, content: Mapping[str, Any], query: str) -> str:
        """Return a page."""
        more = {"view": view, "given": given, "command": view.command(given), "query": query}
        return self._environment.get_template(view.template).render({**more, **content})

    def error(self, status: int, message: str) -> str:
        return self._environment.get_template("error.html").render(status=status, message=message)

    def login(self, message: str, next_path: str, *, has_token: bool, has_openid: bool) -> str:
        given = {"message": message, "next": next_path, "has_token": has_token, "has_openid": has_openid}
        return self._environment.get_template("login.html").render(given)


MENU: Final = (
    ("table/list", "Tables"),
    ("job/list", "Jobs"),
    ("job/runs", "Runs"),
    ("gap/list", "Gaps"),
    ("correct/list", "Corrections"),
    ("version/list", "Data versions"),
)
"""Pages that need nothing to be named."""
TABLE_PAGES: Final = (
    ("table", "name", "Overview"),
    ("graph", "of", "Graph"),
    ("table/snapshots", "table", "Snapshots"),
    ("table/late", "table", "Freshness"),
    ("table/uses", "table", "Uses"),
    ("table/history", "table", "History"),
    ("version/show", "table", "Contains"),
    ("table/names", "table", "Names"),
)
"""Pages of one table, each with the parameter that names it."""

_LINKS: Final[Mapping[str, Callable[[str], str]]] = {
    "table": lambda name: address("table", name=name),
    "job": lambda name: address("job/runs", job=name),
    "part of": lambda name: address("job/runs", job=name),
    "run": lambda name: address("job/runs", run=name),
    "last run": lambda name: address("job/runs", run=name),
    "correction": lambda name: address("correct/show", correction=name),
    "group": lambda name: address("version/list", group=name),
}
"""Where a value leads to, by its column."""


def cell(value: object, column: str = "") -> Markup:
    """Return a value of a table: a link, a time that the reader's zone is applied to, a text."""
    if isinstance(value, datetime):
        return moment(value)
    text = str(value).strip() if column in _LINKS and isinstance(value, (str, UUID)) else ""
    if 0 < len(text) <= LONGEST_NAME:
        return Markup('<a href="{}">{}</a>').format(_LINKS[column](text), shown_shortly(str(value)))
    return shown_shortly(value)


def shown_shortly(value: object) -> Markup:
    """Return a value as people read it. A text that is too long is cut, and a name of others gets no direction."""
    text = shown(value)
    if len(text) > _LONGEST:
        return Markup('<bdi title="{}">{}…</bdi>').format(text[: 20 * _LONGEST], text[:_LONGEST])
    return Markup("<bdi>{}</bdi>").format(text) if not text.isascii() else escape(text)


def moment(value: datetime | None) -> Markup:
    """Return a time, which the script shows in the reader's zone."""
    if value is None:
        return Markup("-")
    utc = value.astimezone(timezone.utc)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat().replace("+00:00", "Z"), f"{utc:%Y-%m-%d %H:%M:%S}Z"
    )
