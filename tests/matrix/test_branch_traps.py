"""What branches of each format don't do, or do in silence: each trap on real tables, and what is said of it.

Where a format gets better, a test here fails, and docs/branches.md has to change.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headwater.events import BranchMerged, Committed, MainReplaced
from headwater.events.jobs import CommitKind
from headwater.versions.branches import BranchError, BranchManager, MainMovedError, MoveKind
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.spark_tables import load_table
from tests.kit.spark.driver import Driver, driver_fixture, the
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS, BranchedTable

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branch traps"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
LATER = datetime(2090, 1, 1, tzinfo=timezone.utc)
only_with_paimon = pytest.mark.needs("paimon")

driver = driver_fixture(EXTENSIONS)


def table_of(driver: Driver, form: str) -> BranchedTable:
    return BranchedTable(driver, form, driver.database(CATALOGS[form]))


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, driver: Driver) -> BranchedTable:
    return table_of(driver, request.param)


@pytest.fixture
def iceberg(driver: Driver) -> BranchedTable:
    return table_of(driver, "iceberg")


@pytest.fixture
def delta(driver: Driver) -> BranchedTable:
    return table_of(driver, "delta")


@pytest.fixture
def paimon(driver: Driver) -> BranchedTable:
    return table_of(driver, "paimon")


# Every format


def test_main_that_moved_on_is_left_as_it_is(table: BranchedTable) -> None:
    """The move was planned, and main got another commit: by number, and by none."""
    before = table.branches.create("fix", table.tag)
    table.add(9, "fix")
    formats = branches_of(table.driver.spark, table.name)
    planned = formats.plan_move(next(iter(formats.branches())))
    table.add(4)
    with pytest.raises(MainMovedError):
        formats.move_main(planned)
    with pytest.raises(MainMovedError, match="look at what has come"):
        table.branches.merge("fix", main=planned.previous)
    assert (table.ids(), before.name) == ([1, 2, 3, 4], "fix")
    assert table.branches.merge("fix", dry_run=True).previous != planned.previous
    assert table.ids() == [1, 2, 3, 4]


def test_a_branch_without_commits_of_its_own_puts_main_back_at_its_tag(table: BranchedTable) -> None:
    table.branches.create("back", table.tag)
    moved = table.branches.merge("back")
    assert (table.ids(), len(moved.lost_snapshots)) == ([1, 2], 1)
    assert moved.kind is (MoveKind.RESTORE if table.format == "delta" else MoveKind.REPLACE)


def test_a_branch_takes_mains_place_twice(table: BranchedTable) -> None:
    """The branch stays usable, and what main got after the first time goes too."""
    table.branches.create("fix", table.tag)
    table.add(9, "fix")
    table.branches.replace_main("fix")
    assert table.ids() == [1, 2, 9]
    table.add(4)
    table.add(10, "fix")
    table.branches.replace_main("fix")
    assert (table.ids(), table.ids("fix")) == ([1, 2, 9, 10], [1, 2, 9, 10])
    told = [event for event in table.events if isinstance(event, MainReplaced)]
    assert [(event.branch, event.previous) for event in told] == [("fix", None), ("fix", None)]


def test_a_merge_that_changes_nothing_makes_no_commit(table: BranchedTable) -> None:
    table.tag = table.tag_now("now")
    table.branches.create("same", table.tag)
    moved = table.branches.merge("same")
    assert (moved.kind, moved.snapshot, moved.previous) == (MoveKind.NOTHING, moved.previous, moved.snapshot)


def test_moves_of_main_are_reported_once_with_what_they_were_made_from(table: BranchedTable) -> None:
    """Capture sees statements, and these commits are none: it reports none of them, and the manager each once."""
    table.branches.create("fix", table.tag)
    table.add(9, "fix")
    branch = table.branches.list()[0]
    captured = table.driver.events_of(lambda _: table.branches.merge("fix"))
    captured += table.driver.events_of(lambda _: table.branches.roll_back(the_one(merged_from(table))))
    assert [event for event in captured if isinstance(event, Committed)] == []
    merged, rolled = (event for event in table.events if isinstance(event, Committed))
    head = branches_of(table.driver.spark, table.name).main_head()
    before = the_one(merged_from(table))
    if table.format == "iceberg":  # main points to snapshots that are there
        pointers = [(event.outputs[0].snapshot, event.outputs[0].commit_kind) for event in (merged, rolled)]
        assert pointers == [(branch.head, CommitKind.RESTORE), (before, CommitKind.RESTORE)]
        assert merged.inputs == rolled.inputs == ()
        return
    assert [event.outputs[0].snapshot for event in (merged, rolled)] == [before + 1, head]
    assert [event.outputs[0].parent for event in (merged, rolled)] == [before, before + 1]
    read, back = merged.inputs[0], rolled.inputs[0]
    assert (read.snapshot, read.branch) == (branch.head, "fix" if table.format == "paimon" else None)
    assert (back.snapshot, back.dataset) == (before, rolled.outputs[0].dataset)
    assert (read.dataset == merged.outputs[0].dataset) is (table.format == "paimon")


def merged_from(table: BranchedTable) -> tuple[int | None, ...]:
    return tuple(event.previous_snapshot for event in table.events if isinstance(event, BranchMerged))


def test_what_an_expiry_makes_unreadable_is_foretold(table: BranchedTable) -> None:
    """Each snapshot of main is asked of beforehand, and read afterwards; a tag and what is young keep theirs."""
    table.sql(f"INSERT OVERWRITE {table.name} VALUES (50, 'new')")
    every = table.main_snapshots()
    formats = branches_of(table.driver.spark, table.name)
    assert formats.unreadable_after(every, datetime(2000, 1, 1, tzinfo=timezone.utc)) == set()
    foretold = formats.unreadable_after(every, LATER)
    assert 0 < len(foretold) < len(every)
    table.expire_everything()
    readable = set()
    for snapshot in every:
        with suppress(Exception):
            table.driver.rows(f"SELECT * FROM {table.name} VERSION AS OF {snapshot}")
            readable.add(snapshot)
    assert set(every) - readable == foretold
    assert branches_of(table.driver.spark, table.name).unreadable_after(every, LATER) == foretold


# Iceberg


def test_iceberg_main_points_to_the_branch_and_tags_of_what_it_loses_go(iceberg: BranchedTable) -> None:
    """Replacing main also expires what only main had; merging leaves it to be gone back to."""
    iceberg.tag_now("late")
    iceberg.branches.create("fix", iceberg.tag)
    iceberg.add(9, "fix")
    moved = iceberg.branches.merge("fix")
    names = [row[0] for row in iceberg.driver.rows(f"SELECT name FROM {iceberg.name}.refs ORDER BY name")]
    assert (moved.lost_tags, names) == (("late",), ["eod", "fix", "main"])
    there = {row[0] for row in iceberg.driver.rows(f"SELECT snapshot_id FROM {iceberg.name}.snapshots")}
    assert set(moved.lost_snapshots) <= there
    pointer = the(Committed, iceberg.events).outputs[0]
    assert (pointer.snapshot, pointer.commit_kind, pointer.main) == (moved.snapshot, CommitKind.RESTORE, True)
    iceberg.add(4)
    again = iceberg.branches.replace_main("fix")
    there = {row[0] for row in iceberg.driver.rows(f"SELECT snapshot_id FROM {iceberg.name}.snapshots")}
    assert (len(again.lost_snapshots), there & set(again.lost_snapshots)) == (1, set())


def test_iceberg_branches_of_other_programs_are_listed_with_where_they_leave_main(iceberg: BranchedTable) -> None:
    head = iceberg.driver.rows(f"SELECT snapshot_id FROM {iceberg.name}.refs WHERE name = 'main'")[0][0]
    iceberg.sql(
        f"ALTER TABLE {iceberg.name} CREATE BRANCH theirs", f"INSERT INTO {iceberg.name}.branch_theirs VALUES (7, 'x')"
    )
    iceberg.add(4)
    found = iceberg.branches.list()[0]
    assert (found.name, found.tag, found.tagged_snapshot) == ("theirs", None, head)


def test_iceberg_branches_share_the_schema_of_the_table(iceberg: BranchedTable) -> None:
    iceberg.branches.create("fix", iceberg.tag)
    iceberg.sql(f"ALTER TABLE {iceberg.name} ADD COLUMN w INT")
    assert iceberg.driver.spark.table(iceberg.branches.name_of("fix")).columns == ["id", "v", "w"]


def test_iceberg_tags_of_a_branch_begin_no_other(iceberg: BranchedTable) -> None:
    iceberg.branches.create("fix", iceberg.tag)
    iceberg.add(9, "fix")
    head = iceberg.branches.list()[0].head
    iceberg.sql(f"ALTER TABLE {iceberg.name} CREATE TAG inner AS OF VERSION {head}")
    with pytest.raises(BranchError, match="isn't of main"):
        iceberg.branches.create("second", "inner")


def test_iceberg_streams_neither_read_a_branch_nor_write_one_by_name_or_option(
    iceberg: BranchedTable, tmp_path: Path
) -> None:
    """A stream that is to read a branch reads main, one that is to write it writes main, and the branch's name makes
    a table beside it: all of that without an error. `foreachBatch` writes a branch."""
    spark = iceberg.driver.spark
    iceberg.branches.create("fix", iceberg.tag)
    iceberg.add(9, "fix")
    spark.range(20, 21).selectExpr("cast(id AS int) AS id", "'s' AS v").write.parquet(str(tmp_path / "source"))

    def finish(writer: Any, checkpoint: str, target: str) -> None:
        begun = writer.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / checkpoint))
        query = begun.toTable(target)
        assert query.awaitTermination(120)

    iceberg.sql(f"CREATE TABLE ice.{iceberg.database}.out (id INT, v STRING) USING iceberg")
    reader = spark.readStream.table(f"{iceberg.name}.branch_fix")
    finish(reader.writeStream.format("iceberg"), "one", f"ice.{iceberg.database}.out")
    read = sorted(row[0] for row in iceberg.driver.rows(f"SELECT id FROM ice.{iceberg.database}.out"))
    assert 9 not in read

    def source() -> Any:
        return spark.readStream.schema("id INT, v STRING").parquet(str(tmp_path / "source"))

    finish(source().writeStream.format("iceberg").option("branch", "fix"), "two", iceberg.name)
    iceberg.sql(f"REFRESH TABLE {iceberg.name}")
    assert 20 in iceberg.ids()

    def append(rows: Any, _: int) -> None:
        rows.writeTo(f"{iceberg.name}.branch_fix").append()

    into = source().writeStream.foreachBatch(append).trigger(availableNow=True)
    assert into.option("checkpointLocation", str(tmp_path / "each")).start().awaitTermination(120)
    iceberg.sql(f"REFRESH TABLE {iceberg.name}")
    assert iceberg.ids("fix") == [1, 2, 9, 20]
    finish(source().writeStream.format("iceberg"), "three", f"{iceberg.name}.branch_fix")
    tables = iceberg.driver.rows(f"SHOW TABLES IN ice.{iceberg.database}.t")
    assert [row[1] for row in tables] == ["branch_fix"]


def test_iceberg_expiry_takes_what_is_behind_a_branch(iceberg: BranchedTable) -> None:
    iceberg.branches.create("fix", iceberg.tag)
    iceberg.add(9, "fix")
    iceberg.add(10, "fix")
    iceberg.sql(f"ALTER TABLE {iceberg.name} DROP TAG eod")
    origin = iceberg.branches.list()[0].tagged_snapshot
    risks = {risk.snapshot: risk.consequence for risk in iceberg.branches.check_expiry(LATER)}
    assert len(risks) == 3
    assert "isn't known any more" in risks[origin]
    assert iceberg.branches.check_expiry(datetime(2000, 1, 1, tzinfo=timezone.utc)) == ()
    table = load_table(iceberg.driver.spark, iceberg.name, anew=True).table.table()  # not CALL: Paimon takes it
    table.expireSnapshots().expireOlderThan(int(LATER.timestamp() * 1000)).retainLast(1).commit()
    iceberg.sql(f"REFRESH TABLE {iceberg.name}")
    there = {row[0] for row in iceberg.driver.rows(f"SELECT snapshot_id FROM {iceberg.name}.snapshots")}
    assert there.isdisjoint(risks)
    assert iceberg.ids("fix") == [1, 2, 9, 10]


@only_with_paimon  # which is there for Spark 3.5 alone, as this way for a stream to write a branch
def test_iceberg_skips_what_a_copied_checkpoint_writes_into_a_branch(iceberg: BranchedTable, tmp_path: Path) -> None:
    """Its sink looks on main for what the query has committed: main's batch counts for the branch, without an error. A
    copy with an id of its own writes. (A stream writes a branch where the session's `spark.wap.branch` names it.)"""
    spark, source = iceberg.driver.spark, str(tmp_path / "source")
    iceberg.sql(f"ALTER TABLE {iceberg.name} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")

    def bring(number: int) -> None:
        rows = spark.range(number, number + 1).selectExpr("cast(id AS int) AS id", "'s' AS v")
        rows.coalesce(1).write.mode("append").parquet(source)

    def run(checkpoint: str) -> None:
        read = spark.readStream.schema("id INT, v STRING").parquet(source)
        write = read.writeStream.format("iceberg").option("checkpointLocation", str(tmp_path / checkpoint))
        assert write.trigger(availableNow=True).toTable(iceberg.name).awaitTermination(120)
        iceberg.sql(f"REFRESH TABLE {iceberg.name}")

    bring(20)
    run("main's")
    for copied in ("copy", "copy with another id"):
        shutil.copytree(tmp_path / "main's", tmp_path / copied)
    (tmp_path / "copy with another id" / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    (tmp_path / "copy with another id" / ".metadata.crc").unlink()
    iceberg.branches.create("fix", iceberg.tag_now("twenty"))
    bring(21)
    run("main's")
    assert (iceberg.ids(), iceberg.ids("fix")) == ([1, 2, 3, 20, 21], [1, 2, 3, 20])
    spark.conf.set("spark.wap.branch", "fix")
    try:
        run("copy")
        assert iceberg.ids("fix") == [1, 2, 3, 20]
        run("copy with another id")
        assert iceberg.ids("fix") == [1, 2, 3, 20, 21]
    finally:
        spark.conf.unset("spark.wap.branch")
    assert iceberg.ids() == [1, 2, 3, 20, 21]


# Delta


def test_delta_streams_of_main_stop_at_a_merge_or_see_rows_again(delta: BranchedTable, tmp_path: Path) -> None:
    """The merge brings back a file that main had removed, as a change of data."""
    spark = delta.driver.spark

    def read(checkpoint: str, **options: str) -> None:
        rows = spark.readStream.options(**options).table(delta.name)
        write = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / checkpoint))
        assert write.trigger(availableNow=True).start(str(tmp_path / f"{checkpoint} rows")).awaitTermination(120)

    for checkpoint in ("strict", "lenient"):
        read(checkpoint)
    delta.branches.create("back", delta.tag)
    delta.sql(f"DELETE FROM {delta.name} WHERE id = 1")
    read("lenient", ignoreChanges="true")
    delta.branches.merge("back")
    assert delta.ids() == [1, 2]
    with pytest.raises(Exception, match=r"(?i)delet|ignoreChanges|skipChangeCommits"):
        read("strict")
    read("lenient", ignoreChanges="true")
    seen = spark.read.schema("id INT").parquet(str(tmp_path / "lenient rows"))
    assert sorted(row[0] for row in seen.collect()) == [1, 1, 2, 3]


