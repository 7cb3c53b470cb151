"""Versions within a snapshot, at which a stream stopped: compared as far as it is known which rows they have.

No history that random tests make has them, and each format means something else by its positions.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from headwater.events.jobs import Input, OverwriteScope, RangeStart, ReadMode
from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.versions import ConsistencyAnswer, check
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import StoryProducer

ALL = OverwriteScope.ALL
REF = {"table": "x", "branch": None}
FORMATS = [Format.DELTA, Format.PAIMON, Format.ICEBERG, Format.HUDI]


def story_of(table_format: Format) -> StoryProducer:
    story = StoryProducer()
    story.format = table_format
    story.commit("z@1", parent=None)
    story.commit("z@2")
    for number in (1, 2, 3):
        story.commit(f"x@{number}", reads=[f"z@{max(1, number - 1)}"], parent=number - 1 or None, replaced=ALL)
    return story


def changes(story: StoryProducer, snapshot: int, position: str | None, since: int = 0) -> list[Input]:
    where: dict[str, Any] = story.where(REF)
    start = RangeStart(snapshot=since)
    return [Input(**where, mode=ReadMode.CHANGES, snapshot=snapshot, version=position, since=start)]


def answer(connection: Connection, story: StoryProducer) -> ConsistencyAnswer:
    store(connection, story)
    return check(connection, ["b", "c"])


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_position_and_its_snapshot_are_one_or_not(connection: Connection, table_format: Format) -> None:
    story = story_of(table_format)
    story.commit("b@1", also=changes(story, 2, "2:7"), parent=None)
    story.commit("c@1", reads=["x@2"], parent=None)
    found = answer(connection, story)
    assert found.is_consistent is None
    assert [(each.why, each.about) for each in found.limits] == [(LimitReason.UNKNOWN_SNAPSHOT, "lake.db.x@2")]
    assert "2:7" in found.limits[0].detail


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_position_before_which_nothing_was_read_is_the_snapshot_before(
    connection: Connection, table_format: Format
) -> None:
    story = story_of(table_format)
    story.commit("b@1", also=changes(story, 2, "2:0"), parent=None)
    story.commit("c@1", reads=["x@1"], parent=None)
    assert answer(connection, story).is_consistent is None


@pytest.mark.parametrize(
    ("table_format", "verdict"), [(Format.DELTA, False), (Format.PAIMON, False), (Format.HUDI, None)]
)
def test_a_later_snapshot_has_more_than_a_position_before_it(
    connection: Connection, table_format: Format, verdict: bool | None
) -> None:
    """Hudi's number says when a commit was asked for, its position by when commits were completed."""
    story = story_of(table_format)
    story.commit("b@1", also=changes(story, 2, "2:7"), parent=None)
    story.commit("c@1", reads=["x@3"], parent=None)
    assert answer(connection, story).is_consistent is verdict


@pytest.mark.parametrize("table_format", FORMATS)
def test_what_is_behind_a_position_is_not_known_either(connection: Connection, table_format: Format) -> None:
    """`b` has rows of `z@2` by way of `x@3` only as far as that was read."""
    story = story_of(table_format)
    story.commit("b@1", also=changes(story, 3, "3:1", since=2), parent=None)
    story.commit("c@1", reads=["z@2"], parent=None)
    found = answer(connection, story)
    assert found.is_consistent is not True
    assert (LimitReason.UNKNOWN_SNAPSHOT, "lake.db.x@3") in {(each.why, each.about) for each in found.limits}


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("is_one_job", [True, False])
def test_equal_positions(connection: Connection, table_format: Format, is_one_job: bool) -> None:
    """Paimon counts splits, which are as large as each reader's options say."""
    story = story_of(table_format)
    story.commit("b@1", also=changes(story, 2, "2:7"), parent=None, job="one")
    story.commit("c@1", also=changes(story, 2, "2:7"), parent=None, job="one" if is_one_job else "other")
    verdict = None if table_format is Format.PAIMON and not is_one_job else True
    assert answer(connection, story).is_consistent is verdict


def test_a_stream_that_went_on_has_no_doubt_left(connection: Connection) -> None:
    story = story_of(Format.DELTA)
    story.commit("b@1", also=changes(story, 2, "2:7"), parent=None)
    where: dict[str, Any] = story.where(REF)
    start = RangeStart(snapshot=2, version="2:7")
    story.commit("b@2", also=[Input(**where, mode=ReadMode.CHANGES, snapshot=3, since=start)])
    story.commit("c@1", also=changes(story, 3, None), parent=None)
    found = answer(connection, story)
    assert (found.is_consistent, found.limits) == (True, ())
