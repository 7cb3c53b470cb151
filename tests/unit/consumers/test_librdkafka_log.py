"""What the Kafka client says of itself."""

from __future__ import annotations

import logging

import pytest

from headwater.consumers.sources.librdkafka_log import LibrdkafkaLogger, RepeatFilter

LOGGER = "headwater.consumers.sources.librdkafka_log"
REFUSED = ("%s [%s] %s", "FAIL", "rdkafka#consumer-1", "Connect to 127.0.0.1:9 failed (after %dms)")


def refused(lines: LibrdkafkaLogger, millis: int) -> None:
    text, *arguments = REFUSED
    lines.log(logging.ERROR, text, *arguments[:2], arguments[2] % millis)


def test_what_is_said_again_and_again_is_reported_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    lines = LibrdkafkaLogger(RepeatFilter(lambda: now))
    with caplog.at_level(logging.INFO, LOGGER):
        refused(lines, 1)
        refused(lines, 20)
        now = 599.0
        refused(lines, 1)
        assert len(caplog.records) == 1
        now = 600.0
        refused(lines, 1)
        lines.log(logging.WARNING, "%s", "something else")
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR", "WARNING"]
    assert "FAIL [rdkafka#consumer-1] Connect to 127.0.0.1:9 failed" in caplog.text


def test_with_debug_all_of_it_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    lines = LibrdkafkaLogger()
    with caplog.at_level(logging.DEBUG, LOGGER):
        for each in range(3):
            refused(lines, each)
    assert [each.levelname for each in caplog.records] == ["ERROR", "DEBUG", "DEBUG"]


def test_secrets_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    LibrdkafkaLogger().log(logging.ERROR, "%s", "sasl.password=hidden is wrong")
    assert caplog.records
    assert "hidden" not in caplog.text


def test_what_is_remembered_is_bounded() -> None:
    once = RepeatFilter(lambda: 0.0)
    words = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(5_000)]
    assert all(map(once.is_new, words))
    assert once.is_new(words[0]), "it was forgotten"
