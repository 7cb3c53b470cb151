"""A broker with TLS, SCRAM and rights: who may write writes, who may not is informed why, and secrets stay secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AclOperation

from tests.kit.kafka.conf import kafka_conf, producer_settings
from tests.kit.kafka.driver import Driver, assert_stops_within, driver_of
from tests.kit.kafka.secured import SecuredStage, new_authority, scram_client, secured_stage, token_client
from tests.kit.kafka.shipping import ship_by_bus
from tests.kit.kafka.stage import Stage, new_topic
from tests.kit.kafka.topic_check import check_topic
from tests.kit.kafka.topic_copies import copies_on

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.sample(1, keep=("test_a_wrong_password_is_reported_and_works_once_it_is_the_right_one",)),
]

RIGHT: Final = "s3cr3t-that-is-right"
WRONG: Final = "s3cr3t-that-is-wrong"
WRITE, DESCRIBE, CREATE = AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredStage]:
    with secured_stage(tmp_path_factory.mktemp("certificates")) as shared:
        yield shared


@pytest.fixture(autouse=True)
def _no_secret_is_shown(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Whatever happens in a test: not in the log, not in what goes to the terminal, librdkafka's own words included."""
    caplog.set_level(logging.DEBUG)
    yield
    out, err = capfd.readouterr()
    logged = [record.getMessage() for record in caplog.get_records("call")]  # `text` is that of the phase of now
    assert logged, "nothing was logged, and nothing is shown"
    for text in (*logged, out, err):
        assert_no_secret(text)


def assert_no_secret(text: str) -> None:
    assert RIGHT not in text
    assert WRONG not in text


def conf_of(secured: SecuredStage, topic: str, spools: Path, client: Mapping[str, str]) -> dict[str, str]:
    return {**kafka_conf(secured.kafka.address, topic, spools), **producer_settings(client)}


def assert_all_there(kafka: Stage, topic: str, driver: Driver) -> None:
    check_topic(driver.emitted, copies_on(kafka.config(), topic))


def writer(secured: SecuredStage, topic: str, *more: AclOperation) -> dict[str, str]:
    """The client of a new user that may write."""
    user = secured.new_user(RIGHT)
    secured.allow(user, topic, WRITE, DESCRIBE, *more)
    return scram_client(secured.authority, user, RIGHT)


def says(driver: Driver, *words: str) -> str:
    """What the report says, once it has one of these words."""
    driver.until_it_says(*words)
    report = str(driver.bus.report())
    assert_no_secret(report)
    return report


