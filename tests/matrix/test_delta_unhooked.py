"""Delta without the hook in it: nothing that is reported is wrong, and what isn't exact says so."""

from __future__ import annotations

import pytest

from headwater.events import Committed, CreateTable, Gap
from headwater.events.catalog import ModificationEffect
from headwater.events.health import GapReason
from headwater.events.jobs import CommitKind, OverwriteScope
from tests.kit.formats.delta_racer import QUICK
from tests.kit.spark.driver import DELTA, Driver, driver_fixture, of, the

pytestmark = [pytest.mark.long, pytest.mark.needs("delta")]


driver = driver_fixture(DELTA, **QUICK, spark__headwater__capture__hooks="off")


@pytest.fixture
def db(driver: Driver) -> str:
    name = driver.database()
    driver.run(
        f"CREATE TABLE {name}.t USING delta AS SELECT 1 AS id, 'a' AS v",
        f"CREATE TABLE {name}.s USING delta AS SELECT 2 AS id, 'b' AS v",
        f"INSERT INTO {name}.s VALUES (3, 'c')",
    )
    return name


WRITES = {
    "append": "INSERT INTO {db}.t SELECT * FROM {db}.s",
    "count": "INSERT INTO {db}.t SELECT count(*), 'x' FROM {db}.s",
    "overwrite": "INSERT OVERWRITE {db}.t SELECT * FROM {db}.s",
    "merge": "MERGE INTO {db}.t USING {db}.s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "delete": "DELETE FROM {db}.t WHERE id = 1",
    "update": "UPDATE {db}.t SET v = 'z'",
}


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", WRITES)
def test_a_version_is_a_candidate(driver: Driver, db: str, name: str) -> None:
    events = driver.events_of(WRITES[name].format(db=db))

    committed = the(Committed, events)
    (output,) = committed.outputs
    assert output.snapshot is None
    assert 1 in output.candidates
    assert {gap.reason for gap in of(Gap, events)} == {GapReason.NOT_EXACT}
    reads = {str(each.table.table): each for each in committed.inputs if each.table}
    if "{db}.s" in WRITES[name]:
        assert reads["s"].snapshot == 1
    for each in committed.inputs:
        assert each.snapshot is not None or each.candidates


@pytest.mark.long
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "nothing", ["DELETE FROM {db}.t WHERE id = 9", "INSERT INTO {db}.t SELECT * FROM {db}.s WHERE id > 9"]
)
def test_nothing_stays_nothing(driver: Driver, db: str, nothing: str) -> None:
    events = driver.events_of(nothing.format(db=db))

    assert not of(Committed, events)
    assert not of(Gap, events)


@pytest.mark.long
def test_a_path_is_found_by_its_option(driver: Driver, db: str) -> None:
    path = str(driver.warehouse / db)
    events = driver.events_of(lambda spark: spark.table(f"{db}.s").write.format("delta").save(path))

    (output,) = the(Committed, events).outputs
    assert (output.snapshot, output.candidates) == (None, (0,))


@pytest.mark.long
def test_a_table_that_is_made_is_a_gap(driver: Driver, db: str) -> None:
    events = driver.events_of(f"CREATE TABLE {db}.n USING delta AS SELECT * FROM {db}.s")

    (output,) = the(Committed, events).outputs
    assert output.snapshot is None
    assert of(Gap, events)


@pytest.mark.long
def test_what_may_have_kept_its_table_is_not_said_to_replace_it(driver: Driver, db: str) -> None:
    """`saveAsTable` asks for a replacement and keeps the table; only the commit tells."""
    events = driver.events_of(
        lambda spark: spark.table(f"{db}.s").write.format("delta").mode("overwrite").saveAsTable(f"{db}.t")
    )

    assert the(CreateTable, events).effect is ModificationEffect.UNKNOWN
    (output,) = the(Committed, events).outputs
    assert (output.commit_kind, output.replaced) == (CommitKind.UNKNOWN, OverwriteScope.UNKNOWN)
    assert of(Gap, events)
