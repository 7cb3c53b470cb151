"""Answers to questions about stories are the same on real databases, and the order of arrival makes no difference."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from sqlalchemy import Connection, create_engine

from headwater.lineage.sql import METADATA
from headwater.local import Service
from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import Story, ask, producer_of

pytestmark = [pytest.mark.slow, pytest.mark.database]


@pytest.fixture(params=["postgres", pytest.param("mariadb", marks=pytest.mark.long)], scope="module")
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    service: Service = request.getfixturevalue(request.param)
    engine = create_engine(service.address)
    METADATA.create_all(engine)
    with engine.connect() as connection:
        connection.commit()
        yield connection
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.mark.parametrize("story", STORIES, ids=lambda each: each.name)
def test_what_is_reported_is_answered(connection: Connection, story: Story) -> None:
    producer = producer_of(story)
    shuffled = [*producer.events, *producer.events[::2]]
    Random(story.name).shuffle(shuffled)
    store(connection, shuffled)
    try:
        answers = {check.question: ask(connection, check.question) for check in producer.checks}
    finally:
        connection.rollback()
    assert answers == {check.question: (check.rows, check.whys) for check in producer.checks}
