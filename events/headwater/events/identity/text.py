"""Texts that may become part of a name: what is refused at once, and how parts of a name are joined and split.

What there is where a name isn't certain: an error for malformed input, and `Unknown` for what no input can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.errors import TerminalError
from headwater.events.names import DatasetId


class IdentityError(TerminalError):
    """Malformed or insufficient: the message says what, and what to give instead. It never holds a credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """No identity can be determined, and why. Recorded as an opaque input or output, never replaced by a guess."""

    reason: str
    query: bool = False
    """The place of a table holds a query: it reads some tables, but isn't one."""


_UNSPEAKABLE = re.compile("[\x00\ud800-\udfff]")
_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^`.]+)")
_MAY_HOLD_SECRET = re.compile(r"[@?=;:&]")


def required(text: str | None, what: str) -> str:
    """The text itself; absent, empty or not writable as UTF-8 is an error that names `what`."""
    if not text:
        msg = f"{what} is missing or empty; without it the dataset can't be named"
        raise IdentityError(msg)
    if _UNSPEAKABLE.search(text):
        msg = f"{what} holds a NUL or half a surrogate pair, which no name can hold; check where the text comes from"
        raise IdentityError(msg)
    return text


def shown(text: str) -> str:
    """As much of a text as an error may quote: nothing that could hold a user, a password or a query."""
    return (
        "a text that isn't shown, as it may hold more than a name,"
        if _MAY_HOLD_SECRET.search(text)
        else repr(text if len(text) <= 80 else text[:79] + "…")
    )


def dataset(namespace: str, name: str) -> DatasetId:
    return DatasetId(namespace=required(namespace, "a dataset's namespace"), name=required(name, "a dataset's name"))


def quoted(part: str) -> str:
    """As Spark quotes it, and only if the part would read as several, or as quoted, without it."""
    return "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part


def joined(parts: Iterable[str]) -> str:
    """`a.b.c`, and nothing of no parts, as of a catalog's root. The first part stays bare if it only holds dots: the
    number of parts says where it ends."""
    first, *others = tuple(parts) or ("",)
    return ".".join([quoted(first) if "`" in first or not others else first, *map(quoted, others)])


def split(name: str) -> tuple[str, ...]:
    """The parts of a dotted name in which every part that holds a dot is quoted."""
    parts: list[str] = []
    position = 0
    while match := _PART.match(name, position):
        parts.append(match["plain"] or match["quoted"].replace("``", "`"))
        position = match.end()
        if position == len(name):
            return tuple(parts)
        if name[position] != ".":
            break
        position += 1
    msg = f"{shown(name)} isn't a dotted name; write it as `part`.`part`, a backtick inside being doubled"
    raise IdentityError(msg)


def lower_keys(options: Mapping[str, str]) -> dict[str, str]:
    """Spark compares the names of options without case."""
    return {key.lower(): value for key, value in options.items()}
