"""Mirrors on real tables of each format: made, led to by a lens, set back and removed, while main stays as it is."""

from __future__ import annotations

import pytest

from headwater.lens import lens
from headwater.versions.correction.execution.job_driver import set_back
from headwater.versions.correction.execution.redirects import lens_of
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.tables import mirror_branch
from tests.kit.spark.driver import Driver, shared_driver_fixture
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


def test_a_mirror_is_written_by_its_tables_name_and_main_stays(table: BranchedTable) -> None:
    """It finds a statement that reaches main, a mirror that begins elsewhere, and one that leaves something behind."""
    spark = table.driver.spark
    tables = SparkCorrectionTables(spark)
    tagged = tagged_snapshot(table)
    mirror = tables.make_mirror(planned(table, tagged), BRANCH)
    assert tables.make_mirror(planned(table, tagged), BRANCH) == mirror
    assert (mirror.begins_at_in_table, rows_of(table, mirror)) == (tagged, [(1, "main"), (2, "main")])
    asked = lens_of(CORRECTION, {table.name: mirror})
    with lens(spark, redirects=asked.redirects, name=asked.name, writes_elsewhere=False, reads_elsewhere=True):
        if table.format != "paimon":  # which can't do it beside Iceberg's extension
            spark.sql(f"UPDATE {table.name} SET v = 'right' WHERE id = 2")
        spark.sql(f"INSERT INTO {table.name} VALUES (4, 'new')")
        assert [row[0] for row in spark.sql(f"SELECT id FROM {table.name} ORDER BY id").collect()] == [1, 2, 4]
        using = "" if table.format == "paimon" else f" USING {table.format}"
        spark.sql(f"CREATE TABLE IF NOT EXISTS {table.name} (id INT, v STRING){using}")
        spark.sql(f"INSERT OVERWRITE {table.name} SELECT id + 10, v FROM {table.name}")
    second = "main" if table.format == "paimon" else "right"
    assert rows_of(table, mirror) == [(11, "main"), (12, second), (14, "new")]
    assert table.rows() == [(1, "main"), (2, "main"), (3, "main")]
    set_back(spark, mirror)
    assert rows_of(table, mirror) == [(1, "main"), (2, "main")]
    set_back(spark, mirror)
    tables.remove_mirror(table.name, BRANCH)
    tables.remove_mirror(table.name, BRANCH)
    assert (table.branches.list(), table.ids()) == ((), [1, 2, 3])


def test_a_mirror_begins_empty(table: BranchedTable) -> None:
    spark = table.driver.spark
    tables = SparkCorrectionTables(spark)
    head = tables.head_of_table(table.name)
    mirror = tables.make_mirror(planned(table, None), BRANCH)
    assert (mirror.expected, rows_of(table, mirror)) == (head, [])
    assert tables.make_mirror(planned(table, None), BRANCH) == mirror
    spark.sql(f"INSERT INTO {mirror.name} VALUES (7, 'x')")
    assert tables.head_of_mirror(mirror) != mirror.begins_at
    set_back(spark, mirror)
    assert (rows_of(table, mirror), table.ids()) == ([], [1, 2, 3])
    tables.remove_mirror(table.name, BRANCH)


def test_what_production_adds_is_taken_over_once(table: BranchedTable) -> None:
    """It finds rows that are added again by who goes on after a death. Paimon's table has a key, so that rows which are
    added may replace others, and nothing is taken over."""
    tables = SparkCorrectionTables(table.driver.spark)
    tagged = tagged_snapshot(table)
    mirror = tables.make_mirror(planned(table, tagged), BRANCH)
    table.add(4)
    later = tables.later_commits(table.name, tagged)
    assert later.count == 2
    if table.format == "paimon":
        assert len(later.obstacles) == 2
        return
    assert (later.adds, later.obstacles) == (True, ())
    for _ in range(2):
        tables.take_over(mirror, tagged, later.newest, "headwater-test/7")
        assert [row[0] for row in rows_of(table, mirror)] == [1, 2, 3, 4]
    table.add(5)
    newest = tables.later_commits(table.name, later.newest).newest
    tables.take_over(mirror, later.newest, newest, "headwater-test/9")
    assert [row[0] for row in rows_of(table, mirror)] == [1, 2, 3, 4, 5]
    table.sql(f"DELETE FROM {table.name} WHERE id = 1")
    [obstacle] = tables.later_commits(table.name, newest).obstacles
    assert obstacle.startswith(f"{table.name}@")


def test_tables_arent_made_anew_on_branches(driver: Driver, table: BranchedTable) -> None:
    """In a Hadoop catalog a new table of the branch's name would be made, and the mirror would stay as it is."""
    spark = driver.spark
    if table.format == "delta":
        return  # its branches are tables
    mirror = SparkCorrectionTables(spark).make_mirror(planned(table, None), BRANCH)
    asked = lens_of(CORRECTION, {table.name: mirror})
    rows = spark.sql("SELECT 9 AS id, 'x' AS v")
    with lens(spark, redirects=asked.redirects, name=asked.name, writes_elsewhere=False, reads_elsewhere=True):
        for way in (lambda: rows.writeTo(table.name).createOrReplace(), lambda: spark.sql(f"DROP TABLE {table.name}")):
            with pytest.raises(Exception, match="which isn't dropped, or made anew as a table"):
                way()
        if table.format == "iceberg":
            with pytest.raises(Exception, match="a stream of Iceberg reads main"):
                spark.readStream.table(table.name)
    assert (rows_of(table, mirror), table.ids()) == ([], [1, 2, 3])
