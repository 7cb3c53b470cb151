"""Writes the glossary of docs/concepts.md from tools/glossary.txt, where the words of headwater stand.

A term there is its word, `=` and the class or function that it is in the code, where there is one; what it means stands
in the lines below, up to an empty one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).with_name("glossary.txt")
PAGE: Final = Path(__file__).parent.parent / "docs/concepts.md"
_MARK: Final = "## Glossary\n"


class Term(NamedTuple):
    """A word, what it means, and its class or function."""

    word: str
    code: str
    meaning: str

    @property
    def anchor(self) -> str:
        """What a link to the term ends with: the site makes it of the heading."""
        return re.sub(r"[^a-z0-9]+", "-", self.word.lower())


def terms() -> list[Term]:
    """Return all terms, by the alphabet."""
    found = []
    for block in SOURCE.read_text("utf-8").strip().split("\n\n"):
        head, _, meaning = block.partition("\n")
        word, _, code = head.partition(" = ")
        found.append(Term(word, code, meaning))
    return sorted(found)


def page() -> str:
    """Return the text of the page: what people wrote, then the glossary."""
    written, mark, _ = PAGE.read_text("utf-8").partition(_MARK)
    entries = (f"### {term.word}\n\n{term.meaning}\n" + (f"\n`{term.code}`\n" if term.code else "") for term in terms())
    return f"{written}{mark}\n<!-- Written by `python -m tools.glossary` from tools/glossary.txt. -->\n\n" + "\n".join(
        entries
    )


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
