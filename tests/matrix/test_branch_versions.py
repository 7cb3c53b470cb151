"""`VERSION AS OF 'branch.tag'` wherever a statement can have it, and what is refused: on real tables."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lens import lens
from headwater.versions.spark_tables import load_table
from tests.kit.cases.branch_versions import KEY, naming_branches, snapshots_of, tag_branch
from tests.kit.cases.lens import ids
from tests.kit.spark.driver import Driver, driver_fixture
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, BranchedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branch traps"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
FIX = "VERSION AS OF 'fix.checked'"

driver = driver_fixture(EXTENSIONS)


def branched(driver: Driver, form: str) -> BranchedTable:
    """A table whose branch `fix` has row 9, which is tagged, and then row 10."""
    table = BranchedTable(driver, form, driver.database(CATALOGS[form]))
    table.branches.create("fix", table.tag)
    table.add(9, "fix")
    if form != "delta":
        tag_branch(table, "fix", "checked")
    table.add(10, "fix")
    return table


@pytest.fixture(scope="module")
def iceberg(driver: Driver) -> BranchedTable:
    return branched(driver, "iceberg")


@pytest.fixture
def spark(driver: Driver) -> Generator[SparkSession, None, None]:
    with naming_branches(driver.spark) as session:
        yield session


def _of_view(spark: SparkSession, table: str) -> str:
    spark.sql(f"CREATE OR REPLACE VIEW spark_catalog.default.of_branch AS SELECT * FROM {table} {FIX}")
    return "SELECT id FROM spark_catalog.default.of_branch"


def _of_short_name(spark: SparkSession, table: str) -> str:
    spark.sql(f"USE {table.rpartition('.')[0]}")
    return f"SELECT id FROM t {FIX}"


def _of_written(spark: SparkSession, table: str) -> str:
    target = f"{table.rpartition('.')[0]}.target"
    spark.sql(f"CREATE TABLE {target} USING iceberg AS SELECT 1 AS id, 'x' AS v")
    source = f"USING (SELECT * FROM {table} {FIX}) s ON s.id = t.id"
    spark.sql(f"MERGE INTO {target} t {source} WHEN NOT MATCHED THEN INSERT *")
    return f"SELECT id FROM {target}"


WAYS: dict[str, Callable[[SparkSession, str], str]] = {
    "alias": lambda _, t: f"SELECT x.id FROM {t} {FIX} AS x",
    "FOR VERSION": lambda _, t: f"SELECT id FROM {t} FOR {FIX}",
    "subquery": lambda _, t: f"SELECT id FROM {t} {FIX} WHERE id IN (SELECT id FROM {t} {FIX})",
    "scalar subquery": lambda _, t: f"SELECT id FROM {t} {FIX} WHERE id <= (SELECT max(id) FROM {t} {FIX})",
    "CTE": lambda _, t: f"WITH x AS (SELECT id FROM {t} {FIX}) SELECT id FROM x",
    "join of two": lambda _, t: f"SELECT x.id FROM {t} {FIX} x LEFT JOIN {t} VERSION AS OF 'main.eod' y USING (id)",
    "view": _of_view,
    "short name": _of_short_name,
    "source of MERGE": _of_written,
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_name_a_version(iceberg: BranchedTable, spark: SparkSession, way: str) -> None:
    """Fails for a way that isn't seen: Iceberg knows no such version."""
    assert ids(spark.sql(WAYS[way](spark, iceberg.name))) == [1, 2, 9]


def test_what_isnt_on_the_branch_is_refused_with_what_is(iceberg: BranchedTable, spark: SparkSession) -> None:
    """Fails if a number or a tag of main is read as the branch's: main's row 3 isn't in it."""
    late = iceberg.driver.rows(f"SELECT snapshot_id FROM {iceberg.name}.refs WHERE name = 'main'")[0][0]
    iceberg.sql(f"ALTER TABLE {iceberg.name} CREATE TAG late")
    for part, words in (("late", rf"the tag 'late' \({late}\)"), (str(late), f"the snapshot {late}")):
        with pytest.raises(Exception, match=f"{words} of {iceberg.name} isn't on the branch fix, whose tags are"):
            spark.sql(f"SELECT * FROM {iceberg.name} VERSION AS OF 'fix.{part}'")
    with pytest.raises(Exception, match=r"branch main of \S+ has no tag 'no.such': its tags are eod, late"):
        spark.sql(f"SELECT * FROM {iceberg.name} VERSION AS OF 'main.no.such'")


