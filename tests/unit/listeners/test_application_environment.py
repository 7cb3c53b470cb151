"""Where a driver stands, as its configuration says it."""

from __future__ import annotations

from headwater.events.identity.hosts import Endpoint
from headwater.listeners.installation.application_environment import read_environment
from headwater.listeners.settings import read_settings


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
