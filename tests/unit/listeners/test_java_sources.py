"""What Janino makes of a source that javac would make something else of."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

SOURCES = sorted(
    (
        each
        for part in ("capture", "hosting")
        for each in files(f"headwater.listeners.{part}").joinpath("java").iterdir()
    ),
    key=lambda each: each.name,
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_no_private_method_is_synchronized(source: object) -> None:
    """Janino compiles a private method to a static one, and forgets `synchronized` on the way: leave out `private`."""
    text = source.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert re.findall(r"private [\w ]*\bsynchronized\b.*", text) == []
