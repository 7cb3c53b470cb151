"""Where a driver stands, as its configuration says it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.events.identity.hosts import Endpoint
from headwater.listeners.installation.factories import read_configuration, read_environment
from headwater.listeners.settings import read_settings


class Conf(dict[str, str]):
    """pyspark's, with how often its entries are asked for."""

    def __init__(self, *entries: tuple[str, str]) -> None:
        super().__init__(entries)
        self.calls = 0
        self._jconf = self

    def toDebugString(self) -> str:  # noqa: N802
        shown = ((key, "*********(redacted)" if "password" in key else value) for key, value in self.items())
        return "\n".join(f"{key}={value}" for key, value in sorted(shown))

    def get(self, key: str, default: object = None) -> Any:
        self.calls += 1
        return super().get(key, default)

    def getAll(self) -> Any:  # noqa: N802
        self.calls += 1
        return list(self.items())


@pytest.mark.parametrize(
    ("entries", "calls"),
    [
        ([], 2),
        ([(f"spark.key.{number}", "value") for number in range(40)], 1),
        ([("spark.password", "secret"), ("spark.options", "-Da=b -Dc=d"), ("spark.empty", "")], 3),
        ([("spark.lines", "1\nspark.other=2"), ("spark.other", "3")], 2),
        ([("key=with", "sign"), ("key", "as well")], 2),
        ([("key=with", "sign=")], 3),
        ([("spark.hidden", "*********(redacted)")], 2),
    ],
    ids=["none", "plain", "asked", "lines", "same key", "no key", "hidden"],
)
def test_a_configuration_is_read_as_it_is_in_few_calls(entries: list[tuple[str, str]], calls: int) -> None:
    conf = Conf(*entries)
    assert read_configuration(SimpleNamespace(_conf=conf)) == dict(entries)
    assert conf.calls <= calls


def test_a_wrong_name_for_hosts_leaves_the_right_ones_as_they_are() -> None:
    configuration = {
        "spark.headwater.namespaces.broken": "h1,[",
        "spark.headwater.namespaces.lake": "nn1,nn2",
        "spark.sql.warehouse.dir": "hdfs://nn1/warehouse",
    }
    settings, faults = read_settings(configuration)
    assert len(faults) == 1
    environment = read_environment(
        None, configuration, settings.namespaces
    )  # without a context Hadoop has nothing to say
    assert environment.warehouse == "hdfs://nn1/warehouse"
    assert set(settings.namespaces) == {"lake"}
    assert environment.namespaces.logical(Endpoint("nn2")) == "lake"
