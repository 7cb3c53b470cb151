"""What Janino makes of a source that javac would make something else of."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

SOURCES = sorted(
    Path(str(files("headwater.listeners.capture"))).parent.rglob("java/*.java"), key=lambda each: each.name
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_no_private_method_is_synchronized(source: Path) -> None:
    """Janino compiles a private method to a static one, and forgets `synchronized` on the way: leave out `private`."""
    text = source.read_text(encoding="utf-8")
    assert re.findall(r"private [\w ]*\bsynchronized\b.*", text) == []


def blocks_that_catch_all(text: str) -> list[str]:
    """What stands in the blocks of `catch (Throwable ...)`, also in one within another: each ends where it is indented
    as where it began."""
    found = re.findall(r"^(?=( *)\} catch \(Throwable \w+\) \{\n((?:.*\n)*?)\1\})", text, re.MULTILINE)
    return [block for _, block in found]


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_whatever_is_caught_is_reported_or_it_says_why_not(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    blocks = blocks_that_catch_all(text)
    assert len(blocks) == text.count("catch (Throwable")
    assert [block for block in blocks if not re.search(r"CaughtErrors\.\w+\(|throw |// ", block)] == []


def test_each_place_that_reports_what_it_caught_has_a_name_of_its_own() -> None:
    places: list[str] = []
    for source in SOURCES:
        for block in re.findall(r"catch \([^{]*\{[^}]*\}", source.read_text(encoding="utf-8")):
            named = set(re.findall(r'CaughtErrors\.\w+\("([^"]*)"', block))
            assert len(named) <= 1
            assert all(name.startswith(f"{source.name.removesuffix('.java')}.") for name in named)
            places += named
    assert len(places) > 40
    assert len(places) == len(set(places))
