"""The pages that say where the elements of the original documents live tell the truth about what is there today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

PAGES = {"0023-paimon-pip5-and-flip-294.md": 150, "0055-branches.md": 30}
"""With how many elements there are at least."""
PARTS = {"correction", "names with a dot"}


def rows(*pages: str) -> Iterator[tuple[str, str]]:
    folder = Path(__file__).parents[2] / "docs" / "decisions"
    for line in "".join((folder / page).read_text() for page in pages or PAGES).splitlines():
        if line.startswith("| ") and not line.startswith("| element"):
            _, element, here, _ = line.split("|")
            yield element.strip(), here.strip()


def names_in(here: str) -> list[str]:
    return re.findall(r"`([a-z_]+(?:\.\w+)+)`", without_notes(here))


def names() -> list[str]:
    return sorted({name for _, here in rows() for name in names_in(here)})


def without_notes(here: str) -> str:
    """What stands in brackets after *later* explains; it isn't there yet."""
    return re.sub(r"later: [^;]*", "", here)


def found(name: str) -> Any:
    parts = name.split(".") if name.startswith("headwater.") else ["headwater", "events", *name.split(".")]
    for length in range(len(parts), 0, -1):
        try:
            thing: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return member(thing, parts[length:])
    raise AssertionError(f"nothing of {name} can be imported")


def member(thing: Any, path: list[str]) -> Any:
    for part in path:
        fields = thing.model_fields if isinstance(thing, type) and issubclass(thing, BaseModel) else {}
        thing = fields[part] if part in fields else getattr(thing, part)
    return thing


@pytest.mark.parametrize("name", names())
def test_what_is_named_is_there(name: str) -> None:
    assert found(name) is not None


@pytest.mark.parametrize(("element", "here"), list(rows()))
def test_every_element_has_a_place_a_part_or_a_reason(element: str, here: str) -> None:
    assert element
    assert names_in(here) or "later: " in here or here.startswith("none: ")
    for later in re.findall(r"later: ([^;(]*)", here):
        assert later.strip() in PARTS


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_as_long_as_its_document(page: str) -> None:
    assert len(list(rows(page))) > PAGES[page]


def test_a_name_that_is_not_there_is_found_out() -> None:
    with pytest.raises(AttributeError):
        found("tables.Column.nowhere")
