"""What pages list as being there is what is there: a thing that comes or goes without its line turns this red."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from headwater import plugins
from headwater.cli.app import leaf_parser
from headwater.cli.commands import CommandPath, Leaf, walk
from headwater.lineage.sql import METADATA
from headwater.lineage.store.creation import VERSION

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


def flags_of_commands() -> Mapping[CommandPath, frozenset[str]]:
    parsers = {path: leaf_parser(path, node.load()) for path, node in walk() if isinstance(node, Leaf)}
    return {
        path: frozenset(flag for option in parser.options() for flag in option.option_strings)
        for path, parser in parsers.items()
    }


def typed_flags(text: str, commands: Iterable[CommandPath]) -> Iterator[tuple[CommandPath, str]]:
    """Each flag that stands behind a command in a text, up to what is for another program."""
    known = set(commands) - {("run",)}  # behind it are flags of servers and scripts, too
    for line in re.findall(r"headwater ([a-z][^\n`|#]*)", text.replace("\\\n", " ")):
        words = line.partition(" -- ")[0].split()
        path = next((tuple(words[:length]) for length in (3, 2, 1) if tuple(words[:length]) in known), None)
        yield from ((path, word.partition("=")[0]) for word in words if path and re.match(r"--[a-z]", word))


def test_flags_that_pages_give_to_commands_are_flags_of_those() -> None:
    """It finds what `test_cli_tree` doesn't look at: examples and sentences of all pages."""
    flags = flags_of_commands()
    pages = {page: page.read_text() for page in (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))}
    found = [(page.name, *typed) for page, text in pages.items() for typed in typed_flags(text, flags)]
    assert len(found) > 100
    wrong = [(page, path, flag) for page, path, flag in found if flag not in flags[path] | {"--help"}]
    assert wrong == []


def test_a_flag_that_is_not_there_is_found_out() -> None:
    text = "headwater replay --from a \\\n  --readers 2, and `headwater table diff a b --key x`"
    assert list(typed_flags(text, [("replay",), ("table", "diff")])) == [
        (("replay",), "--from"),
        (("replay",), "--readers"),
        (("table", "diff"), "--key"),
    ]
