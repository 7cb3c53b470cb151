"""Delta's tables: what is recorded of every way to write and read them. Versions are counted by hand in each case, and
found again in the table's own log."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headwater.events import (
    AlterTable,
    Committed,
    CreateTable,
    DatasetId,
    Format,
    Gap,
    Input,
    Output,
    StatementFailed,
    TableName,
)
from headwater.events.catalog import ModificationCause
from headwater.events.changes import AddColumn, AddConstraint, DropColumn, DropConstraint, SetClustering
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode
from headwater.events.tables import Constraint, ConstraintKind
from headwater.listeners.capture.command_registry import all_commands
from headwater.listeners.capture.jvm import JavaClasses
from tests.kit.formats.delta_racer import QUICK
from tests.kit.spark.driver import DELTA, HOST, Driver, edges, of, shared_driver_fixture, smoking, the
from tests.kit.spark.java_lint import complaints_of_javac
from tests.kit.spark.versions import MAJOR
from tests.kit.waiting import attempts

pytestmark = [
    pytest.mark.xdist_group("spark-delta"),
    pytest.mark.sample(6, keep=("test_javac_agrees",)),
    pytest.mark.needs("delta"),
]

K, X = CommitKind, OverwriteScope
CHECK = ConstraintKind.CHECK


driver = shared_driver_fixture(DELTA, **QUICK)


@dataclass(frozen=True)
class Place:
    """A case's own database; `t(id, v)` has version 0 (two rows), `s(id, v)` 0 and 1 (a third row)."""

    driver: Driver
    db: str

    @property
    def home(self) -> Path:
        return self.driver.warehouse / "spark" / f"{self.db}.db"

    @property
    def path(self) -> str:
        return str(self.driver.warehouse / f"path_{self.db}")

    def fill(self, text: str) -> str:
        return text.replace("{db}", self.db).replace("{path}", self.path)

    def directory(self, table: str) -> Path:
        return Path(self.path) if table == "path" else self.home / table

    def dataset(self, table: str) -> DatasetId:
        return DatasetId(namespace=f"file://{HOST}", name=str(self.directory(table)))

    def name(self, dataset: DatasetId | None) -> str:
        assert dataset is not None
        return "path" if dataset.name == self.path else dataset.name.rpartition("/")[2]

    def log(self, table: str, version: int) -> list[dict[str, Any]]:
        """The actions of one version."""
        text = (self.directory(table) / "_delta_log" / f"{version:020}.json").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def generation(self, table: str, version: int) -> str:
        """By the newest metaData action up to this version."""
        for each in range(version, -1, -1):
            for action in self.log(table, each):
                if "metaData" in action:
                    return str(action["metaData"]["id"])
        raise AssertionError(f"{table} has no metaData")

    def kept(self, table: str, version: int) -> set[str]:
        """Files of the version before that are in this one, too."""
        files: set[str] = set()
        for each in range(version):
            for action in self.log(table, each):
                files |= {action["add"]["path"]} if "add" in action else set()
                files -= {action["remove"]["path"]} if "remove" in action else set()
        return files - {action["remove"]["path"] for action in self.log(table, version) if "remove" in action}

    def is_made_anew(self, table: str, version: int) -> bool:
        """A table that only has other rows keeps its id."""
        return version == 0 or self.generation(table, version) != self.generation(table, version - 1)

    def operation(self, table: str, version: int) -> str:
        return next(str(a["commitInfo"]["operation"]) for a in self.log(table, version) if "commitInfo" in a)


Step = str | Callable[[Any, Place], object]


@dataclass(frozen=True)
class Case:
    name: str
    when: Step
    made: tuple[tuple[str, int, str, CommitKind, OverwriteScope], ...]
    """Table, version, the log's own word for it, and what is reported."""
    read: tuple[tuple[str, int], ...] = ()
    given: tuple[Step, ...] = ()
    rows: int | None = None


def save(query: str, mode: str, **options: str) -> Step:
    def step(spark: Any, place: Place) -> object:
        return spark.sql(place.fill(query)).write.format("delta").mode(mode).options(**options).save(place.path)

    return step


def save_as_table(query: str, table: str, **options: str) -> Callable[[Any, Place], object]:
    def step(spark: Any, place: Place) -> object:
        writer = spark.sql(place.fill(query)).write.format("delta").mode("overwrite").options(**options)
        return writer.saveAsTable(place.fill(table))

    return step


def delta_table(spark: Any, place: Place, table: str = "t") -> Any:
    """Delta's own API, in the JVM, as its Python package calls it."""
    return spark.sparkContext._jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, str(place.directory(table)))


def early(spark: Any, place: Place) -> Any:
    """A DataFrame that was analysed before the table went on."""
    found = spark.table(place.fill("{db}.s"))
    spark.sql(place.fill("DELETE FROM {db}.s WHERE id = 1"))
    return found


def dynamically(spark: Any, statement: str | Callable[[], object]) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql(statement) if isinstance(statement, str) else statement()
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def functions() -> Any:
    from pyspark.sql import functions

    return functions


