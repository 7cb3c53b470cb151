"""Ways in which secrets stand in texts and options, as `secret_forms.txt` has them; `§` is where the secret is.

In the file a form is a line. In the section of blocks it has several, and `%%` stands between two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

MARK: Final = "§"
_SECTION: Final = "=== "


def _read_sections() -> dict[str, str]:
    text = (Path(__file__).parents[1] / "unit/redaction/secret_forms.txt").read_text(encoding="utf-8")
    parts = [part.split("\n", 1) for part in f"\n{text}".split(f"\n{_SECTION}")[1:]]
    return {name: forms.rstrip("\n") for name, forms in parts}


_SECTIONS: Final = _read_sections()


def _lines(section: str) -> list[str]:
    return [line for line in _SECTIONS[section].split("\n") if line]


def _unescaped(line: str) -> str:
    """With the line ends and invisible characters that the file writes as `\\n` and `\\u200b`."""
    return line.encode("raw_unicode_escape").decode("unicode_escape") if "\\" in line else line


GROUPS: Final = {
    **{
        name: _lines(name)
        for name in (
            "SQL",
            "JSON",
            "XML",
            "code",
            "URLs",
            "commands",
            "tokens",
            "prose",
            "mixed",
            "second look",
            "third look",
            "fourth look",
        )
    },
    "blocks": _SECTIONS["blocks"].split("\n%%\n"),
}  # fmt: skip
NAMES: Final = [_unescaped(name) for name in _lines("names")]
BINDINGS: Final = [_unescaped(binding) for binding in _lines("bindings")]
OPTION_NAMES: Final = [*NAMES, *_lines("option names")]
"""Names of options whose value is a secret."""
OPTION_VALUES: Final = _lines("option values")
"""Values of options with a harmless name that hold a secret."""


def texts() -> Iterator[str]:
    """All the texts that hold a secret."""
    for forms in GROUPS.values():
        yield from forms
    for name, binding in product(NAMES, BINDINGS):
        yield binding.format(name, MARK, name)
