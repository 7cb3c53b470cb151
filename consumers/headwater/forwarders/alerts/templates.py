"""Texts of alerts: names in braces are replaced by values. Nothing is computed, and no value is read as a template."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headwater.config import unknown

_LONGEST_VALUE: Final = 500
_LONGEST_TEXT: Final = 3_000
"""Slack shows no more than that in one message."""


def template_faults(template: str, names: frozenset[str]) -> Iterator[str]:
    """Yield what is wrong with a template that may use these names."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as e:
        yield f"{e}: write a name in braces, {{job}} say, and a brace itself as {{{{ or }}}}"
        return
    for _, name, form, conversion in pieces:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            yield f"{{{name}…}} isn't a name: write only a name in braces, {{job}} say"
        elif name not in names:
            yield unknown("name", f"{{{name}}}", (f"{{{each}}}" for each in names))


def render(template: str, values: Mapping[str, str], escape: Callable[[str], str] = str) -> str:
    """Return the text. `escape` is applied to the values only."""
    pieces: list[str] = []
    for literal, name, _, _ in string.Formatter().parse(template):
        pieces.append(literal)
        if name is not None:
            pieces.append(escape(plain(values.get(name, ""))))
    return cut("".join(pieces), _LONGEST_TEXT)


def plain(text: str, longest: int = _LONGEST_VALUE) -> str:
    """Return a value as one line without control characters, of bounded length."""
    words = "".join(each if each.isprintable() else " " for each in text)
    return cut(" ".join(words.split()), longest)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def escaped_for_slack(text: str) -> str:
    """Return the text as Slack shows it. Else a job called <!channel> would call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
