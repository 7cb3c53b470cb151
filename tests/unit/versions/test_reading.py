"""What a block of consistent reads asks a lens for. Spark's side of it is in tests/matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection

import headwater.lens
from headwater.errors import ConfigurationError
from headwater.versions import NoAlignmentError, reading
from tests.kit.lineage.scripted_producer import store
from tests.kit.versions.two_jobs import two_jobs

SESSION: Any = object()


@pytest.fixture
def connection(connection: Connection) -> Connection:
    store(connection, two_jobs())
    return connection


@pytest.fixture
def lenses(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each lens was made with."""
    made: list[dict[str, Any]] = []

    @contextmanager
    def lens(spark: object, **asked: Any) -> Iterator[None]:
        assert spark is SESSION
        made.append(asked)
        yield

    monkeypatch.setattr(headwater.lens, "lens", lens)
    return made


def test_tables_are_pinned_by_the_names_that_were_given(connection: Connection, lenses: list[dict[str, Any]]) -> None:
    """In the order of the tables, not of the answer; with the generations that the versions are of."""
    with reading(SESSION, connection, ["lake.db.c", "b"], allowed=["lake.db.x"]) as found:
        assert [each.table.label for each in found.rows] == ["lake.db.c@15", "lake.db.b@11"]
    pins, generations = {"lake.db.c": 15, "b": 11}, {"lake.db.c": "1", "b": "1"}
    expected = {"pins": pins, "generations": generations, "allowed": ["lake.db.x"], "name": "consistent reads"}
    assert lenses == [expected]


def test_a_version_of_another_table_decides(connection: Connection, lenses: list[dict[str, Any]]) -> None:
    with reading(SESSION, connection, ["b", "c"], at="a@20"):
        assert lenses[0]["pins"] == {"b": 11, "c": 15}


@pytest.mark.parametrize(
    ("tables", "at", "error"),
    [(["b@11", "c"], None, ConfigurationError), (["b", "c"], "a@21", NoAlignmentError)],
)
def test_there_is_no_block_without_an_answer(
    connection: Connection, lenses: list[dict[str, Any]], tables: list[str], at: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error), reading(SESSION, connection, tables, at=at):
        raise AssertionError("the block began")
    assert lenses == []
