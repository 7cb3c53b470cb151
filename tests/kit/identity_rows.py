"""Tables of truth in text files: `what is given => what it is`, one case a line.

`=> namespace | name` is a dataset, `=> ! words` an IdentityError whose message holds the words, `=> ? words` an
Unknown whose reason does. What is given may have several fields, divided by ` :: `. `{U+0301}` stands for one
character, `{}` for the empty text. Lines that begin with `# ` are headings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from headwater.events.identity import Environment, IdentityError, Namespaces, Unknown
from headwater.events.names import DatasetId

_CHARACTER = re.compile(r"\{U\+([0-9A-F]{4,6})\}")

SITE = Environment(
    host="driver-1",
    namespaces=Namespaces.parse({"prod": "*.prod.example, 10.0.0.7, shared:7777"}),
    working_directory="/home/etl",
    nameservices=frozenset({"ha", "ha2"}),
    workspace="acme",
    warehouse="file:/srv/warehouse",
    aws_region="eu-west-1",
    aws_account="123456789012",
)


class Row(NamedTuple):
    given: tuple[str, ...]
    truth: str


def rows(table: str) -> list[Row]:
    """The rows of `<table>.txt` beside this file, as parameters of a test are wanted."""
    lines = (Path(__file__).parents[1] / f"unit/identity/{table}.txt").read_text(encoding="utf-8").split("\n")
    return [_row(line) for line in lines if line.strip() and not line.startswith("# ")]


def names(table: list[Row]) -> list[str]:
    """One readable and unique name per row."""
    return [
        f"{number}:{' :: '.join(row.given)}"[:80].encode("unicode_escape").decode() for number, row in enumerate(table)
    ]


def options(text: str) -> dict[str, str]:
    """`a=b, c=d`; a comma that belongs to a value is written `;;`."""
    pairs = (pair.partition("=") for pair in text.split(", ") if pair)
    return {key.strip(): value.replace(";;", ",") for key, _, value in pairs}


def check(row: Row, identify: Callable[[], DatasetId | Unknown | str]) -> None:
    """That the function tells the truth of the row, in one of its three forms."""
    if row.truth.startswith("! "):
        with pytest.raises(IdentityError) as caught:
            identify()
        assert row.truth[2:] in str(caught.value)
        return
    found = identify()
    if row.truth.startswith("? "):
        assert isinstance(found, Unknown), found
        assert row.truth[2:] in found.reason
    else:
        assert (f"{found.namespace} | {found.name}" if isinstance(found, DatasetId) else found) == row.truth


def _row(line: str) -> Row:
    given, arrow, truth = _CHARACTER.sub(lambda match: chr(int(match[1], 16)), line).rpartition(" => ")
    assert arrow, line
    return Row(tuple(field.replace("{}", "") for field in given.split(" :: ")), truth)
