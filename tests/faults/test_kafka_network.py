"""A network that is cut, stalls, loses what is said, or is slow: what was reported arrives once it is well again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.faults.tcp_proxy import DEAF, HALF_OPEN, STALLED, Weather
from tests.kit.kafka.conf import kafka_conf
from tests.kit.kafka.driver import driver_of
from tests.kit.kafka.stage import Stage, new_topic, stage
from tests.kit.kafka.topic_check import check_topic
from tests.kit.kafka.topic_copies import copies_on

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

SLOW = Weather(delay=0.1, rate=20_000)


@pytest.mark.parametrize("weather", [STALLED, HALF_OPEN, DEAF, SLOW], ids=["stalled", "half-open", "deaf", "slow"])
def test_bad_weather(staged: Stage, tmp_path: Path, weather: Weather) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        with staged.proxy.weather(weather):
            driver.tell_for(3)
        driver.tell(50)
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))


def test_bad_weather_from_the_beginning(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with staged.proxy.weather(STALLED), driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell_for(3)
        staged.come_back()
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))


def test_cut_again_and_again(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        for _ in range(15):
            driver.tell_for(0.1, pace=50)
            staged.proxy.cut()
        driver.deliver()
    verdict = check_topic(driver.emitted, copies_on(staged.config(), topic))
    assert verdict.emitted > 15 * 50


def test_another_cluster_answers_at_the_same_address(staged: Stage, tmp_path: Path) -> None:
    """With the same topic, further on than the right one's, and the same id of its broker; then the right one is
    back."""
    topic, right = new_topic(), staged.proxy.target
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        with stage(proxy=staged.proxy) as other:
            staged.proxy.target = other.itself
            try:
                other.create(topic, partitions=6)  # the driver's connections still lead to the right one
                other.fill(topic, partitions=6, count=100)
                staged.proxy.cut()
                driver.tell_for(3)
                assert driver.kafka.lag == len(driver.emitted) - 50, "the wrong cluster acknowledged something"
                driver.until_it_says("cluster")
                driver.tell_for(1)
                assert driver.kafka.lag == len(driver.emitted) - 50, "the wrong cluster acknowledged something"
            finally:
                staged.proxy.target = right
                staged.proxy.cut()
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))


def test_what_begins_at_another_cluster_than_was_named_sends_nothing(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")) as driver:
        driver.tell(50)
        driver.until_it_says("AAAAAAAAAAAAAAAAAAAAAA")
        assert driver.kafka.lag == 50
    assert not staged.has(topic)
