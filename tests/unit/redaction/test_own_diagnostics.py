"""What headwater says of itself comes through redaction: details of Gaps, lines of doctor, messages of errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.events import Event, Gap
from headwater.events.health import GapReason
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "listeners/headwater/listeners", "publishers/headwater/publishers",
    "events/headwater/events", "events/headwater/journal", "consumers/headwater/consumers",
    "consumers/headwater/forwarders", "consumers/headwater/lineage", "consumers/headwater/local",
    "consumers/headwater/cli", "consumers/headwater/versions",
)  # fmt: skip


def sentences(tree: ast.Module) -> Iterator[str]:
    """The texts of a module that are no docstrings and no lists of words, with `x1` for what is filled in."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = list(ast.walk(tree))
    split = {ast.unparse(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "split"}
    lists = {id(node.value) for node in nodes if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in split}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x1" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | docs | lists:
            yield node.value


@pytest.mark.parametrize("package", PACKAGES)
def test_no_sentence_of_ours_loses_a_word(package: str) -> None:
    """An address that shows where its user-info goes is no sentence, and neither is SQL."""
    modules = [path for path in (ROOT / package).rglob("*.py") if "redaction" not in path.parts]
    assert modules
    redactor = Redactor()
    said = {
        text
        for path in modules
        for text in sentences(ast.parse(path.read_text()))
        if text.count(" ") > 2 and "SELECT" not in text
    }
    assert {text: redactor.text(text) for text in said if "@" not in text and redactor.text(text) != text} == {}


@pytest.mark.parametrize(
    "detail",
    [
        "the spool was full: 12 events from 17 to 29 weren't kept; a larger spark.headwater.spool.max-bytes helps",
        "statement 17 can't be recorded: KeyError: 'plan'",
        "spark.headwater.log.dir isn't set: name it in a properties file",
        "a Committed couldn't be emitted: EventTooLargeError: 5242880 bytes where 4194304 are allowed",
    ],
)  # fmt: skip
def test_the_detail_of_a_gap_keeps_its_numbers_and_quotes(detail: str) -> None:
    events: list[Event] = []
    Producer().emit(Gap(reason=GapReason.OTHER, detail=detail), lambda event, _data: events.append(event))
    assert [event.detail for event in events if isinstance(event, Gap)] == [detail]
