"""A verdict about versions is yes only if the rows of the tables say so, whatever happened.

It finds what the laws of one source's versions don't: mixtures, rollbacks with numbers that come again, commits that
are held back, branches, positions, and what isn't known: lost events, deleted lineage, opaque reads.
`python -m tests.benchmarks.version_verdicts` plays 100,000 such histories.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from tests.kit.effort import examples
from tests.kit.stores import memory_connection
from tests.kit.versions.oracle import AnswerCounts, History, ask, lines

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with memory_connection() as connection:
        connection.commit()
        yield connection


@settings(max_examples=examples(150))
@given(seed=st.integers(0, 2**32), has_gaps=st.booleans())
def test_no_yes_is_wrong(*, seed: int, has_gaps: bool, connection: Connection) -> None:
    history = History(Random(seed), has_gaps=has_gaps)
    assert ask(connection, history, AnswerCounts()), "\n".join(lines(history))


def test_few_answers_are_unknown_without_gaps(connection: Connection) -> None:
    """What is always unknown is never wrong."""
    counts = AnswerCounts()
    for seed in range(examples(100)):
        ask(connection, History(Random(seed), has_gaps=False), counts)
    unknown = sum(number for (verdict, _), number in counts.checks.items() if verdict is None)
    assert unknown <= max(2, sum(counts.checks.values()) // 10)
    assert counts.checks.get((True, True), 0) > unknown
