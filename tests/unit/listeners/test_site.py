"""Where a driver stands, as its configuration says it."""

from __future__ import annotations

from headwater.events.identity.hosts import Endpoint
from headwater.listeners.installation.site import site_of
from headwater.listeners.settings import read_settings


def test_a_wrong_name_for_hosts_leaves_the_right_ones_as_they_are() -> None:
    configuration = {
        "spark.headwater.namespaces.broken": "h1,[",
        "spark.headwater.namespaces.lake": "nn1,nn2",
        "spark.sql.warehouse.dir": "hdfs://nn1/warehouse",
    }
    settings, faults = read_settings(configuration)
    assert len(faults) == 1
    site = site_of(None, configuration, settings.namespaces)  # without a context Hadoop has nothing to say
    assert site.warehouse == "hdfs://nn1/warehouse"
    assert set(settings.namespaces) == {"lake"}
    assert site.namespaces.logical(Endpoint("nn2")) == "lake"
