"""Answers to questions about stories are the same on real databases, and the order of arrival makes no difference."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from sqlalchemy import Connection, create_engine

from headwater.lineage.sql import METADATA
from headwater.local import Service
from tests.unit.lineage.scribe import store
from tests.unit.lineage.stories import Story, ask, told_by
from tests.unit.lineage.stories_told import STORIES

pytestmark = [pytest.mark.slow, pytest.mark.database]


@pytest.fixture(params=["postgres", "mariadb"], scope="module")
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
def test_what_is_told_is_answered(connection: Connection, story: Story) -> None:
    teller = told_by(story)
    shuffled = [*teller.told, *teller.told[::2]]
    Random(story.name).shuffle(shuffled)
    store(connection, shuffled)
    try:
        answers = {check.question: ask(connection, check.question) for check in teller.checks}
    finally:
        connection.rollback()
    assert answers == {check.question: (check.rows, check.whys) for check in teller.checks}
