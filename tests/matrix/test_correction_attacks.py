"""What others do to the tables and mirrors of a correction while it is open, or within its switch: nothing of theirs is
lost in silence, and whoever corrects is told what stands in the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.lens import lens
from headwater.versions.branches import BranchError
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.correction.execution.redirects import lens_of
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.tables import CorrectionError, Mirror, mirror_branch
from headwater.versions.correction.switched_tables import SparkSwitchTables
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS, BranchedTable
from tests.kit.versions.mirrors import CORRECTION, planned, rows_of, tagged_snapshot

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
]

driver = shared_driver_fixture(EXTENSIONS)
BRANCH = mirror_branch(CORRECTION)


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, driver: Driver) -> BranchedTable:
    return BranchedTable(driver, request.param, driver.database(CATALOGS[request.param]))


@pytest.fixture
def delta(driver: Driver) -> BranchedTable:
    return BranchedTable(driver, "delta", driver.database(CATALOGS["delta"]))


def mirror_of(table: BranchedTable) -> Mirror:
    spark = table.driver.spark
    return SparkCorrectionTables(spark).make_mirror(planned(table, tagged_snapshot(table)), BRANCH)


def drop(table: BranchedTable) -> None:
    table.sql(f"DROP TABLE {table.name}")


def drop_and_make_anew(table: BranchedTable) -> None:
    """Delta's versions have the same numbers again."""
    drop(table)
    BranchedTable(table.driver, table.format, table.database)


def is_there(table: BranchedTable, mirror: Mirror) -> bool:
    try:
        table.driver.spark.table(mirror.name).collect()
    except Exception:  # noqa: BLE001 - each format has errors of its own
        return False
    return True


def test_a_mirror_takes_account_of_no_more_than_it_was_made_from(table: BranchedTable) -> None:
    """Row 3 came after the snapshot: a switch without a run before it would lose it, and so is refused."""
    mirror = mirror_of(table)
    assert mirror.expected == mirror.begins_at_in_table
    assert mirror.expected != SparkCorrectionTables(table.driver.spark).head_of_table(table.name)


@pytest.mark.parametrize("change", [drop, drop_and_make_anew])
def test_mirrors_of_a_table_that_was_dropped_are_removed(
    table: BranchedTable, change: Callable[[BranchedTable], None]
) -> None:
    """Nothing else finds a clone that is left, or a correction that can't be ended."""
    spark, mirror = table.driver.spark, mirror_of(table)
    change(table)
    if change is drop:
        with pytest.raises(BranchError, match=f"say --dropped {table.name}"):
            SparkCorrectionTables(spark).remove_mirror(table.name, BRANCH)
    for _ in range(2):  # a second time for who was killed
        SparkCorrectionTables(spark, [table.name]).remove_mirror(table.name, BRANCH)
    assert not is_there(table, mirror)
    if change is not drop:
        assert table.ids() == [1, 2, 3]


def test_columns_that_production_gets_meanwhile_are_kept(delta: BranchedTable, tmp_path: Any) -> None:
    """Branches of Delta have columns of their own, and a switch would give main those of the mirror."""
    spark, mirror = delta.driver.spark, mirror_of(delta)
    with open_new_store(str(tmp_path / "store.db")) as store:
        tables = SparkSwitchTables(spark, store, {delta.name: BRANCH})
        assert tables.problem(delta.name, BRANCH) is None
        begun = branches_of(spark, delta.name).main_head()
        delta.sql(f"ALTER TABLE {delta.name} ADD COLUMNS (w INT)", f"INSERT INTO {delta.name} VALUES (4, 'x', 7)")
        assert "has got other columns" in str(tables.problem(delta.name, BRANCH))
        corrected = SparkCorrectionTables(spark)
        later = corrected.later_commits(delta.name, begun or 0)
        with pytest.raises(CorrectionError, match=r"other columns \(w\)"):
            corrected.take_over(mirror, begun or 0, later.newest, "headwater-test/1")
        asked = lens_of(CORRECTION, {delta.name: mirror})
        with lens(spark, redirects=asked.redirects, name=asked.name, writes_elsewhere=False, reads_elsewhere=True):
            spark.sql(f"ALTER TABLE {delta.name} ADD COLUMNS (w INT)")
        assert tables.problem(delta.name, BRANCH) is None
        corrected.take_over(mirror, begun or 0, later.newest, "headwater-test/1")
    assert rows_of(delta, mirror) == [(1, "main"), (2, "main"), (4, "x")]
    assert delta.rows() == [(1, "main"), (2, "main"), (3, "main"), (4, "x")]
