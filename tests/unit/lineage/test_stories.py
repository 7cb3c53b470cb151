"""Answers to questions about stories are the same on every database, and the order of arrival makes no difference."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Connection

from headwater.cli.app import main
from headwater.lineage.store import open_store
from tests.kit.lineage.all_stories import STORIES, guide
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import Story, StoryProducer, ask, producer_of
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


# docs/questions.md shows what is really printed.


PAGE = Path(__file__).parents[3] / "docs" / "questions.md"
SHOWN = re.findall(r"```\n\$ headwater (lineage [^\n]*)\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.slow
def test_what_the_page_shows_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'lineage.db'}"
    producer = StoryProducer()
    guide(producer)
    with open_store(url) as opened, opened.engine.begin() as connection:
        store(connection, producer)
    monkeypatch.setenv("HEADWATER_STORE", url)
    assert len(SHOWN) >= 6
    for command, output in SHOWN:
        main(command.split())
        printed = capsys.readouterr()
        assert printed.out + printed.err == output, command
