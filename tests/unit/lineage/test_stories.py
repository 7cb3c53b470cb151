"""Answers to questions about stories are the same on every database, and the order of arrival makes no difference."""

from __future__ import annotations

from random import Random

import pytest
from sqlalchemy import Connection

from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import Story, ask, producer_of
from tests.kit.stores import on_every_database


@on_every_database
@pytest.mark.parametrize("story", STORIES, ids=lambda each: each.name)
def test_what_is_reported_is_answered(connection: Connection, story: Story) -> None:
    producer = producer_of(story)
    shuffled = [*producer.events, *producer.events[::2]]
    Random(story.name).shuffle(shuffled)
    for events in (producer.events, shuffled):
        store(connection, events)
        answers = {check.question: ask(connection, check.question) for check in producer.checks}
        connection.rollback()
        assert answers == {check.question: (check.rows, check.whys) for check in producer.checks}
