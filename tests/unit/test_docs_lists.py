"""What pages list as being there is what is there: a thing that comes or goes without its line turns this red."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from headwater import plugins
from headwater.lineage.sql import METADATA
from headwater.lineage.store.schema_version import VERSION

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = {"files": "Statements", "jdbc": "Databases", "kafka": "Kafka"}
"""Formats whose limits stand below another word than their own name."""


def ours(group: str) -> set[str]:
    """The names of our own plug-ins of a group."""
    return set(plugins.OWN_PLUGINS[group])


def first_cells(page: str, heading: str) -> list[str]:
    """What stands in backticks in first cells of the tables below a heading."""
    _, _, section = f"\n{(DOCS / page).read_text()}".partition(f"\n{heading}\n")
    lines = section.partition("\n## ")[0].splitlines()
    rows = [line.split("|")[1] for line in lines if line.startswith("| ")]
    return [name for cell in rows for name in re.findall(r"`([a-z0-9_.:A-Z]+)`", cell)]


def test_the_page_on_the_store_says_of_each_table_what_it_is_for() -> None:
    listed = first_cells("sql-store-tables.md", "## All tables")
    assert len(listed) == len(set(listed))
    assert set(listed) == {*METADATA.tables, VERSION.name}


def test_forwarders_that_are_listed_are_those_that_are_there() -> None:
    assert set(first_cells("forwarders.md", "# Forwarders")) - {"package.module:Class"} == ours("headwater.forwarders")


@pytest.mark.parametrize("page", ["index.md", "../README.md"])
def test_each_forwarder_is_named_where_people_begin(page: str) -> None:
    words = (DOCS / page).read_text().lower()
    assert [name for name in ours("headwater.forwarders") if name not in words] == []


def test_listeners_have_a_section_in_the_reference_and_no_other_has() -> None:
    reference = (DOCS / "configuration.md").read_text()
    of_listeners = reference.partition("\n## Sections of listeners\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^### `(\w+)`$", of_listeners, re.MULTILINE)) == ours("headwater.listeners")


def headings(pages: Iterable[str]) -> set[str]:
    return {each for page in pages for each in re.findall(r"^##+ (.*)$", (DOCS / page).read_text(), re.MULTILINE)}


def test_each_format_has_its_limits_said() -> None:
    said = headings(("limits.md", "limits-table-formats.md", "limits-kafka-and-databases.md"))
    assert {name for name in ours("headwater.formats") if SECTIONS.get(name, name.capitalize()) not in said} == set()
