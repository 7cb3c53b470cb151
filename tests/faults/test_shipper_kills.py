"""The shipper dies of signals, the broker stops and goes on, again and again: all is on the topic, in order by key."""

from __future__ import annotations

import os
import signal
import time
from itertools import cycle, islice
from pathlib import Path
from random import Random

import pytest

from headwater.listeners.bus.report import ShipperReport
from tests.kit.kafka.conf import kafka_conf
from tests.kit.kafka.driver import Driver, assert_stops_within, driver_of
from tests.kit.kafka.stage import Stage, new_topic
from tests.kit.kafka.topic_check import check_topic
from tests.kit.kafka.topic_copies import copies_on
from tests.kit.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

EVENTS = 10_000
DEATHS = tuple(islice(cycle((signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL)), 6))
"""Each pause before it is started again is twice as long as the last."""


def shipper_of(driver: Driver) -> ShipperReport:
    shipper = driver.bus.report().shipper
    assert shipper is not None
    return shipper


def test_all_events_arrive_while_the_shipper_dies_again_and_again(staged: Stage, tmp_path: Path) -> None:
    """Six times within the events of one driver, each time while it is at work."""
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        for number, death in enumerate(DEATHS):
            reached = driver.kafka.acknowledged
            driver.tell(EVENTS // len(DEATHS))
            until(lambda reached=reached: driver.kafka.acknowledged > reached, "an acknowledgement")  # type: ignore[misc]
            pid = shipper_of(driver).pid
            assert pid is not None
            os.kill(pid, death)
            until(lambda number=number: shipper_of(driver).restarts == number + 1, "its death")  # type: ignore[misc]
        driver.tell(EVENTS - len(driver.emitted))
        driver.deliver()
    assert len(driver.emitted) >= EVENTS
    check_topic(driver.emitted, copies_on(staged.config(), topic))


def test_a_stop_takes_two_seconds_while_the_broker_hangs(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        with staged.frozen():
            driver.tell(500)
            assert not assert_stops_within(driver.bus, 2.0)


def test_a_broker_that_stops_and_goes_on_five_hundred_times(staged: Stage, tmp_path: Path) -> None:
    chance, topic = Random(1), new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        for _ in range(500):
            with staged.frozen():
                driver.tell(10)
                time.sleep(chance.choice([0.02, 0.1, 0.3]))
            time.sleep(chance.choice([0.0, 0.02, 0.1]))
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))