def test_what_the_format_knows_stays_and_other_versions_are_left_alone(driver: Driver, spark: SparkSession) -> None:
    """Fails if the setting takes a name from somebody: a tag with a dot, a number, a tag, and tables without branches,
    of which Spark says itself what is wrong."""
    table = branched(driver, "iceberg")
    table.sql(f"ALTER TABLE {table.name} CREATE TAG `fix.checked`")
    assert ids(spark.sql(f"SELECT id FROM {table.name} {FIX}")) == [1, 2, 3]
    assert ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'eod'")) == [1, 2]
    assert ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF {snapshots_of(table, 'fix')[0]}")) == [1]
    spark.range(1).createOrReplaceTempView("no_table")
    spark.sql(f"CREATE TABLE spark_catalog.{driver.database('spark_catalog')}.p USING parquet AS SELECT 1 AS id")
    for name in ("no_table", f"spark_catalog.{driver.database('spark_catalog')}.none", f"{table.name}.nothing"):
        with pytest.raises(Exception, match=r"(?i)not.supported|unsupported|not found|cannot"):
            spark.sql(f"SELECT * FROM {name} {FIX}").collect()


def test_a_setting_that_cant_be_read_is_named_by_statements_that_need_it(
    iceberg: BranchedTable, spark: SparkSession
) -> None:
    """Fails if another statement is harmed, or the SET that mends it."""
    spark.sql(f"SET {KEY} = perhaps")
    assert ids(spark.sql(f"SELECT id FROM {iceberg.name} VERSION AS OF 'eod'")) == [1, 2]
    with pytest.raises(Exception, match=rf"{KEY} = perhaps is neither true nor false"):
        spark.sql(f"SELECT id FROM {iceberg.name} {FIX}")
    spark.sql(f"SET {KEY} = true")
    assert ids(spark.sql(f"SELECT id FROM {iceberg.name} {FIX}")) == [1, 2, 9]


def test_a_lens_leaves_it_as_it_is_written(driver: Driver, spark: SparkSession) -> None:
    """Fails if a lens's rule, which stands in the place of the other one, doesn't read it, or pins it elsewhere."""
    for form in ("iceberg", "delta"):
        table = branched(driver, form)
        begun = snapshots_of(table, "fix")[-2]
        with lens(spark, pins={table.name: snapshots_of(table, "fix")[0]}, name="an older one"):
            rows = ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'fix.{begun}'"))
        assert rows == [1, 2, 9]


def test_a_branch_that_another_session_makes_meanwhile_is_found(driver: Driver, spark: SparkSession) -> None:
    """Fails if what a catalog remembers of the table is taken for what there is: Iceberg's keeps tables."""
    table = branched(driver, "iceberg")
    assert ids(spark.sql(f"SELECT id FROM {table.name} {FIX}")) == [1, 2, 9]
    table.branches.create("second", table.tag)
    table.add(11, "second")
    tag_branch(table, "second", "eleven")
    assert ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'second.eleven'")) == [1, 2, 11]


def test_delta_reads_the_clone_at_its_own_versions(driver: Driver, spark: SparkSession) -> None:
    """Fails if a version of main is read for the branch's, or a table that only has such a name for a branch."""
    table = branched(driver, "delta")
    assert [ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'fix.{each}'")) for each in (0, 1, 2)] == [
        [1, 2],
        [1, 2, 9],
        [1, 2, 9, 10],
    ]
    assert ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'main.3'")) == [1, 2, 3]
    with pytest.raises(Exception, match=r"Cannot time travel Delta table to version 9"):
        spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'fix.9'").collect()
    table.sql(f"CREATE TABLE {table.name}__other USING delta AS SELECT 77 AS id")
    with pytest.raises(Exception, match="has no branch 'other': its branches are main, fix"):
        spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'other.0'")


@pytest.mark.needs("paimon")
def test_paimon_reads_the_branchs_tag_where_main_has_one_of_that_name(driver: Driver, spark: SparkSession) -> None:
    """Fails if Paimon's own trap is stepped into, which reads main's; and if an expired snapshot is read as another."""
    table = branched(driver, "paimon")
    table.sql(f"CALL pai.sys.create_tag(table => '{table.database}.t', tag => 'checked', snapshot => 3)")
    assert ids(spark.sql(f"SELECT id FROM {table.name} {FIX}")) == [1, 2, 9]
    assert ids(spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'main.checked'")) == [1, 2, 3]
    with pytest.raises(Exception, match=r"branch fix of \S+ has no snapshot 99: it has the snapshots from 2 to 4"):
        spark.sql(f"SELECT id FROM {table.name} VERSION AS OF 'fix.99'")
    inside: Any = spark
    branch = load_table(driver.spark, table.branches.name_of("fix"), anew=True).table.getTable()
    builder = inside._jvm.org.apache.paimon.options.ExpireConfig.builder()
    branch.newExpireSnapshots().config(builder.snapshotRetainMin(1).snapshotRetainMax(1).build()).expire()
    with pytest.raises(Exception, match=r"the tag 'checked' has expired from the branch fix of \S+, and Paimon"):
        spark.sql(f"SELECT id FROM {table.name} {FIX}")
