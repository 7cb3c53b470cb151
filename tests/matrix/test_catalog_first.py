"""The hook of Spark's own catalog comes when that is made, maybe for the first statement, and goes with the capture."""

from __future__ import annotations

from typing import Any

from headwater.events import CreateDatabase, DropDatabase
from headwater.events.catalog import ModificationEffect
from tests.kit.cases.catalog_lines import lines
from tests.kit.spark.driver import PLAIN, SECONDS, Driver, attached, driver_fixture, of

driver = driver_fixture(PLAIN)


def catalog_of(driver: Driver) -> Any:
    """Spark's own, if it has been made: asking the session for it would make it."""
    inside: Any = driver.spark
    shared = inside._jsparkSession.sharedState()
    field = shared.getClass().getDeclaredField("externalCatalog")
    field.setAccessible(True)
    return field.get(shared)


def ours(driver: Driver) -> list[str]:
    names = [str(each.getClass().getName()) for each in catalog_of(driver).listeners()]
    return [name for name in names if name.startswith("headwater")]


def test_from_the_first_statement_to_the_last(driver: Driver) -> None:
    """One story, since a driver has one first statement."""
    assert catalog_of(driver) is None, "capture must not have Spark make its catalog"

    first = driver.events_of("CREATE DATABASE IF NOT EXISTS one", "CREATE DATABASE IF NOT EXISTS one")
    assert [event.effect for event in of(CreateDatabase, first)] == [ModificationEffect.APPLIED]
    assert len(ours(driver)) == 1

    assert len(lines(driver.events_of("CREATE DATABASE IF NOT EXISTS two"))) == 1
    assert lines(driver.events_of("CREATE DATABASE IF NOT EXISTS two")) == []
    assert len(ours(driver)) == 1

    driver.capture.close(SECONDS)
    assert ours(driver) == []

    with attached(driver.spark) as (capture, bus):
        driver.run("DROP DATABASE IF EXISTS two", "DROP DATABASE IF EXISTS two")
        assert capture.drain(SECONDS)
        (dropped,) = of(DropDatabase, bus.events)
        assert dropped.effect is ModificationEffect.APPLIED
        assert dropped.database is None, "this capture never saw it"
        assert len(ours(driver)) == 1
    assert ours(driver) == []
