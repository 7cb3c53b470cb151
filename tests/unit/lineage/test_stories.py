"""Answers to questions about stories, on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from headwater.lineage.sql import METADATA
from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import Story, ask, producer_of


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    METADATA.create_all(engine)
    with engine.connect() as connection:
        connection.commit()
        yield connection
    engine.dispose()


@pytest.mark.parametrize("story", STORIES, ids=lambda each: each.name)
def test_what_is_reported_is_answered(connection: Connection, story: Story) -> None:
    producer = producer_of(story)
    store(connection, producer)
    try:
        answers = {check.question: ask(connection, check.question) for check in producer.checks}
    finally:
        connection.rollback()
    assert answers == {check.question: (check.rows, check.whys) for check in producer.checks}