def test_delta_merges_columns_and_partitions_that_only_the_branch_has(driver: Driver) -> None:
    """Whatever the session says of dynamic overwrites, which would leave main's own partitions."""
    table = table_of(driver, "delta")
    name = f"spark_catalog.{table.database}.p"
    driver.run(
        f"CREATE TABLE {name} (id INT, v STRING) USING delta PARTITIONED BY (v)", f"INSERT INTO {name} VALUES (1, 'a')"
    )
    branches = BranchManager(driver.spark, name)
    branches.create("fix", "1")
    driver.run(f"INSERT INTO {name} VALUES (2, 'b')", f"INSERT INTO {branches.name_of('fix')} VALUES (3, 'c')")
    driver.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        branches.merge("fix")
        assert sorted(map(tuple, driver.rows(f"SELECT * FROM {name}"))) == [(1, "a"), (3, "c")]
        driver.run(
            f"ALTER TABLE {branches.name_of('fix')} ADD COLUMN w INT",
            f"INSERT INTO {branches.name_of('fix')} VALUES (4, 'd', 5)",
        )
        branches.merge("fix")
    finally:
        driver.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert (4, "d", 5) in map(tuple, driver.rows(f"SELECT * FROM {name}"))
    assert driver.rows(f"DESCRIBE DETAIL {name}")[0]["partitionColumns"] == ["v"]


