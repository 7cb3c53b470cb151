"""What the guide shows can be copied as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

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
