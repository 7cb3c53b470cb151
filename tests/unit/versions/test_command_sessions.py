"""What Spark sessions of our own commands are started with."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headwater.versions import spark_tables
from headwater.versions.spark_tables import command_session


class StartedError(Exception):
    """The session would start now, with these properties."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__("started")
        self.properties = properties


@pytest.mark.parametrize(("is_reported", "enabled"), [(False, "false"), (True, "true")])
def test_a_command_isnt_captured_as_a_job_of_production(
    monkeypatch: pytest.MonkeyPatch, is_reported: bool, enabled: str
) -> None:
    """Properties of a production job switch headwater on: `correct begin` became a job that makes tables."""

    def start(properties: Mapping[str, str]) -> None:
        raise StartedError(properties)

    monkeypatch.setattr(spark_tables, "spark_properties", start)
    given = {"spark.headwater.enabled": "true", "spark.sql.shuffle.partitions": "3"}
    with pytest.raises(StartedError) as started, command_session(given, "headwater correct x", is_reported=is_reported):
        pass
    found = started.value.properties
    assert (found["spark.headwater.enabled"], found["spark.sql.shuffle.partitions"]) == (enabled, "3")