def test_delta_merges_deleted_rows_checks_and_columns_that_are_computed(driver: Driver) -> None:
    """Deletion vectors on both sides, a CHECK that the branch's rows have to keep, and a column that Delta computes.
    A merge and its undoing by the version of before have the same rows, columns and properties."""
    table = table_of(driver, "delta")
    name = f"spark_catalog.{table.database}.c"
    builder, tables = delta_builder(driver, name)
    twice = tables.columnBuilder("twice").dataType("INT").generatedAlwaysAs("cast(id * 2 AS INT)").build()
    builder.addColumn("id", "INT").addColumn(twice).property("delta.enableDeletionVectors", "true").execute()
    driver.run(
        f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (id > 0)",
        f"INSERT INTO {name} (id) SELECT cast(id AS INT) FROM range(1, 9)",
        f"DELETE FROM {name} WHERE id = 3",
    )
    branches = BranchManager(driver.spark, name)
    branches.create("fix", "3")
    fix = branches.name_of("fix")
    driver.run(
        f"DELETE FROM {fix} WHERE id = 4", f"DELETE FROM {name} WHERE id = 5", f"DELETE FROM {name} WHERE id = 6"
    )
    moved = branches.merge("fix")
    kept = [(number, number * 2) for number in (1, 2, 5, 6, 7, 8)]
    assert sorted(map(tuple, driver.rows(f"SELECT * FROM {name}"))) == kept
    properties = driver.rows(f"DESCRIBE DETAIL {name}")[0]["properties"]
    assert properties["delta.constraints.positive"] == "id > 0"
    assert not [key for key in properties if key.startswith("headwater")]
    done = branches.roll_back(moved.previous or 0)
    before = [(number, number * 2) for number in (1, 2, 4, 7, 8)]
    assert sorted(map(tuple, driver.rows(f"SELECT * FROM {name}"))) == before
    assert done.snapshot == (moved.previous or 0) + 2
    driver.run(f"INSERT INTO {name} (id) VALUES (9)")
    assert (9, 18) in map(tuple, driver.rows(f"SELECT * FROM {name}"))
    driver.run(f"ALTER TABLE {fix} DROP CONSTRAINT positive", f"INSERT INTO {fix} (id) VALUES (-1)")
    with pytest.raises(Exception, match=r"(?i)check constraint positive"):
        branches.merge("fix")
    assert (9, 18) in map(tuple, driver.rows(f"SELECT * FROM {name}"))


