"""Paimon's tables: what is recorded of every way to write and read them. Numbers are counted by hand in each case, and
every snapshot that is reported is held against the files that Paimon wrote."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from headwater.events import (
    AlterTable,
    BranchMerged,
    Committed,
    CreateBranch,
    CreateTag,
    DropBranch,
    DropTag,
    Format,
    Gap,
    JobLineage,
    StatementFailed,
    TableName,
    Truncate,
)
from headwater.events.apply import apply
from headwater.events.base import StringMap
from headwater.events.catalog import ModificationCause
from headwater.events.changes import AddColumn, DropPartition
from headwater.events.health import GapReason
from headwater.listeners.capture.formats import installed
from tests.kit.formats.paimon_cases import (
    BRANCHED,
    FILLED,
    KEYED,
    KEYS,
    MATCHED,
    PARTITIONED,
    READS,
    TAGGED,
    WRITES,
    Case,
    save_to_path,
)
from tests.kit.formats.paimon_place import Place, check, commits, fresh
from tests.kit.spark.driver import PAIMON, Driver, driver_fixture, of, the
from tests.kit.spark.java_lint import complaints_of_javac

pytestmark = [
    pytest.mark.needs("paimon"),
    pytest.mark.sample(9, keep=("test_javac_agrees",)),
]


driver = driver_fixture(PAIMON, spark__sql__catalog__spark_catalog="org.apache.paimon.spark.SparkGenericCatalog")


@pytest.fixture
def place(driver: Driver) -> Place:
    return fresh(driver)


@pytest.mark.sample(14)
@pytest.mark.parametrize("case", WRITES, ids=lambda case: case.name)
def test_what_is_written(place: Place, case: Case) -> None:
    place.run(*case.before)
    check(place, case.step, case.made, case.read)


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", READS, ids=lambda case: case.name)
def test_what_is_read(place: Place, case: Case) -> None:
    place.run(*case.before)
    check(place, case.step, case.made, case.read)


def test_a_merge_says_what_it_replaced_where_nothing_matched(place: Place) -> None:
    place.run(KEYED, KEYS)
    events = place.events_of("MERGE INTO {d}.k k " + MATCHED.replace("k.id = s.id", "k.id = s.id + 90"))
    assert not of(Committed, events)


def test_a_table_is_shaped_as_its_catalog_has_it(place: Place) -> None:
    place.run(
        "CREATE TABLE {d}.p (id INT NOT NULL COMMENT 'the key', v STRING, d STRING) PARTITIONED BY (d)"
        " TBLPROPERTIES ('primary-key' = 'id,d', 'bucket' = '3', 'merge-engine' = 'deduplicate')"
    )
    lineage = the(JobLineage, place.events_of("INSERT INTO {d}.p SELECT id, v, 'a' FROM {d}.t"))
    (source,), (sink,) = lineage.inputs, lineage.outputs
    assert source.table == TableName(catalog="pai", database=place.db, table="t")
    assert [column.name for column in source.columns] == ["id", "v"]
    assert [(column.name, column.nullable, column.comment) for column in sink.columns] == [
        ("id", False, "the key"),
        ("v", True, None),
        ("d", False, None),
    ]
    assert sink.primary_key == (("id",), ("d",))
    assert [transform.columns for transform in sink.partitioning] == [(("d",),)]
    assert dict(sink.options) == {"bucket": "3", "merge-engine": "deduplicate"}
    assert sink.generation == place.generation("p")


def test_what_a_query_makes_is_shaped_as_paimon_made_it(place: Place) -> None:
    events = place.events_of(
        "CREATE TABLE {d}.n PARTITIONED BY (v) TBLPROPERTIES ('primary-key' = 'id,v', 'bucket' = '1')"
        " AS SELECT id, v FROM {d}.t"
    )
    (sink,) = the(JobLineage, events).outputs
    assert (sink.primary_key, [each.columns for each in sink.partitioning]) == ((("id",), ("v",)), [(("v",),)])
    assert [(column.name, column.nullable) for column in sink.columns] == [("id", False), ("v", False)]
    assert dict(sink.options) == {"bucket": "1"}
    assert the(Committed, events).outputs[0].generation == place.generation("n")


def test_a_replaced_table_has_another_generation(place: Place) -> None:
    before = place.generation("s")
    events = place.events_of("CREATE OR REPLACE TABLE {d}.s USING paimon AS SELECT 1 z")
    (output,) = the(Committed, events).outputs
    assert output.generation == place.generation("s") != before


def test_an_altered_table_has_the_generation_it_had(place: Place) -> None:
    generation = place.generation("t")
    place.run("ALTER TABLE {d}.t ADD COLUMNS (w INT)", "ALTER TABLE {d}.t RENAME COLUMN w TO x")
    (output,) = the(Committed, place.events_of("INSERT INTO {d}.t VALUES (1, 'a', 2)")).outputs
    assert (output.generation, output.schema_id, output.snapshot) == (generation, 2, 3)


def test_a_write_that_merges_schemas_says_how(place: Place) -> None:
    def save(spark: Any, _: Place) -> None:
        frame = spark.sql("SELECT 5 id, 'e' v, 1.5D w, named_struct('a', 1) n")
        frame.write.format("paimon").mode("append").option("write.merge-schema", "true").save(str(place.home / "t"))

    events = place.events_of(save)
    altered, committed = the(AlterTable, events), the(Committed, events)
    assert events.index(altered) < events.index(committed)
    assert (altered.cause, altered.schema_id, altered.dataset) == (ModificationCause.WRITE, 1, place.dataset("t"))
    assert [(type(each), each.path) for each in altered.changes if isinstance(each, AddColumn)] == [
        (AddColumn, ("w",)),
        (AddColumn, ("n",)),
    ]
    assert altered.table is not None
    assert apply(altered.changes, altered.table) == altered.new_table
    (output,) = committed.outputs
    assert (output.schema_id, output.snapshot) == (1, 3)


def test_a_schema_that_is_wide_enough_stays(place: Place) -> None:
    assert not of(AlterTable, place.events_of(save_to_path("append", **{"write.merge-schema": "true"})))


def test_a_truncation_is_reported_with_its_snapshot(place: Place) -> None:
    truncate = the(Truncate, place.events_of("TRUNCATE TABLE {d}.t"))
    assert truncate.identifier == TableName(catalog="pai", database=place.db, table="t")
    assert (truncate.produced, truncate.parent, truncate.generation) == (3, 2, place.generation("t"))
    assert (truncate.context.name, truncate.context.factory) == ("pai", "paimon")


def test_a_dropped_partition_is_reported_with_its_snapshot(place: Place) -> None:
    place.run(PARTITIONED, FILLED)
    events = place.events_of("ALTER TABLE {d}.p DROP PARTITION (d = 'a')")
    altered = the(AlterTable, events)
    assert altered.changes == (DropPartition(partition=StringMap({"d": "a"})),)
    assert (altered.dataset, altered.generation) == (place.dataset("p"), place.generation("p"))
    assert the(Committed, events).outputs[0].snapshot == 2


def test_tags(place: Place) -> None:
    tagged = the(CreateTag, place.events_of("CALL pai.sys.create_tag('{db}.t', 'a')"))
    assert (tagged.tag, tagged.snapshot, tagged.cause, tagged.retention) == ("a", 2, ModificationCause.PROCEDURE, None)
    assert (tagged.identifier.table, tagged.dataset, tagged.generation) == (
        "t",
        place.dataset("t"),
        place.generation("t"),
    )
    old = the(
        CreateTag,
        place.events_of(
            "CALL pai.sys.create_tag(table => '{db}.t', tag => 'b', snapshot => 1, time_retained => '5 d')"
        ),
    )
    assert (old.tag, old.snapshot, old.retention) == ("b", 1, "5 d")
    early = the(CreateTag, place.events_of("CALL pai.sys.create_tag_from_timestamp('{db}.t', 'c', 1)"))
    assert (early.tag, early.snapshot) == ("c", 1)
    events = place.events_of("CALL pai.sys.delete_tag('{db}.t', 'a,b')")
    assert [each.tag for each in of(DropTag, events)] == ["a", "b"]
    assert not of(Gap, events)


def test_branches(place: Place) -> None:
    empty = the(CreateBranch, place.events_of("CALL pai.sys.create_branch('pai.{db}.t', 'e')"))
    assert (empty.branch, empty.tag, empty.snapshot, empty.identifier.table) == ("e", None, None, "t")
    place.run(TAGGED)
    branch = the(CreateBranch, place.events_of(BRANCHED))
    assert (branch.branch, branch.tag, branch.snapshot, branch.on_branch) == ("b", "monday", 1, None)
    place.run("INSERT INTO {d}.`t$branch_b` VALUES (9, 'i')", "INSERT INTO {d}.`t$branch_b` VALUES (9, 'i')")
    merged = the(BranchMerged, place.events_of("CALL pai.sys.fast_forward('{db}.t', 'b')"))
    assert (merged.branch, merged.into, merged.snapshot) == ("b", None, 3)
    assert max(place.snapshots("t")) == 3
    dropped = the(DropBranch, place.events_of("CALL pai.sys.delete_branch('{db}.t', 'e')"))
    assert (dropped.branch, dropped.dataset) == ("e", place.dataset("t"))


def test_a_read_of_two_branches_is_of_no_snapshot(place: Place) -> None:
    """Paimon reads partitions that one branch hasn't got from the other, and no file says of which it is."""
    place.run(
        PARTITIONED,
        FILLED,
        "CALL pai.sys.create_branch('{db}.p', 'b')",
        "INSERT INTO {d}.`p$branch_b` VALUES (3, 'c', 'c')",
        "ALTER TABLE {d}.p SET TBLPROPERTIES ('scan.fallback-branch' = 'b')",
    )
    events = place.events_of("INSERT INTO {d}.s SELECT id, v FROM {d}.p")
    made, read, (gap,) = commits(events)
    assert (made, read) == (["s@2<1 APPEND NOTHING"], ["p"])
    assert gap.reason is GapReason.NOT_EXACT


