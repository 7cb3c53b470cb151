"""A driver whose clock is wrong: the broker's time raises it, and nothing is recorded with a time before what was
reported."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.events.avro import Codec
from headwater.events.clock import ProducerClock, micros_of, wall_micros
from headwater.events.envelope import Event
from tests.kit.kafka.conf import kafka_conf
from tests.kit.kafka.driver import driver_of
from tests.kit.kafka.stage import Stage, new_topic
from tests.kit.kafka.topic_check import check_topic
from tests.kit.kafka.topic_copies import Copy, copies_on

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

HOUR = 3_600_000_000


class Wall:
    """The clock of this machine, as a driver sees it."""

    def __init__(self) -> None:
        self.off = 0
        """In microseconds."""

    def __call__(self) -> int:
        return wall_micros() + self.off


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    """For drivers that begin in this test."""
    own = Wall()
    monkeypatch.setattr(ProducerClock.__init__, "__defaults__", (own,))
    return own


def times_of(copies: Sequence[Copy]) -> list[int]:
    """In the order in which they were reported, in microseconds."""
    codec = Codec()
    events = [each for copy in copies if isinstance(each := codec.decode(copy.value), Event)]
    return [micros_of(event.time) for event in sorted(events, key=lambda event: event.sequence)]


def test_a_clock_that_is_behind_is_raised_by_the_broker(staged: Stage, tmp_path: Path, wall: Wall) -> None:
    topic = new_topic()
    wall.off = -HOUR
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        for _ in range(2):  # one acknowledgement alone could be wrong
            driver.tell(10)
            driver.deliver()
        known = time.time_ns() // 1000 - HOUR // 60
        driver.tell(20)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    check_topic(driver.emitted, copies)
    times = times_of(copies)
    assert times == sorted(times)
    assert times[0] < known - HOUR // 2, "the clock was behind"
    assert all(known < each for each in times[20:]), "the broker's time is known by then"


@pytest.mark.long
def test_where_times_are_the_producers_nobody_is_raised_by_his_own(staged: Stage, tmp_path: Path, wall: Wall) -> None:
    topic = new_topic()
    staged.create(topic, message_timestamp_type="CreateTime")
    wall.off = -HOUR
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(20)
        driver.deliver()
        driver.tell(20)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    check_topic(driver.emitted, copies)
    assert max(times_of(copies)) < time.time_ns() // 1000 - HOUR // 2


@pytest.mark.long
def test_a_clock_that_jumps_there_and_back(staged: Stage, tmp_path: Path, wall: Wall) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        for jump in (0, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 0):
            wall.off = jump
            driver.tell_for(0.2)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    check_topic(driver.emitted, copies)
    times = times_of(copies)
    assert times == sorted(times)