def test_delta_tables_that_give_numbers_themselves_are_not_copied_into_and_are_rolled_back(driver: Driver) -> None:
    """The numbers go on behind the highest that was given, so that none comes twice."""
    table = table_of(driver, "delta")
    name = f"spark_catalog.{table.database}.i"
    builder, tables = delta_builder(driver, name)
    number = tables.columnBuilder("id").dataType("BIGINT").generatedByDefaultAsIdentity().build()
    builder.addColumn("v", "INT").addColumn(number).execute()
    driver.run(f"INSERT INTO {name} (v) VALUES (1)", f"INSERT INTO {name} (v) VALUES (2)")
    branches = BranchManager(driver.spark, name)
    branches.create("fix", "1")
    driver.run(f"INSERT INTO {branches.name_of('fix')} (v) VALUES (3)")
    with pytest.raises(BranchError, match="AS IDENTITY"):
        branches.merge("fix", dry_run=True)
    used = {row[0] for row in driver.rows(f"SELECT id FROM {name}")}
    branches.roll_back(1)
    assert [row[0] for row in driver.rows(f"SELECT v FROM {name}")] == [1]
    driver.run(f"INSERT INTO {name} (v) VALUES (4)")
    assert driver.rows(f"SELECT id FROM {name} WHERE v = 4")[0][0] not in used