MERGE = (
    "MERGE INTO {db}.t USING {db}.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
)
P = "CREATE TABLE {db}.p (id INT, v STRING, d STRING) USING delta PARTITIONED BY (d)"
FILL_P = "INSERT INTO {db}.p VALUES (1, 'a', 'x'), (2, 'b', 'y')"

# Delta has TRUNCATE since 4.4.
_TRUNCATE = (Case("truncate", "TRUNCATE TABLE {db}.t", (("t", 1, "TRUNCATE", K.TRUNCATE, X.ALL),)),)
CASES = [
    Case("insert values", "INSERT INTO {db}.t VALUES (9, 'z')", (("t", 1, "WRITE", K.APPEND, X.NOTHING),), rows=1),
    Case(
        "insert select",
        "INSERT INTO {db}.t SELECT * FROM {db}.s",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
        rows=3,
    ),
    Case("insert nothing", "INSERT INTO {db}.t SELECT * FROM {db}.s WHERE id > 100", ()),
    Case(
        "insert into itself",
        "INSERT INTO {db}.t SELECT id + 10, v FROM {db}.t",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("t", 0),),
    ),
    Case(
        "insert by name",
        "INSERT INTO {db}.t BY NAME SELECT v, id FROM {db}.s",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
    ),
    Case(
        "insert overwrite",
        "INSERT OVERWRITE {db}.t SELECT * FROM {db}.s",
        (("t", 1, "WRITE", K.OVERWRITE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "insert overwrite partition",
        "INSERT OVERWRITE {db}.p PARTITION (d = 'x') SELECT id, v FROM {db}.s",
        (("p", 2, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "insert replace where",
        "INSERT INTO {db}.p REPLACE WHERE d = 'x' SELECT id, v, 'x' FROM {db}.s",
        (("p", 2, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "insert overwrite, dynamic partitions",
        lambda spark, place: dynamically(spark, place.fill("INSERT OVERWRITE {db}.p SELECT id, v, 'x' FROM {db}.s")),
        (("p", 2, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "save, dynamic partitions",
        save("SELECT *, 'x' AS d FROM {db}.s", "overwrite", partitionOverwriteMode="dynamic"),
        (("path", 1, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=("CREATE TABLE delta.`{path}` (id INT, v STRING, d STRING) USING delta PARTITIONED BY (d)",),
    ),
    Case(
        "insert into, with an option that counts for nothing",
        lambda spark, place: (
            spark.table(place.fill("{db}.s"))
            .selectExpr("id", "v", "'x' AS d")
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .insertInto(place.fill("{db}.p"))
        ),
        (("p", 2, "WRITE", K.OVERWRITE, X.ALL),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "insert into a path",
        "INSERT INTO delta.`{path}` SELECT * FROM {db}.s",
        (("path", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
        given=("CREATE TABLE delta.`{path}` (id INT, v STRING) USING delta",),
    ),
    Case(
        "create as select",
        "CREATE TABLE {db}.c USING delta AS SELECT * FROM {db}.s",
        (("c", 0, "CREATE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
        rows=3,
    ),
    Case(
        "create as select, a path",
        "CREATE TABLE delta.`{path}` USING delta AS SELECT * FROM {db}.s",
        (("path", 0, "CREATE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "create as select, with a location",
        "CREATE TABLE {db}.e USING delta LOCATION '{path}' AS SELECT * FROM {db}.s",
        (("path", 0, "CREATE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
    ),
    Case("create as select if not exists", "CREATE TABLE IF NOT EXISTS {db}.t USING delta AS SELECT * FROM {db}.s", ()),
    Case(
        "replace as select",
        "CREATE OR REPLACE TABLE {db}.t USING delta AS SELECT id FROM {db}.s",
        (("t", 1, "CREATE OR REPLACE TABLE AS SELECT", K.REPLACE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "replace as select, nothing there",
        "CREATE OR REPLACE TABLE {db}.n USING delta AS SELECT id FROM {db}.s",
        (("n", 0, "CREATE OR REPLACE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "replace as select of itself",
        "REPLACE TABLE {db}.t USING delta AS SELECT id + 1 AS id, v FROM {db}.t",
        (("t", 1, "REPLACE TABLE AS SELECT", K.REPLACE, X.ALL),),
        (("t", 0),),
    ),
    Case("save", save("SELECT * FROM {db}.s", "append"), (("path", 0, "WRITE", K.APPEND, X.NOTHING),), (("s", 1),)),
    Case(
        "save again",
        save("SELECT * FROM {db}.s", "append"),
        (("path", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
        given=(save("SELECT * FROM {db}.t", "append"),),
    ),
    Case(
        "save overwriting",
        save("SELECT * FROM {db}.s", "overwrite"),
        (("path", 1, "WRITE", K.OVERWRITE, X.ALL),),
        (("s", 1),),
        given=(save("SELECT * FROM {db}.t", "append"),),
    ),
    Case(
        "save, replace where",
        save("SELECT * FROM {db}.s WHERE id > 1", "overwrite", replaceWhere="id > 1"),
        (("path", 1, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(save("SELECT * FROM {db}.t", "append"),),
    ),
    Case("save, ignored", save("SELECT * FROM {db}.s", "ignore"), (), given=(save("SELECT * FROM {db}.t", "append"),)),
    Case(
        "save as table",
        lambda spark, place: spark.table(place.fill("{db}.s")).write.format("delta").saveAsTable(place.fill("{db}.n")),
        (("n", 0, "CREATE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "save as table, appending",
        lambda spark, place: (
            spark.table(place.fill("{db}.s")).write.format("delta").mode("append").saveAsTable(place.fill("{db}.t"))
        ),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
    ),
    Case(
        "save as table, overwriting",
        save_as_table("SELECT * FROM {db}.s", "{db}.t"),
        (("t", 1, "CREATE OR REPLACE TABLE AS SELECT", K.OVERWRITE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "save as table, overwriting another schema",
        save_as_table("SELECT id FROM {db}.s", "{db}.t", overwriteSchema="true"),
        (("t", 1, "CREATE OR REPLACE TABLE AS SELECT", K.OVERWRITE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "save as table, nothing there to overwrite",
        save_as_table("SELECT * FROM {db}.s", "{db}.n"),
        (("n", 0, "CREATE OR REPLACE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "save as table, some partitions",
        save_as_table("SELECT id, v, 'x' AS d FROM {db}.s", "{db}.p", partitionOverwriteMode="dynamic"),
        (("p", 2, "CREATE OR REPLACE TABLE AS SELECT", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "save as table, some partitions by the session",
        lambda spark, place: dynamically(
            spark, lambda: save_as_table("SELECT id, v, 'x' AS d FROM {db}.s", "{db}.p")(spark, place)
        ),
        (("p", 2, "CREATE OR REPLACE TABLE AS SELECT", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "save as table, all partitions whatever the session says",
        lambda spark, place: dynamically(
            spark,
            lambda: save_as_table("SELECT id, v, 'x' AS d FROM {db}.s", "{db}.p", PARTITIONOVERWRITEMODE="STATIC")(
                spark, place
            ),
        ),
        (("p", 2, "CREATE OR REPLACE TABLE AS SELECT", K.OVERWRITE, X.ALL),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "save as table, replace where",
        save_as_table("SELECT id, v, 'x' AS d FROM {db}.s", "{db}.p", replaceWhere="d = 'x'"),
        (("p", 2, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "replace as select, whatever the session says",
        lambda spark, place: dynamically(
            spark,
            place.fill("CREATE OR REPLACE TABLE {db}.p USING delta PARTITIONED BY (d) AS SELECT *, 'x' d FROM {db}.s"),
        ),
        (("p", 2, "CREATE OR REPLACE TABLE AS SELECT", K.REPLACE, X.ALL),),
        (("s", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "write to, appending",
        lambda spark, place: spark.table(place.fill("{db}.s")).writeTo(place.fill("{db}.t")).append(),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
    ),
    Case(
        "write to, overwriting where",
        lambda spark, place: (
            spark.table(place.fill("{db}.s"))
            .where("id = 1")
            .writeTo(place.fill("{db}.t"))
            .overwrite(
                spark.sql("SELECT 1").selectExpr("1")._jdf and __import__("pyspark").sql.functions.expr("id = 1")
            )
        ),
        (("t", 1, "WRITE", K.OVERWRITE, X.PART),),
        (("s", 1),),
    ),
    Case(
        "write to, creating",
        lambda spark, place: spark.table(place.fill("{db}.s")).writeTo(place.fill("{db}.n")).using("delta").create(),
        (("n", 0, "CREATE TABLE AS SELECT", K.CREATE, X.ALL),),
        (("s", 1),),
    ),
    Case("merge", MERGE, (("t", 1, "MERGE", K.MERGE, X.PART),), (("s", 1), ("t", 0))),
    Case(
        "merge from a query",
        "MERGE INTO {db}.t USING (SELECT s.id, p.v FROM {db}.s JOIN {db}.p ON s.id = p.id) q ON t.id = q.id "
        "WHEN MATCHED THEN DELETE",
        (("t", 1, "MERGE", K.MERGE, X.PART),),
        (("s", 1), ("p", 1), ("t", 0)),
        given=(P, FILL_P),
    ),
    Case(
        "merge inserts only",
        "MERGE INTO {db}.t USING {db}.s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        (("t", 1, "MERGE", K.MERGE, X.PART),),
        (("s", 1), ("t", 0)),
    ),
    Case(
        "merge of itself",
        "MERGE INTO {db}.t USING (SELECT * FROM {db}.t VERSION AS OF 0) o ON t.id = o.id "
        "WHEN MATCHED THEN UPDATE SET v = o.v",
        (("t", 2, "MERGE", K.MERGE, X.PART),),
        (("t", 0), ("t", 1)),
        given=("UPDATE {db}.t SET v = 'new'",),
    ),
    Case("update", "UPDATE {db}.t SET v = 'q' WHERE id = 1", (("t", 1, "UPDATE", K.UPDATE, X.PART),), (("t", 0),)),
    Case("update nothing", "UPDATE {db}.t SET v = 'q' WHERE id = 100", ()),
    Case("delete", "DELETE FROM {db}.t WHERE id = 1", (("t", 1, "DELETE", K.DELETE, X.PART),), (("t", 0),)),
    Case("delete all", "DELETE FROM {db}.t", (("t", 1, "DELETE", K.DELETE, X.ALL),), (("t", 0),)),
    Case("delete nothing", "DELETE FROM {db}.t WHERE id = 100", ()),
    *(_TRUNCATE if MAJOR >= 4 else ()),
    Case(
        "delete a partition",
        "DELETE FROM {db}.p WHERE d = 'x'",
        (("p", 2, "DELETE", K.DELETE, X.PART),),
        (("p", 1),),
        given=(P, FILL_P),
    ),
    Case(
        "delete with deletion vectors",
        "DELETE FROM {db}.dv WHERE id = 1",
        (("dv", 1, "DELETE", K.DELETE, X.PART),),
        (("dv", 0),),
        given=(
            "CREATE TABLE {db}.dv USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS SELECT 1 AS id",
        ),
    ),
    Case(
        "optimize",
        "OPTIMIZE {db}.s",
        (("s", 2, "OPTIMIZE", K.COMPACT, X.PART),),
        (("s", 1),),
    ),
    Case(
        "optimize, z-order, by path",
        lambda spark, place: spark.sql(f"OPTIMIZE delta.`{place.directory('s')}` ZORDER BY (id)"),
        (("s", 2, "OPTIMIZE", K.COMPACT, X.PART),),
        (("s", 1),),
    ),
    Case("optimize nothing", "OPTIMIZE {db}.one", (), given=("CREATE TABLE {db}.one USING delta AS SELECT 1 AS id",)),
    Case(
        "auto compaction",
        "INSERT INTO {db}.a VALUES (3)",
        (("a", 2, "WRITE", K.APPEND, X.NOTHING), ("a", 3, "OPTIMIZE", K.COMPACT, X.PART)),
        given=(
            "CREATE TABLE {db}.a USING delta TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true') AS SELECT 1 i",
            "SET spark.databricks.delta.autoCompact.minNumFiles = 3",
            "INSERT INTO {db}.a VALUES (2)",
        ),
    ),
    Case(
        "vacuum",
        "VACUUM {db}.t",
        (("t", 1, "VACUUM START", K.VACUUM, X.NOTHING), ("t", 2, "VACUUM END", K.VACUUM, X.NOTHING)),
    ),
    Case(
        "restore",
        "RESTORE TABLE {db}.s TO VERSION AS OF 0",
        (("s", 2, "RESTORE", K.RESTORE, X.ALL),),
        (("s", 0),),
    ),
    Case(
        "shallow clone",
        "CREATE TABLE {db}.c SHALLOW CLONE {db}.s",
        (("c", 0, "CLONE", K.CLONE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "shallow clone of a version",
        "CREATE TABLE {db}.c SHALLOW CLONE {db}.s VERSION AS OF 0",
        (("c", 0, "CLONE", K.CLONE, X.ALL),),
        (("s", 0),),
    ),
    Case(
        "shallow clone into a path",
        "CREATE TABLE delta.`{path}` SHALLOW CLONE {db}.s",
        (("path", 0, "CLONE", K.CLONE, X.ALL),),
        (("s", 1),),
    ),
    Case(
        "convert to delta",
        "CONVERT TO DELTA parquet.`{path}`",
        (("path", 0, "CONVERT", K.OTHER, X.ALL),),
        given=(lambda spark, place: spark.range(3).write.parquet(place.path),),
    ),
    Case(
        "version as of",
        "INSERT INTO {db}.t SELECT * FROM {db}.s VERSION AS OF 0",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0),),
    ),
    Case(
        "two versions of one table",
        "INSERT INTO {db}.t SELECT a.id, b.v FROM {db}.s VERSION AS OF 0 a JOIN {db}.s b ON a.id = b.id",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0), ("s", 1)),
    ),
    Case(
        "version in the path",
        lambda spark, place: spark.sql(f"INSERT INTO {place.db}.t SELECT * FROM delta.`{place.directory('s')}@v0`"),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0),),
    ),
    Case(
        "version as an option",
        lambda spark, place: (
            spark.read.option("versionAsOf", 0).table(place.fill("{db}.s")).writeTo(place.fill("{db}.t")).append()
        ),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0),),
    ),
    Case(
        "version as an option of a path",
        lambda spark, place: (
            spark.read.format("delta")
            .option("versionAsOf", 0)
            .load(str(place.directory("s")))
            .writeTo(place.fill("{db}.t"))
            .append()
        ),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0),),
    ),
    Case(
        "timestamp as of",
        lambda spark, place: spark.sql(
            f"INSERT INTO {place.db}.t SELECT * FROM {place.db}.s TIMESTAMP AS OF "
            f"'{spark.sql(f'DESCRIBE HISTORY {place.db}.s').where('version = 0').collect()[0].timestamp}'"
        ),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0),),
    ),
    Case(
        "analysed early, read late",
        lambda spark, place: early(spark, place).writeTo(place.fill("{db}.t")).append(),
        (("s", 2, "DELETE", K.DELETE, X.PART), ("t", 1, "WRITE", K.APPEND, X.NOTHING)),
        (("s", 1), ("s", 2)),
    ),
    Case(
        "counted from the log",
        "INSERT INTO {db}.t SELECT count(*), 'rows' FROM {db}.s",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
    ),
    Case(
        "counted from the log at a version",
        "INSERT INTO {db}.t SELECT count(*), 'rows' FROM {db}.s VERSION AS OF 0",
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 0),),
    ),
    Case(
        "into parquet",
        "INSERT INTO {db}.f SELECT * FROM {db}.s",
        (),
        (("s", 1),),
        given=("CREATE TABLE {db}.f (id INT, v STRING) USING parquet",),
    ),
    Case(
        "from a cached table",
        lambda spark, place: (
            (cached := spark.table(place.fill("{db}.s")).cache()).count(),
            cached.writeTo(place.fill("{db}.t")).append(),
            cached.unpersist(),
        ),
        (("t", 1, "WRITE", K.APPEND, X.NOTHING),),
        (("s", 1),),
    ),
    Case(
        "API: delete",
        lambda spark, place: delta_table(spark, place).delete("id = 1"),
        (("t", 1, "DELETE", K.DELETE, X.PART),),
        (("t", 0),),
    ),
    Case(
        "API: optimize",
        lambda spark, place: delta_table(spark, place, "s").optimize().executeCompaction(),
        (("s", 2, "OPTIMIZE", K.COMPACT, X.PART),),
        (("s", 1),),
    ),
    Case(
        "API: merge",
        lambda spark, place: (
            delta_table(spark, place)
            .alias("t")
            .merge(spark.table(f"{place.db}.s").alias("s")._jdf, "t.id = s.id")
            .whenMatched()
            .delete()
            .execute()
        ),
        (("t", 1, "MERGE", K.MERGE, X.PART),),
        (("s", 1), ("t", 0)),
    ),
    Case(
        "API: restore",
        lambda spark, place: delta_table(spark, place, "s").restoreToVersion(0),
        (("s", 2, "RESTORE", K.RESTORE, X.ALL),),
        (("s", 0),),
    ),
]


@pytest.fixture
def place(driver: Driver) -> Place:
    db = driver.database()
    driver.run(
        f"CREATE TABLE {db}.t USING delta AS VALUES (1, 'a'), (2, 'b') AS rows(id, v)",
        f"CREATE TABLE {db}.s USING delta AS VALUES (1, 'c'), (2, 'd') AS rows(id, v)",
        f"INSERT INTO {db}.s VALUES (3, 'e')",
    )
    return Place(driver, db)


def do(step: Step, place: Place) -> object:
    if isinstance(step, str):
        return place.driver.spark.sql(place.fill(step))
    return step(place.driver.spark, place)


def events_of(step: Step, place: Place) -> list[Any]:
    return place.driver.events_of(lambda _: do(step, place))


SMOKE = (
    "insert select",
    "insert by name",
    "insert overwrite",
    "insert overwrite partition",
    "insert replace where",
    "insert into a path",
    "create as select",
    "replace as select",
    "save as table, some partitions",
    "save again",
    "save as table, appending",
    "write to, overwriting where",
    "merge from a query",
    "merge of itself",
    "delete a partition",
    "delete with deletion vectors",
    "optimize",
    "vacuum",
    "restore",
    "shallow clone",
    "version as of",
)


@pytest.mark.sample(10)
@pytest.mark.parametrize("case", smoking(CASES, lambda case: case.name, *SMOKE), ids=lambda case: case.name)
def test_commits(case: Case, place: Place) -> None:
    for step in case.given:
        do(step, place)

    events = events_of(case.when, place)

    assert not of(Gap, events), of(Gap, events)
    outputs = [o for c in of(Committed, events) for o in c.outputs if o.format is Format.DELTA]
    inputs = [i for c in of(Committed, events) for i in c.inputs]
    assert [(place.name(o.dataset), o.snapshot) for o in outputs] == [(t, v) for t, v, *_ in case.made]
    assert {(place.name(i.dataset), i.snapshot) for i in inputs} == set(case.read)
    for output, (table, version, word, kind, replaced) in zip(outputs, case.made, strict=True):
        is_output(output, place, table, version)
        assert place.operation(table, version) == word
        assert (output.commit_kind, output.replaced) == (kind, replaced)
        if replaced is X.ALL and kind is not K.RESTORE:
            assert not place.kept(table, version), "files that were there before are in it"
    anew = {t for t, v, *_ in case.made if place.is_made_anew(t, v)}
    assert {place.name(each.dataset) for each in of(CreateTable, events)} <= anew
    for each in inputs:
        is_input(each, place)
    if case.rows is not None:
        assert outputs[0].rows == case.rows


def is_output(output: Output, place: Place, table: str, version: int) -> None:
    assert output.dataset == place.dataset(table)
    assert output.snapshot == version
    assert output.parent == (version - 1 if version else None)
    assert str(output.generation) == place.generation(table, version)
    assert output.candidates == ()


def is_input(events: Input, place: Place) -> None:
    assert events.dataset == place.dataset(place.name(events.dataset))
    assert events.mode is ReadMode.STATE
    assert events.snapshot is not None
    assert str(events.generation) == place.generation(place.name(events.dataset), events.snapshot)
    assert events.candidates == ()


CHANGES = (
    "CREATE TABLE {db}.f (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO {db}.f VALUES (1, 'a')",
    "INSERT INTO {db}.f VALUES (2, 'b')",
    "DELETE FROM {db}.f WHERE id = 1",
)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("start", "end", "since", "to"), [(1, None, 0, 3), (2, 2, 1, 2), (0, 9, None, 3)])
def test_change_feed(place: Place, start: int, end: int | None, since: int | None, to: int) -> None:
    for step in CHANGES:
        do(step, place)
    place.driver.spark.conf.set("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
    arguments = f"'{place.db}.f', {start}" if end is None else f"'{place.db}.f', {start}, {min(end, 3)}"

    events = events_of(f"INSERT INTO {{db}}.t SELECT id, v FROM table_changes({arguments})", place)

    (read,) = the(Committed, events).inputs
    assert not of(Gap, events)
    assert (read.dataset, read.mode, read.snapshot) == (place.dataset("f"), ReadMode.CHANGES, to)
    assert (read.since.snapshot if read.since else None) == since


@pytest.mark.long
def test_vacuum_by_the_api_is_reported_without_a_statement(place: Place) -> None:
    events = events_of(lambda spark, place: delta_table(spark, place).vacuum(), place)
    for _ in attempts("commits of a vacuum", pause=0.01):
        if of(Committed, events):
            break
        events += place.driver.events_of()
    assert not of(Gap, events)
    outputs = [o for c in of(Committed, events) for o in c.outputs]
    assert [(o.snapshot, o.commit_kind) for o in outputs] == [(1, K.VACUUM), (2, K.VACUUM)]


@pytest.mark.long
def test_what_the_api_converts_is_reported_without_a_statement(place: Place) -> None:
    directory = place.driver.warehouse / place.driver.name()
    place.driver.spark.range(3).write.parquet(str(directory))
    inside: Any = place.driver.spark

    def convert(spark: Any, _: Place) -> object:
        return inside._jvm.io.delta.tables.DeltaTable.convertToDelta(spark._jsparkSession, f"parquet.`{directory}`")

    events = events_of(convert, place)

    (output,) = [output for each in of(Committed, events) for output in each.outputs]
    assert output.dataset == DatasetId(namespace=f"file://{HOST}", name=str(directory))
    assert (output.snapshot, output.made_from, output.replaced) == (0, None, X.ALL)
    assert not of(Gap, events)


def test_what_the_api_alters_is_reported(place: Place) -> None:
    """Protocol features are in no table's metadata, but the version is there."""
    events = events_of(lambda spark, place: delta_table(spark, place).addFeatureSupport("deletionVectors"), place)
    altered = the(AlterTable, events)
    assert (altered.produced, altered.parent, altered.dataset) == (1, 0, place.dataset("t"))
    assert not of(Gap, events)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        (
            "INSERT INTO {db}.t SELECT id, v, 1.5 AS w FROM {db}.s",
            [AddColumn(path=("w",), type='"decimal(2,1)"')],
        ),
        (
            "MERGE INTO {db}.t USING (SELECT id, 7 n FROM {db}.s) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *",
            [AddColumn(path=("n",), type='"integer"')],
        ),
        (
            save_as_table("SELECT id, v, 1.5 AS w FROM {db}.s", "{db}.t", mergeSchema="true"),
            [AddColumn(path=("w",), type='"decimal(2,1)"')],
        ),
        (
            lambda spark, place: (
                spark.sql(place.fill("SELECT 'x' AS other"))
                .write.format("delta")
                .mode("overwrite")
                .option("overwriteSchema", "true")
                .save(str(place.directory("t")))
            ),
            [
                DropColumn(path=("id",)),
                DropColumn(path=("v",)),
                AddColumn(path=("other",), type='"string"'),
            ],
        ),
    ],
    ids=["append", "merge", "save as table", "overwrite"],
)
def test_schema_evolution(place: Place, statement: Step, changes: list[Any]) -> None:
    place.driver.spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        events = events_of(statement, place)
    finally:
        place.driver.spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")

    altered, committed = the(AlterTable, events), the(Committed, events)
    assert events.index(altered) < events.index(committed)
    assert sorted(map(str, altered.changes)) == sorted(map(str, changes))
    assert (altered.cause, altered.produced, altered.parent) == (ModificationCause.WRITE, 1, 0)
    assert altered.dataset == place.dataset("t")
    assert altered.table is not None
    assert altered.new_table is not None
    assert [c.name for c in altered.table.columns] == ["id", "v"]
    fields = json.loads(next(a["metaData"]["schemaString"] for a in place.log("t", 1) if "metaData" in a))["fields"]
    assert [c.name for c in altered.new_table.columns] == [field["name"] for field in fields]


DDL = [
    (
        "ALTER TABLE {db}.t ADD CONSTRAINT low CHECK (id < 100)",
        [AddConstraint(constraint=Constraint(name="low", kind=CHECK, expression="id < 100", enforced=True))],
        (),
    ),
    (
        "ALTER TABLE {db}.t DROP CONSTRAINT low",
        [DropConstraint(name="low")],
        ("ALTER TABLE {db}.t ADD CONSTRAINT low CHECK (id < 100)",),
    ),
    (
        "ALTER TABLE {db}.c CLUSTER BY (v)",
        [SetClustering(columns=(("v",),))],
        ("CREATE TABLE {db}.c (id INT, v STRING) USING delta CLUSTER BY (id)",),
    ),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("statement", "changes", "given"), DDL, ids=[each[0].split("{db}.")[1] for each in DDL])
def test_ddl_of_its_own(place: Place, statement: str, changes: list[Any], given: tuple[str, ...]) -> None:
    table = statement.split()[2].partition(".")[2]
    for step in given:
        do(step, place)

    events = events_of(statement, place)

    altered = the(AlterTable, events)
    assert list(altered.changes) == changes
    assert altered.cause is ModificationCause.STATEMENT
    assert altered.identifier == TableName(catalog="spark_catalog", database=place.db, table=table)
    assert altered.dataset == place.dataset(table)
    newest = len(list((place.directory(table) / "_delta_log").glob("0*.json"))) - 1
    assert (altered.produced, altered.parent) == (newest, newest - 1)
    assert not of(Committed, events)


def test_a_clone_is_a_creation_too(place: Place) -> None:
    events = events_of("CREATE TABLE {db}.c SHALLOW CLONE {db}.s", place)

    created = the(CreateTable, events)
    assert created.identifier == TableName(catalog="spark_catalog", database=place.db, table="c")
    assert (created.produced, created.parent, created.replaced) == (0, None, False)
    assert created.dataset == place.dataset("c")
    assert [c.name for c in created.table.columns] == ["id", "v"]
    assert str(created.generation) == place.generation("c", 0)


def test_a_table_that_the_builder_made_is_reported(place: Place) -> None:
    """Its command runs in an execution nested in its own."""

    def build(spark: Any, place: Place) -> object:
        builder = spark.sparkContext._jvm.io.delta.tables.DeltaTable.create(spark._jsparkSession)
        return builder.tableName(place.fill("{db}.built")).addColumn("id", "INT").execute()

    created = the(CreateTable, events_of(build, place))
    assert created.identifier == TableName(catalog="spark_catalog", database=place.db, table="built")
    assert (created.produced, [c.name for c in created.table.columns]) == (0, ["id"])
    assert str(created.generation) == place.generation("built", 0)


def test_generated_columns_are_made_from_what_is_inserted(place: Place) -> None:
    """Delta computes them as it writes: no plan has them. One that is given is made from what it is given."""
    spark: Any = place.driver.spark
    tables = spark.sparkContext._jvm.io.delta.tables.DeltaTable
    column = tables.columnBuilder(spark._jsparkSession, "w").dataType("STRING")
    builder = tables.create(spark._jsparkSession).tableName(place.fill("{db}.g"))
    builder.addColumn("id", "INT").addColumn("v", "STRING").addColumn(
        column.generatedAlwaysAs("concat(v, CAST(id AS STRING))").build()
    ).execute()
    events = place.driver.events_of(
        place.fill("INSERT INTO {db}.g (id, v) SELECT id, upper(v) FROM {db}.t WHERE id > 0")
    )
    assert edges(place.driver.lineage(the(Committed, events))) == {
        "id <- t.id",
        "v <- TRANSFORMATION t.v",
        "w <- TRANSFORMATION t.v",
        "w <- TRANSFORMATION t.id",
        "~FILTER t.id",
    }
    events = place.driver.events_of(
        place.fill("INSERT INTO {db}.g (id, v, w) SELECT id, 'x', concat('x', id) FROM {db}.t")
    )
    assert edges(place.driver.lineage(the(Committed, events))) == {"id <- t.id", "w <- TRANSFORMATION t.id"}


def test_a_plan_of_too_many_columns_loses_its_columns_only(place: Place) -> None:
    """The commit was lost with them. What a subquery reads counts too. 100,000 columns are nothing for a driver of a
    test, so here forty are too many."""
    place.driver.run(place.fill("CREATE TABLE {db}.copy USING delta AS SELECT * FROM {db}.t"))
    one = place.fill("SELECT id + 1 AS id, v FROM {db}.t WHERE v < (SELECT max(v) FROM {db}.s)")
    with few_columns(place.driver, 40):
        events = place.driver.events_of(place.fill("INSERT INTO {db}.copy ") + " UNION ALL ".join([one] * 10))
    commit = the(Committed, events)
    assert {(place.name(each.dataset), each.snapshot) for each in commit.inputs} == {("t", 0), ("s", 1)}
    assert [(place.name(each.dataset), each.snapshot) for each in commit.outputs] == [("copy", 1)]
    lineage = place.driver.lineage(commit)
    assert {place.name(each.dataset) for each in lineage.inputs} == {"t", "s"}
    assert not lineage.columns
    assert [each.detail for each in of(Gap, events)] == [
        "columns can't be followed through a plan of more than 40 columns and expressions"
    ]


@contextmanager
def few_columns(driver: Driver, most: int) -> Generator[None, None, None]:
    """A plan of more than so many parts has too many."""
    context: Any = driver.spark.sparkContext
    limit = JavaClasses(context).load("PlanWriter").getField("most")
    before = limit.get(None)
    limit.set(None, most)
    try:
        yield
    finally:
        limit.set(None, before)


@pytest.mark.long
def test_a_table_like_another_is_created_and_has_no_rows(place: Place) -> None:
    events = events_of("CREATE TABLE {db}.c LIKE {db}.s", place)

    assert the(CreateTable, events).produced == 0
    assert not of(Committed, events)
    assert not of(Gap, events)


def test_a_failed_statement_says_what_it_would_have_written(place: Place) -> None:
    events = place.driver.events_of_failure(
        place.fill("MERGE INTO {db}.t USING {db}.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = raise_error('no')")
    )

    failed = the(StatementFailed, events)
    assert [place.name(each.dataset) for each in failed.outputs] == ["t"]
    assert not of(Committed, events)


def test_every_command_of_the_jar_is_known(driver: Driver) -> None:
    """Each class of Delta's that Spark may run as a command is reported, or ignored for a reason."""
    found = commands_of_the_jar(driver)
    assert "MergeIntoCommand" in found
    # In Delta 4.4's jar, but Delta 4.4 refuses the statement: a Gap where that is switched on.
    later = {"DeltaInsertReplaceOnOrUsingCommand"}
    assert not {name for name in found if name not in all_commands()} - later


def commands_of_the_jar(driver: Driver) -> list[str]:
    inside: Any = driver.spark
    loader = inside._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    command = loader.loadClass("org.apache.spark.sql.catalyst.plans.logical.Command")
    place = loader.loadClass("org.apache.spark.sql.delta.DeltaLog").getProtectionDomain().getCodeSource().getLocation()
    with zipfile.ZipFile(str(place.getPath())) as archive:
        names = [name[:-6].replace("/", ".") for name in archive.namelist() if name.endswith(".class")]
    likely = [name for name in names if "$" not in name and (name.endswith("Command") or ".plans.logical." in name)]
    kinds = [loader.loadClass(name) for name in likely]
    concrete = [kind for kind in kinds if command.isAssignableFrom(kind) and not kind.getModifiers() & 0x600]
    return [str(kind.getSimpleName()) for kind in concrete]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "write",
    [
        lambda spark, db: spark.sql(f"INSERT INTO {db}.t BY NAME SELECT v, id AS ID FROM {db}.s"),
        lambda spark, db: spark.sql(f"INSERT OVERWRITE {db}.t BY NAME SELECT v, id FROM {db}.s"),
        lambda spark, db: spark.sql(f"INSERT INTO {db}.t (v, id) SELECT v, id FROM {db}.s"),
        lambda spark, db: spark.sql(f"SELECT v, id FROM {db}.s").writeTo(f"{db}.t").append(),
        lambda spark, db: (
            spark.sql(f"SELECT v, id FROM {db}.s").write.format("delta").mode("append").saveAsTable(f"{db}.t")
        ),
    ],
    ids=["INSERT", "INSERT OVERWRITE", "column list", "writeTo", "saveAsTable"],
)
def test_columns_are_matched_by_name(place: Place, write: Callable[[Any, str], object]) -> None:
    """Delta leaves the query's columns in their own order."""
    events = place.driver.events_of(lambda spark: write(spark, place.db))
    assert edges(place.driver.lineage(the(Committed, events))) == {"id <- s.id", "v <- s.v"}


@pytest.mark.long
def test_a_column_list_may_leave_columns_out(place: Place) -> None:
    events = place.driver.events_of(f"INSERT INTO {place.db}.t (v) SELECT v FROM {place.db}.s")
    assert edges(place.driver.lineage(the(Committed, events))) == {"v <- s.v"}
    assert not of(Gap, events)


@pytest.mark.smoke
def test_javac_agrees(driver: Driver, tmp_path: Path) -> None:
    assert not complaints_of_javac(driver.spark.sparkContext, tmp_path)
