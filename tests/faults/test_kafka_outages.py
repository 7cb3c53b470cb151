"""A broker that is away, dies, or has no room: telling goes on, and it is all there when the broker is back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.local import KafkaServer
from tests.kit.faults.full_disk import FullDisk
from tests.kit.faults.tcp_proxy import REFUSED, STALLED, Weather
from tests.kit.kafka.conf import kafka_conf
from tests.kit.kafka.driver import assert_stops_within, driver_of, spool_of
from tests.kit.kafka.shipping import ship_by_bus, spools_in
from tests.kit.kafka.stage import Stage, new_topic
from tests.kit.kafka.topic_check import check_topic
from tests.kit.kafka.topic_copies import copies_on
from tests.kit.kafka.victims import ROOT
from tests.kit.waiting import attempts, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LONGER_THAN_ALL_TIME_OUTS = 6.0


@pytest.mark.long
def test_a_broker_that_is_away_for_long(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        with staged.proxy.weather(REFUSED):
            staged.proxy.cut()
            driver.tell_for(LONGER_THAN_ALL_TIME_OUTS)
            driver.until(lambda report: report.last_error, "saying that the broker is away")
            assert driver.kafka.lag > 0
        driver.deliver()
        assert driver.kafka.lag == 0
    assert check_topic(driver.emitted, copies_on(staged.config(), topic)).emitted > 150


@pytest.mark.long
def test_a_broker_that_is_away_from_the_beginning(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with staged.proxy.weather(REFUSED), driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell_for(3)
        driver.until_it_says(staged.address)
        staged.come_back()
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["killed", "stopped", "full"])
def test_a_broker_that_ends_and_comes_back(staged: Stage, tmp_path: Path, how: str) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        driver.tell(200)
        if how == "full":
            staged.limit_files(1)
        else:
            staged.broker.kill() if how == "killed" else staged.stop_broker()
        driver.tell_for(1)
        if how == "full":
            _wait_for_the_end(staged)
        staged.broker.start()
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))


def _wait_for_the_end(staged: Stage) -> None:
    """A broker whose only directory takes no writes halts."""
    until(lambda: not staged.broker.running, staged.broker.log_tail)


@pytest.mark.long
@pytest.mark.sample(1)
@pytest.mark.parametrize("weather", [REFUSED, STALLED], ids=["refused", "stalled"])
def test_a_driver_ends_in_time_and_the_next_one_delivers(staged: Stage, tmp_path: Path, weather: Weather) -> None:
    topic = new_topic()
    conf = kafka_conf(staged.address, topic, tmp_path)
    with driver_of(conf) as driver:
        driver.tell(100)
        driver.deliver()
        with staged.proxy.weather(weather):
            if weather.refuses:
                staged.proxy.cut()
            driver.tell(100)
            left = spool_of(driver.bus)
            assert not assert_stops_within(driver.bus, 3.0)
    assert left in spools_in(tmp_path)
    ship_by_bus(conf, tmp_path)
    verdict = check_topic(driver.emitted, copies_on(staged.config(), topic))
    assert verdict.emitted == 200


@pytest.mark.long
def test_a_driver_that_never_reached_it_ends_in_time(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    conf = kafka_conf(staged.address, topic, tmp_path)
    with staged.proxy.weather(STALLED), driver_of(conf) as driver:
        driver.tell(100)
        driver.until(lambda report: report.calls, "beginning")
        assert not assert_stops_within(driver.bus, 1.0)
    ship_by_bus(conf, tmp_path)
    check_topic(driver.emitted, copies_on(staged.config(), topic))


@pytest.mark.long
def test_a_spool_whose_disk_is_full(staged: Stage, tmp_path: Path) -> None:
    topic, sign = new_topic(), tmp_path / "full"
    conf = kafka_conf(staged.address, topic, tmp_path / "spools")
    with driver_of(conf, files=FullDisk(sign)) as driver:
        driver.tell(100)
        sign.touch()
        assert driver.tell(100) == []
        sign.unlink()
        driver.tell(100)
        driver.deliver()
    verdict = check_topic(driver.emitted, copies_on(staged.config(), topic))
    assert (verdict.emitted, verdict.own) == (200, 2), "one Gap at once, and one that says how many"


# librdkafka aborts the whole process, by an assertion, where an answer about the cluster or a topic comes while its
# client is being destroyed (rdkafka_admin.c, seen with 2.16). So these questions aren't asked that way.


SECONDS = 40


@pytest.mark.long
def test_no_question_that_is_given_up_aborts_the_process() -> None:
    """Of three processes that asked by DescribeCluster two were aborted within half a minute on a busy machine; it
    takes luck, and once in a while none is."""
    chance = random.Random(1)
    with KafkaServer() as broker:
        assert broker.pid is not None
        command = [sys.executable, "-m", "tests.kit.kafka.asker", broker.address, str(SECONDS)]
        askers = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
        try:
            for _ in attempts("the end of those who ask", 3 * SECONDS):
                if all(asker.poll() is not None for asker in askers):
                    break
                os.kill(broker.pid, signal.SIGSTOP)
                time.sleep(chance.choice([0.05, 0.2, 0.6, 1.7, 2.5]))
                os.kill(broker.pid, signal.SIGCONT)
                time.sleep(chance.choice([0.02, 0.1, 0.3, 0.5]))
        finally:
            for asker in askers:
                asker.kill()
                asker.wait()
    assert [asker.returncode for asker in askers] == [0, 0, 0]