def test_a_tag_of_a_branch(place: Place) -> None:
    place.run(TAGGED, BRANCHED, "INSERT INTO {d}.`t$branch_b` VALUES (9, 'i')")
    tagged = the(CreateTag, place.events_of("CALL pai.sys.create_tag('{db}.`t$branch_b`', 'x')"))
    assert (tagged.identifier.table, tagged.on_branch, tagged.snapshot) == ("t", "b", 2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", ["1", "monday"])
def test_going_back(place: Place, version: str) -> None:
    place.run(TAGGED)
    (output,) = the(Committed, place.events_of(f"CALL pai.sys.rollback('{{db}}.t', '{version}')")).outputs
    assert (output.snapshot, output.parent, output.commit_kind.value, output.made_from) == (1, None, "ROLLBACK", ())
    assert (output.dataset, output.generation) == (place.dataset("t"), place.generation("t"))
    assert max(place.snapshots("t")) == 1
    (again,) = the(Committed, place.events_of("INSERT INTO {d}.t VALUES (1, 'a')")).outputs
    assert (again.snapshot, again.parent) == (2, 1)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "call",
    [
        "expire_snapshots('{db}.t', 100)",
        "remove_orphan_files('{db}.t')",
        "reset_consumer('{db}.t', 'me', 1)",
        "mark_partition_done('{db}.p', 'd=a')",
    ],
)
def test_calls_that_change_no_rows_are_silent(place: Place, call: str) -> None:
    place.run(PARTITIONED, FILLED)
    assert place.events_of(f"CALL pai.sys.{call}") == []


