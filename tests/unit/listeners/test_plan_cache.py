"""Plans that are kept: bounded by what they take, and reported again by the driver's listener when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headwater.events.identity import Environment
from headwater.events.redaction import Redactor
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.plan.tree import PlanError
from headwater.listeners.capture.plan_cache import PlanCache, UnknownPlanError
from headwater.listeners.capture.records import StatementRecord

ROOM = 100_000


def plan(name: str, columns: int = 1) -> Mapping[str, Any]:
    """Of a query that reads a relation with so many columns."""
    return {
        "root": 0,
        "types": ['"integer"'],
        "attributes": [[f"{name}{n}", 0, True] for n in range(columns)],
        "expressions": [],
        "nodes": [{"c": "LocalRelation", "in": [], "out": list(range(columns)), "args": {"rows": 1}}],
    }


def record(digest: str) -> StatementRecord:
    return StatementRecord(ended=0, plan_digest=digest, reads_only=True)


@pytest.fixture
def cache() -> PlanCache:
    return PlanCache(CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed()), ROOM)


def test_a_plan_is_read_once(cache: PlanCache) -> None:
    cache.offer({"a": plan("a")})
    first = cache.parsed_plan(record("a"))
    assert cache.parsed_plan(record("a")) is first
    assert cache.take_forgotten() == []


def test_what_takes_too_much_room_is_given_up(cache: PlanCache) -> None:
    """2,000 plans of some MB each took all of a driver's memory."""
    for n in range(200):
        cache.offer({str(n): plan("c", 50)})
        size = cache.parsed_plan(record(str(n))).size
    kept = ROOM // size
    assert cache.take_forgotten() == [str(n) for n in range(200 - kept)]
    for n in range(200 - kept, 200):
        assert cache.parsed_plan(record(str(n))).size == size
    assert cache.take_forgotten() == []


def test_what_is_asked_for_stays(cache: PlanCache) -> None:
    cache.offer({"often": plan("often")})
    for n in range(200):
        assert cache.parsed_plan(record("often")).plan.attributes[0].name == "often0"  # type: ignore[union-attr]
        cache.offer({str(n): plan("c", 50)})
        cache.parsed_plan(record(str(n)))
        assert "often" not in cache.take_forgotten()


def test_one_that_is_larger_than_the_room_serves_until_the_next(cache: PlanCache) -> None:
    cache.offer({"large": plan("c", 5_000)})
    large = cache.parsed_plan(record("large"))
    assert large.size > ROOM
    assert cache.take_forgotten() == []
    assert cache.parsed_plan(record("large")) is large
    cache.offer({"a": plan("a")})
    cache.parsed_plan(record("a"))
    assert cache.take_forgotten() == ["large"]


def test_a_plan_that_was_lost_is_asked_for(cache: PlanCache) -> None:
    """A text that couldn't be read lost its plan, and with it all later statements that have it."""
    with pytest.raises(UnknownPlanError, match="lost on its way"):
        cache.parsed_plan(record("a"))
    assert cache.take_forgotten() == ["a"]
    cache.offer({"a": plan("a")})
    assert cache.parsed_plan(record("a")).fault is None


def test_a_plan_that_cannot_be_read_is_asked_for(cache: PlanCache) -> None:
    cache.offer({"a": {"root": 0}})
    with pytest.raises(PlanError):
        cache.parsed_plan(record("a"))
    assert cache.take_forgotten() == ["a"]


def test_a_plan_that_no_record_read_is_asked_for(cache: PlanCache) -> None:
    """The record that brought it may have failed before."""
    cache.offer({"a": plan("a")})
    assert cache.take_forgotten() == ["a"]
    with pytest.raises(UnknownPlanError):
        cache.parsed_plan(record("a"))
