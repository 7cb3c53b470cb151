"""The guide builds as a site without a broken link, and what it shows can be copied as it stands."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from headwater.listeners.spark_versions import TESTED
from tools import configuration_reference, glossary, spark_versions, sparks

ROOT = Path(__file__).parents[2]
GUIDE = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def properties(page: Path) -> list[str]:
    return [line for line in page.read_text().splitlines() if line.startswith("spark.")]


def test_there_are_properties_to_look_at() -> None:
    assert any(properties(page) for page in GUIDE)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_a_property_has_no_comment_behind_it(page: Path) -> None:
    """Spark would read it as a part of the value."""
    assert [line for line in properties(page) if "#" in line] == []


def build_site(root: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """Strictly, and not quietly: `--quiet` would drop the warnings that `--strict` counts."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_broken_link_and_a_page_outside_the_navigation_break_the_site(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs/index.md").open("a") as index:
        index.write("[one](nowhere.md) [other](concepts.md#nowhere)")
    (tmp_path / "docs/orphan.md").write_text("# Orphan")
    built = build_site(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    output = built.stdout + built.stderr
    assert [fault for fault in ("'nowhere.md'", "#nowhere", "orphan.md", "3 warnings") if fault not in output] == []


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = build_site(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))  # and a page for what isn't there
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*", page.read_text())
        assert loaded == [], page


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_configuration_reference_is_what_the_code_says() -> None:
    """`python -m tools.configuration_reference` writes it anew."""
    assert configuration_reference.PAGE.read_text("utf-8") == configuration_reference.page()


def test_the_page_on_versions_shows_what_the_tests_run_on() -> None:
    """`python -m tools.spark_versions` writes it anew."""
    assert spark_versions.PAGE.read_text("utf-8") == spark_versions.page()
    assert set(TESTED) == {spark_versions.MAIN, sparks.SECOND, *sparks.SMOKED}
    assert f"pyspark=={spark_versions.MAIN}\n" in (ROOT / "requirements/dev.in").read_text()


def test_the_glossary_is_what_its_source_says() -> None:
    """`python -m tools.glossary` writes it anew."""
    assert glossary.PAGE.read_text("utf-8") == glossary.page()


@pytest.mark.parametrize("term", [term for term in glossary.terms() if term.code], ids=lambda term: term.word)
def test_what_a_term_is_in_the_code_is_there(term: glossary.Term) -> None:
    module, _, name = term.code.rpartition(".")
    assert getattr(import_module(module), name)


CITED = [
    pytest.param(page, path, name, id=f"{page.stem}-{name}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())
]


@pytest.mark.parametrize(("page", "path", "name"), CITED)
def test_a_test_that_a_page_cites_is_there(page: Path, path: str, name: str) -> None:
    assert f"\ndef {name}(" in (ROOT / path).read_text()


def product_text() -> str:
    """All modules, with texts that stand in several literals made one."""
    folders = ("events", "listeners", "publishers", "consumers")
    sources = "\n".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return re.sub(r'"\s*\n\s*f?"', "", sources)


def test_messages_of_the_troubleshooting_page_are_messages_of_the_code() -> None:
    source = product_text()
    rows = [line for line in (ROOT / "docs/troubleshooting.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    messages = [message for row in rows for message in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    parts = [part for message in messages for part in message.split("…") if len(part) > 6]
    assert [part for part in parts if part not in source] == []


@pytest.mark.parametrize("page", [page for page in GUIDE if ">>>" in page.read_text()], ids=lambda page: page.name)
def test_python_with_its_answers_gives_them(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_places_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    places = re.findall(r"`((?:events|listeners|publishers|consumers|tests|tools|docs)/[\w/.-]*)`", text)
    assert len(places) > 30
    assert [place for place in places if not (ROOT / place).exists()] == []
    for package in set(re.findall(r"`(headwater\.\w+)`", text)):
        assert import_module(package).__name__ == package


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_no_blank_line_cuts_a_table(page: Path) -> None:
    """Rows behind it would be shown as text. A table begins with its header and a rule."""
    lines = page.read_text().splitlines()
    first = [number for number, line in enumerate(lines) if line.startswith("| ") and lines[number - 1] == ""]
    assert [lines[number] for number in first if not re.fullmatch(r"\|[-| :]+\|", lines[number + 1])] == []