def test_delta_versions_whose_files_are_gone_are_not_restored(delta: BranchedTable) -> None:
    delta.sql(f"INSERT OVERWRITE {delta.name} VALUES (50, 'new')")
    with pytest.raises(BranchError, match="has no version 99"):
        delta.branches.roll_back(99)
    delta.driver.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    delta.sql(f"VACUUM {delta.name} RETAIN 0 HOURS")
    delta.driver.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    with pytest.raises(BranchError, match="VACUUM has deleted files"):
        delta.branches.roll_back(2)
    assert delta.ids() == [50]


def test_delta_vacuum_of_the_table_breaks_a_branch_and_the_check_says_so(delta: BranchedTable) -> None:
    spark = delta.driver.spark
    delta.branches.create("fix", delta.tag)
    assert delta.branches.check_expiry(LATER) == ()
    delta.sql(f"DELETE FROM {delta.name} WHERE id = 1")
    risk = the_one(delta.branches.check_expiry(LATER))
    assert (risk.branch, risk.snapshot) == ("fix", 0)
    assert "needs 1 of the files" in risk.consequence
    assert delta.branches.check_expiry(datetime(2000, 1, 1, tzinfo=timezone.utc)) == ()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    delta.sql(f"VACUUM {delta.name} RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    with pytest.raises(Exception, match=r"(?i)file"):
        delta.ids("fix")


def test_delta_has_no_tags_and_names_of_tables(delta: BranchedTable) -> None:
    with pytest.raises(BranchError, match="Delta has no tags, and 'eod' is no version"):
        delta.branches.create("fix", "eod")
    with pytest.raises(BranchError, match="no version"):
        delta.branches.create("fix", "99")
    with pytest.raises(BranchError, match="letters, digits and _"):
        delta.branches.create("a b", delta.tag)


# Paimon


@only_with_paimon
def test_paimon_reads_mains_tag_where_a_branchs_is_asked_for(paimon: BranchedTable) -> None:
    """`VERSION AS OF 'tag'` of a branch reads what main's tag of that name has: rows that the branch never had, without
    an error. By numbers it is read right."""
    paimon.branches.create("fix", paimon.tag)
    paimon.add(9, "fix")
    name = paimon.branches.name_of("fix")
    load_table(paimon.driver.spark, name, anew=True).table.getTable().createTag("late", 3)
    with pytest.raises(Exception, match="Tag 'late' doesn't exist"):
        paimon.driver.rows(f"SELECT id FROM {name} VERSION AS OF 'late'")
    paimon.tag_now("late")
    rows = paimon.driver.rows(f"SELECT id FROM {name} VERSION AS OF 'late'")
    assert sorted(row[0] for row in rows) == [1, 2, 3]
    rows = paimon.driver.rows(f"SELECT id FROM {name} VERSION AS OF 3")
    assert sorted(row[0] for row in rows) == [1, 2, 9]


@only_with_paimon
def test_paimon_expiry_of_main_breaks_a_branch_whose_tag_is_gone_and_the_check_says_so(paimon: BranchedTable) -> None:
    paimon.branches.create("fix", paimon.tag)
    paimon.sql(f"INSERT OVERWRITE {paimon.name} VALUES (50, 'new')")
    assert paimon.branches.check_expiry(LATER) == ()
    paimon.sql(f"CALL pai.sys.delete_tag(table => '{paimon.database}.t', tag => '{paimon.tag}')")
    risk = the_one(paimon.branches.check_expiry(LATER))
    assert (risk.branch, risk.snapshot) == ("fix", 2)
    assert paimon.ids("fix") == [1, 2]
    paimon.sql(f"CALL pai.sys.expire_snapshots(table => '{paimon.database}.t', retain_max => 1)")
    with pytest.raises(Exception, match=r"(?i)file|not found|exist"):
        paimon.ids("fix")


@only_with_paimon
def test_paimon_main_takes_a_branch_whose_first_snapshots_expired_as_its_next_snapshot(paimon: BranchedTable) -> None:
    """Paimon's own fast-forward would leave main's snapshots between those of the branch, and give numbers again."""
    paimon.branches.create("fix", paimon.tag)
    paimon.add(9, "fix")
    paimon.add(10, "fix")
    spark: Any = paimon.driver.spark
    jvm = spark._jvm
    branch = load_table(spark, paimon.branches.name_of("fix"), anew=True).table.getTable()
    expiry = branch.newExpireSnapshots()
    builder = jvm.org.apache.paimon.options.ExpireConfig.builder()
    expiry.config(builder.snapshotRetainMin(1).snapshotRetainMax(1).build())
    assert expiry.expire() == 2
    before = paimon.driver.rows(f"SELECT commit_user FROM {paimon.part('snapshots')} WHERE snapshot_id = 3")
    moved = paimon.branches.merge("fix")
    assert (moved.previous, moved.snapshot, paimon.ids(), paimon.ids_at(3)) == (3, 4, [1, 2, 9, 10], [1, 2, 3])
    assert before == paimon.driver.rows(f"SELECT commit_user FROM {paimon.part('snapshots')} WHERE snapshot_id = 3")
    paimon.sql(f"CALL pai.sys.compact(table => '{paimon.database}.t')")
    paimon.sql(f"INSERT INTO {paimon.name} VALUES (9, 'again')")
    assert (9, "again") in paimon.rows()


@only_with_paimon
def test_paimon_main_takes_no_columns_from_a_branch(paimon: BranchedTable) -> None:
    """They would be another commit, before that of the rows. Once main has them too, the rows come."""
    paimon.branches.create("fix", paimon.tag)
    fix = paimon.branches.name_of("fix")
    paimon.sql(f"ALTER TABLE {fix} ADD COLUMN w INT", f"INSERT INTO {fix} VALUES (9, 'fix', 7)")
    with pytest.raises(BranchError, match="has other columns or options than main"):
        paimon.branches.merge("fix")
    assert paimon.ids() == [1, 2, 3]
    paimon.sql(f"ALTER TABLE {paimon.name} ADD COLUMN w INT")
    paimon.branches.merge("fix")
    rows = paimon.driver.rows(f"SELECT id, w FROM {paimon.name} ORDER BY id")
    assert [tuple(row) for row in rows] == [(1, None), (2, None), (9, 7)]


@only_with_paimon
def test_paimon_branches_without_a_tag_are_listed_and_not_merged(paimon: BranchedTable) -> None:
    paimon.sql(f"CALL pai.sys.create_branch('{paimon.database}.t', 'bare')")
    found = paimon.branches.list()[0]
    assert (found.name, found.tag, found.head) == ("bare", None, None)
    with pytest.raises(BranchError, match="has no snapshots"):
        paimon.branches.merge("bare")


@only_with_paimon
def test_paimon_streams_read_and_write_a_branch_by_its_option(paimon: BranchedTable, tmp_path: Path) -> None:
    spark = paimon.driver.spark
    paimon.branches.create("fix", paimon.tag)
    place = branches_of(spark, paimon.name).location
    spark.range(20, 21).selectExpr("cast(id AS int) AS id", "'s' AS v").write.parquet(str(tmp_path / "source"))
    source = spark.readStream.schema("id INT, v STRING").parquet(str(tmp_path / "source"))
    writer = source.writeStream.format("paimon").option("branch", "fix").trigger(availableNow=True)
    assert writer.option("checkpointLocation", str(tmp_path / "one")).start(place).awaitTermination(120)
    assert (paimon.ids("fix"), paimon.ids()) == ([1, 2, 20], [1, 2, 3])
    reader = spark.readStream.table(paimon.branches.name_of("fix"))
    out = reader.writeStream.format("memory").queryName("read_of_branch").trigger(availableNow=True)
    assert out.option("checkpointLocation", str(tmp_path / "two")).start().awaitTermination(120)
    assert sorted(row[0] for row in spark.table("read_of_branch").collect()) == [1, 2, 20]


def delta_builder(driver: Driver, name: str) -> tuple[Any, Any]:
    """Delta's maker of a table: SQL says no column's expression."""
    spark: Any = driver.spark
    tables = spark._jvm.io.delta.tables.DeltaTable
    return tables.create(spark._jsparkSession).tableName(name.removeprefix("spark_catalog.")), tables


@only_with_paimon
def test_paimon_leaves_the_files_of_a_branch_that_is_deleted(paimon: BranchedTable) -> None:
    paimon.branches.create("fix", paimon.tag)
    place = Path(branches_of(paimon.driver.spark, paimon.name).location.removeprefix("file:"))
    before = {path.name for path in place.glob("bucket-*/data-*")}
    paimon.add(9, "fix")
    of_branch = {path.name for path in place.glob("bucket-*/data-*")} - before
    paimon.branches.delete("fix")
    assert len(of_branch) == 1
    assert of_branch <= {path.name for path in place.glob("bucket-*/data-*")}


@only_with_paimon
def test_paimon_writes_a_batch_again_that_a_stream_repeats(paimon: BranchedTable, tmp_path: Path) -> None:
    """The sink doesn't know what it has committed: a stream that ends between its commit and Spark's note of it brings
    rows twice, unless a key merges them."""
    spark, name = paimon.driver.spark, f"pai.{paimon.database}.without_key"
    paimon.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    spark.range(20, 21).selectExpr("cast(id AS int) AS id", "'s' AS v").write.parquet(str(tmp_path / "source"))

    def run() -> list[int]:
        read = spark.readStream.schema("id INT, v STRING").parquet(str(tmp_path / "source"))
        write = read.writeStream.format("paimon").option("checkpointLocation", str(tmp_path / "checkpoint"))
        place = branches_of(spark, name).location
        assert write.trigger(availableNow=True).start(place).awaitTermination(120)
        return sorted(row[0] for row in paimon.driver.rows(f"SELECT id FROM {name}"))

    assert run() == [20]
    for note in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        note.unlink()
    assert run() == [20, 20]


def the_one(found: tuple[Any, ...]) -> Any:
    assert len(found) == 1, found
    return found[0]