def test_who_may_write_and_create_does(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(conf_of(secured, topic, tmp_path, writer(secured, topic, CREATE))) as driver:
        driver.tell(100)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_a_token_is_as_good(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    secured.allow("token-user", topic, WRITE, DESCRIBE, CREATE)
    client = token_client(secured.authority, "token-user")
    with driver_of(conf_of(secured, topic, tmp_path, client)) as driver:
        driver.tell(100)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_a_function_of_the_users_own_gives_tokens(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    secured.allow("function-user", topic, WRITE, DESCRIBE, CREATE)
    client = {**token_client(secured.authority, "unused"), "sasl.oauthbearer.config": "function-user"}
    del client["enable.sasl.oauthbearer.unsecure.jwt"]
    conf = conf_of(secured, topic, tmp_path, client)
    conf["spark.headwater.kafka.oauth.token"] = "tests.kit.kafka.secured:token_of"
    with driver_of(conf) as driver:
        driver.tell(100)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_a_token_of_somebody_without_rights_is_reported(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    secured.kafka.create(topic, message_timestamp_type="LogAppendTime")
    with driver_of(conf_of(secured, topic, tmp_path, token_client(secured.authority, "nobody"))) as driver:
        driver.tell(10)
        says(driver, "uthoriz", "no right", "no topic")
        assert driver.kafka.lag == 10


def test_a_wrong_password_is_reported_and_works_once_it_is_the_right_one(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    client = writer(secured, topic, CREATE)
    with driver_of(conf_of(secured, topic, tmp_path, {**client, "sasl.password": WRONG})) as driver:
        driver.tell(100)
        report = says(driver, "uthentication failed", "SASL")
        assert "sasl.password" in report, "it says what to change"
        secured.set_password(client["sasl.username"], WRONG)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_a_password_that_is_changed_in_mid_flight(secured: SecuredStage, tmp_path: Path) -> None:
    """Connections that are there live on; the next ones are refused, until the old password is back."""
    topic = new_topic()
    client = writer(secured, topic, CREATE)
    with driver_of(conf_of(secured, topic, tmp_path, client)) as driver:
        driver.tell(50)
        driver.deliver()
        secured.set_password(client["sasl.username"], WRONG)
        secured.kafka.proxy.cut()
        driver.tell(50)
        says(driver, "uthentication failed", "SASL")
        secured.set_password(client["sasl.username"], RIGHT)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_an_unknown_authority_is_reported(secured: SecuredStage, tmp_path: Path) -> None:
    topic, spools = new_topic(), tmp_path / "spools"
    other = new_authority(tmp_path, "other")
    client = writer(secured, topic, CREATE)
    trusting_another = {**client, "ssl.ca.location": str(other.certificate)}
    with driver_of(conf_of(secured, topic, spools, trusting_another)) as driver:
        driver.tell(100)
        report = says(driver, "certificate")
        assert "ssl.ca.location" in report, "it says what to change"
        assert not assert_stops_within(driver.bus, 1.0)
    ship_by_bus(conf_of(secured, topic, spools, client), spools)
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_speaking_plainly_to_a_port_with_tls_is_reported(secured: SecuredStage, tmp_path: Path) -> None:
    with driver_of(kafka_conf(secured.kafka.address, new_topic(), tmp_path)) as driver:
        driver.tell(10)
        report = says(driver, "security.protocol")
        assert secured.kafka.address in report
        assert not assert_stops_within(driver.bus, 1.0)


def test_who_may_not_write_is_reported_and_goes_on_when_he_may(secured: SecuredStage, tmp_path: Path) -> None:
    topic, user = new_topic(), secured.new_user(RIGHT)
    secured.kafka.create(topic, message_timestamp_type="LogAppendTime")
    secured.allow(user, topic, DESCRIBE)
    client = scram_client(secured.authority, user, RIGHT)
    with driver_of(conf_of(secured, topic, tmp_path, client)) as driver:
        driver.tell(100)
        report = says(driver, "uthoriz", "no right")
        assert topic in report
        secured.allow(user, topic, WRITE)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_who_may_not_create_is_told_the_command(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(conf_of(secured, topic, tmp_path, writer(secured, topic))) as driver:
        driver.tell(100)
        report = says(driver, "uthoriz", "no right")
        assert "kafka-topics.sh" in report or "kafka-acls.sh" in report
        secured.kafka.create(topic, message_timestamp_type="LogAppendTime")
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_a_right_that_is_lost_in_mid_flight_and_given_back(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    client = writer(secured, topic, CREATE)
    user = client["sasl.username"]
    with driver_of(conf_of(secured, topic, tmp_path, client)) as driver:
        driver.tell(50)
        driver.deliver()
        secured.forbid(user, topic, WRITE)
        driver.tell_for(1)
        says(driver, "uthoriz", "no right")
        driver.tell_for(1)
        secured.allow(user, topic, WRITE)
        driver.tell(50)
        driver.deliver()
    assert_all_there(secured.kafka, topic, driver)


@pytest.mark.long
def test_a_setting_that_librdkafka_refuses_is_reported_without_its_value(secured: SecuredStage, tmp_path: Path) -> None:
    topic = new_topic()
    client = {**writer(secured, topic), "sasl.mechanism": "SCRAM-SHA-513", "ssl.key.password": WRONG}
    with driver_of(conf_of(secured, topic, tmp_path, client)) as driver:
        driver.tell(10)
        driver.until(lambda report: report.last_error, "saying what is wrong")
        assert_no_secret(str(driver.bus.report()))
        assert_no_secret(str(driver.bus.faults))