def test_a_failed_write_is_reported_as_that(driver: Driver, place: Place) -> None:
    filled = place.fill("INSERT INTO {d}.t SELECT id, raise_error('no') FROM {d}.s")
    failed = the(StatementFailed, driver.events_of_failure(filled))
    assert [sink.table.table for sink in failed.outputs if sink.table] == ["t"]
    assert max(place.snapshots("t")) == 2


def test_files_from_a_table_are_of_its_snapshot(place: Place) -> None:
    place.run("CREATE TABLE {db}.q (id INT) USING parquet")
    committed = the(Committed, place.events_of("INSERT INTO {db}.q SELECT id FROM {d}.t"))
    assert [(each.snapshot, each.generation) for each in committed.inputs] == [(2, place.generation("t"))]


def test_the_sessions_own_catalog_can_be_paimons(place: Place) -> None:
    """Its tables are where Spark's own are."""
    home = place.driver.warehouse / "spark" / f"{place.db}.db" / "g"
    created = place.events_of("CREATE TABLE {db}.g (id INT, v STRING) USING paimon")
    committed = the(Committed, place.events_of("INSERT INTO {db}.g SELECT * FROM {d}.t"))
    (output,) = committed.outputs
    assert (output.snapshot, output.table) == (1, TableName(catalog="spark_catalog", database=place.db, table="g"))
    assert output.dataset is not None
    assert Path(output.dataset.name) == home
    (again,) = the(Committed, place.events_of("CREATE TABLE {db}.h USING paimon AS SELECT * FROM {db}.g")).outputs
    assert (again.snapshot, again.format) == (1, Format.PAIMON)
    truncated = the(Truncate, place.events_of("TRUNCATE TABLE {db}.g"))
    assert (truncated.context.name, truncated.identifier.table, truncated.produced) == ("spark_catalog", "g", 2)
    assert not of(Committed, created)


def test_every_command_of_paimons_is_known(driver: Driver) -> None:
    """By the classes in its jar."""
    plugin = installed().of_provider("paimon")
    assert plugin is not None
    known = import_module(f"{type(plugin.reader).__module__}.procedures").PROCEDURES
    inside: Any = driver.spark
    loader = inside._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    jar = loader.loadClass("org.apache.paimon.spark.SparkTable").getProtectionDomain().getCodeSource().getLocation()
    names = [name.removesuffix(".class") for name in ZipFile(jar.getPath()).namelist() if name.endswith(".class")]
    own = [name for name in names if name.startswith("org/apache/paimon/spark/") and "$" not in name]
    procedures = {name.rpartition("/")[2].removesuffix("Procedure") for name in own if "/procedure/" in name}
    assert {name for name in procedures if name and "Procedure" not in name} - {"Base"} == set(known)
    command = loader.loadClass("org.apache.spark.sql.catalyst.plans.logical.Command")
    plans = [name for name in own if "/commands/" in name or "/plans/logical/" in name]
    loaded = [loader.loadClass(name.replace("/", ".")) for name in plans]
    commands = {each.getSimpleName() for each in loaded if command.isAssignableFrom(each) and not each.isInterface()}
    assert commands == set(plugin.commands) - {"DropPartitions"}


def test_the_callback_is_in_nobodys_table(place: Place) -> None:
    schemas = "".join(file.read_text() for file in (place.home / "t" / "schema").iterdir())
    assert "callback" not in schemas.lower()
    assert not [row for row in place.driver.rows("SET") if "callback" in row.key]


@pytest.mark.smoke
def test_javac_agrees(driver: Driver, tmp_path: Path) -> None:
    assert not complaints_of_javac(driver.spark.sparkContext, tmp_path)
