"""What is said of a Spark that nobody tests."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.listeners import capture
from headwater.listeners.spark_versions import TESTED, untested


@pytest.mark.parametrize("version", [*TESTED, "3.5.3", "4.1.2.dev0", "4.3.0-SNAPSHOT"])
def test_every_release_of_a_tested_line_is_silent(version: str) -> None:
    assert untested(version) is None


@pytest.mark.parametrize("version", ["3.4.4", "4.4.0", "5.0.0-preview1", "unknown"])
def test_another_line_is_named_with_those_that_are_tested(version: str) -> None:
    assert untested(version) == (
        f"{version} isn't among the versions that headwater is tested on (3.5, 4.0, 4.1, 4.2, 4.3)"
    )


def test_a_driver_says_so_when_capture_begins(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere(*_: object) -> Any:
        return SimpleNamespace(degraded=[])

    monkeypatch.setattr(capture, "DriverListener", nowhere)
    monkeypatch.setattr(capture, "EventPipeline", nowhere)
    bus: Any = SimpleNamespace(producer=SimpleNamespace(next_barrier=None), emit=None)
    made: list[Any] = [SimpleNamespace(), bus, SimpleNamespace(), SimpleNamespace()]
    with caplog.at_level(logging.WARNING):
        for version in ("4.3.0", "4.4.0"):
            capture.Capture(SimpleNamespace(version=version), *made)

    assert [record.getMessage().partition(" isn't")[0] for record in caplog.records] == ["Spark 4.4.0"]
