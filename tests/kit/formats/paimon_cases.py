"""Every way to write and read Paimon's tables, with the numbers counted by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.kit.formats.paimon_place import Place, Step


@dataclass(frozen=True)
class Case:
    name: str
    step: Step
    made: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    before: tuple[Step, ...] = ()


def save_to_path(mode: str, **options: str) -> Step:
    def save(spark: Any, place: Place) -> None:
        writer = spark.table(f"pai.{place.db}.s").write.format("paimon").mode(mode).options(**options)
        writer.save(str(place.home / "t"))

    return save


def _read_with(*options: tuple[str, str], table: str = "t") -> Step:
    def insert(spark: Any, place: Place) -> None:
        frame = spark.read.options(**dict(options)).table(f"pai.{place.db}.{table}")
        frame.select("id", "v").write.insertInto(f"pai.{place.db}.s")

    return insert


def _of_path(spark: Any, place: Place) -> None:
    spark.read.format("paimon").load(str(place.home / "t")).write.insertInto(f"pai.{place.db}.s")


def _changes_by_function(spark: Any, place: Place) -> None:
    """It looks for the table in the current catalog."""
    spark.sql("USE pai.default")
    try:
        spark.sql(f"INSERT INTO {place.db}.s SELECT * FROM paimon_incremental_query('{place.db}.t', 1, 2)")
    finally:
        spark.sql("USE spark_catalog.default")


def _append_to(spark: Any, place: Place) -> None:
    spark.table(f"pai.{place.db}.s").writeTo(f"pai.{place.db}.t").append()


def _overwrite_partitions(spark: Any, place: Place) -> None:
    spark.sql("SELECT 9 id, 'n' v, 'a' d").writeTo(f"pai.{place.db}.p").overwritePartitions()


def _as_table(spark: Any, place: Place) -> None:
    spark.table(f"pai.{place.db}.s").write.format("paimon").mode("append").saveAsTable(f"pai.{place.db}.t")


def _cached(spark: Any, place: Place) -> None:
    """What a cache holds is of the snapshot that it was made from, whatever came since."""
    name = f"pai.{place.db}"
    frame = spark.sql(f"SELECT * FROM {name}.t WHERE id < 100").cache()
    frame.count()
    place.driver.events_of(lambda spark: spark.range(1))
    frame.write.insertInto(f"{name}.s")
    frame.unpersist()


def _then(*steps: str) -> tuple[Step, ...]:
    return steps


PARTITIONED = "CREATE TABLE {d}.p (id INT, v STRING, d STRING) PARTITIONED BY (d)"
FILLED = "INSERT INTO {d}.p VALUES (1, 'a', 'a'), (2, 'b', 'b')"
KEYED = "CREATE TABLE {d}.k (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
KEYS = "INSERT INTO {d}.k VALUES (1, 'a'), (2, 'b')"
VECTORS = "CREATE TABLE {d}.p (id INT, v STRING) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')"
VECTOR_ROWS = "INSERT INTO {d}.p VALUES (1, 'a'), (2, 'b')"
TAGGED = "CALL pai.sys.create_tag('{db}.t', 'monday', 1)"
BRANCHED = "CALL pai.sys.create_branch('{db}.t', 'b', 'monday')"
MATCHED = "USING {d}.s s ON k.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"

WRITES = [
    Case("values", "INSERT INTO {d}.t VALUES (7, 'z')", ("t@3<2 APPEND NOTHING",)),
    Case("first", "INSERT INTO {d}.n VALUES (7)", ("n@1 APPEND NOTHING",), before=_then("CREATE TABLE {d}.n (id INT)")),
    Case("select", "INSERT INTO {d}.t SELECT * FROM {d}.s", ("t@3<2 APPEND NOTHING",), ("s@1",)),
    Case("itself", "INSERT INTO {d}.t SELECT * FROM {d}.t", ("t@3<2 APPEND NOTHING",), ("t@2",)),
    Case("writeTo", _append_to, ("t@3<2 APPEND NOTHING",), ("s@1",)),
    Case("saveAsTable", _as_table, ("t@3<2 APPEND NOTHING",), ("s@1",)),
    Case("save append", save_to_path("append"), ("t@3<2 APPEND NOTHING",), ("s@1",)),
    Case("save overwrite", save_to_path("overwrite"), ("t@3<2 OVERWRITE ALL",), ("s@1",)),
    Case("no rows", "INSERT INTO {d}.t SELECT * FROM {d}.s WHERE id > 99"),
    Case("overwrite", "INSERT OVERWRITE {d}.t SELECT * FROM {d}.s", ("t@3<2 OVERWRITE ALL",), ("s@1",)),
    Case("overwrite by nothing", "INSERT OVERWRITE {d}.t SELECT 1, 'a' WHERE false", ("t@3<2 OVERWRITE ALL",)),
    Case(
        "a partition",
        "INSERT OVERWRITE {d}.p PARTITION (d = 'a') SELECT id, v FROM {d}.s",
        ("p@2<1 OVERWRITE PART",),
        ("s@1",),
        _then(PARTITIONED, FILLED),
    ),
    Case(
        "all partitions",
        "INSERT OVERWRITE {d}.p VALUES (3, 'c', 'c')",
        ("p@2<1 OVERWRITE ALL",),
        (),
        _then(PARTITIONED, FILLED),
    ),
    Case("partitions of rows", _overwrite_partitions, ("p@2<1 OVERWRITE PART",), (), _then(PARTITIONED, FILLED)),
    Case("keyed", "INSERT INTO {d}.k SELECT * FROM {d}.s", ("k@2<1 APPEND UNKNOWN",), ("s@1",), _then(KEYED, KEYS)),
    Case(
        "keyed in dynamic buckets",
        "INSERT INTO {d}.k SELECT * FROM {d}.s",
        ("k@2<1 APPEND UNKNOWN",),
        ("s@1",),
        _then("CREATE TABLE {d}.k (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id')", KEYS),
    ),
    Case(
        "keyed across partitions",
        "INSERT INTO {d}.k SELECT id, v, 'y' FROM {d}.s",
        ("k@2<1 APPEND UNKNOWN",),
        ("s@1",),
        _then(
            "CREATE TABLE {d}.k (id INT, v STRING, d STRING) PARTITIONED BY (d) TBLPROPERTIES ('primary-key' = 'id')",
            "INSERT INTO {d}.k VALUES (1, 'a', 'x')",
        ),
    ),
    Case(
        "in buckets",
        "INSERT INTO {d}.k SELECT * FROM {d}.s",
        ("k@1 APPEND NOTHING",),
        ("s@1",),
        _then("CREATE TABLE {d}.k (id INT, v STRING) TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'id')"),
    ),
    Case(
        "with a compaction",
        "INSERT INTO {d}.k SELECT * FROM {d}.s",
        ("k@3<2 APPEND UNKNOWN", "k@4<3 COMPACT NOTHING"),
        ("s@1",),
        _then(
            "CREATE TABLE {d}.k (id INT, v STRING)"
            " TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'changelog-producer' = 'lookup')",
            KEYS,
        ),
    ),
    Case(
        "with partitions that expire",
        "INSERT INTO {d}.p VALUES (1, 'a', '2020-01-01')",
        ("p@1 APPEND NOTHING", "p@2<1 OVERWRITE PART"),
        (),
        _then(
            "CREATE TABLE {d}.p (id INT, v STRING, d STRING) PARTITIONED BY (d) TBLPROPERTIES ("
            "'partition.expiration-time' = '1 d', 'partition.timestamp-formatter' = 'yyyy-MM-dd',"
            " 'end-input.check-partition-expire' = 'true')"
        ),
    ),
    Case(
        "merge by key",
        "MERGE INTO {d}.k k " + MATCHED + " WHEN NOT MATCHED THEN INSERT *",
        ("k@2<1 APPEND PART",),
        ("k@1", "s@1"),
        _then(KEYED, KEYS),
    ),
    Case(
        "merge of files",
        "MERGE INTO {d}.t k "
        + MATCHED.replace("{d}.s", "{db}.q")
        + " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
        ("t@3<2 APPEND PART",),
        ("t@2", "q"),
        _then("CREATE TABLE {db}.q (id INT, v STRING) USING parquet", "INSERT INTO {db}.q VALUES (2, 'x'), (4, 'y')"),
    ),
    Case(
        "update by key", "UPDATE {d}.k SET v = 'n' WHERE id = 1", ("k@2<1 APPEND PART",), ("k@1",), _then(KEYED, KEYS)
    ),
    Case("update of files", "UPDATE {d}.t SET v = 'n' WHERE id = 1", ("t@3<2 APPEND PART",), ("t@2",)),
    Case("update of nothing", "UPDATE {d}.t SET v = 'n' WHERE id = 99"),
    Case(
        "update by a subquery",
        "UPDATE {d}.t SET v = 'n' WHERE id IN (SELECT id FROM {d}.s)",
        ("t@3<2 APPEND PART",),
        ("t@2", "s@1"),
    ),
    Case("delete by key", "DELETE FROM {d}.k WHERE id = 1", ("k@2<1 APPEND PART",), ("k@1",), _then(KEYED, KEYS)),
    Case("delete in files", "DELETE FROM {d}.t WHERE id = 1", ("t@3<2 APPEND PART",), ("t@2",)),
    Case("delete nothing", "DELETE FROM {d}.t WHERE id = 99"),
    Case(
        "delete a partition",
        "DELETE FROM {d}.p WHERE d = 'a'",
        ("p@2<1 OVERWRITE PART",),
        (),
        _then(PARTITIONED, FILLED),
    ),
    Case("delete no partition", "DELETE FROM {d}.p WHERE d = 'z'", (), (), _then(PARTITIONED, FILLED)),
    Case("delete all", "DELETE FROM {d}.t", ("t@3<2 OVERWRITE ALL",)),
    Case(
        "delete by vectors",
        "DELETE FROM {d}.p WHERE id = 1",
        ("p@2<1 COMPACT PART",),
        ("p@1",),
        _then(VECTORS, VECTOR_ROWS),
    ),
    Case(
        "update by vectors",
        "UPDATE {d}.p SET v = 'n' WHERE id = 1",
        ("p@2<1 APPEND PART", "p@3<2 COMPACT PART"),
        ("p@1",),
        _then(VECTORS, VECTOR_ROWS),
    ),
    Case("truncate", "TRUNCATE TABLE {d}.t", ("t@3<2 OVERWRITE ALL",)),
    Case(
        "drop a partition",
        "ALTER TABLE {d}.p DROP PARTITION (d = 'a')",
        ("p@2<1 OVERWRITE PART",),
        (),
        _then(PARTITIONED, FILLED),
    ),
    Case(
        "drop no partition", "ALTER TABLE {d}.p DROP IF EXISTS PARTITION (d = 'z')", (), (), _then(PARTITIONED, FILLED)
    ),
    Case("analyze", "ANALYZE TABLE {d}.t COMPUTE STATISTICS", ("t@3<2 ANALYZE NOTHING",)),
    Case("CTAS", "CREATE TABLE {d}.n AS SELECT * FROM {d}.t", ("n@1 APPEND ALL",), ("t@2",)),
    Case("CTAS of nothing", "CREATE TABLE {d}.n AS SELECT * FROM {d}.t WHERE id > 99"),
    Case("RTAS", "CREATE OR REPLACE TABLE {d}.s USING paimon AS SELECT * FROM {d}.t", ("s@1 OVERWRITE ALL",), ("t@2",)),
    Case(
        "RTAS anew",
        "CREATE OR REPLACE TABLE {d}.n USING paimon AS SELECT * FROM {d}.t",
        ("n@1 OVERWRITE ALL",),
        ("t@2",),
    ),
    Case(
        "made again",
        "INSERT INTO {d}.t VALUES (1)",
        ("t@1 APPEND NOTHING",),
        before=_then("DROP TABLE {d}.t", "CREATE TABLE {d}.t (id INT)"),
    ),
    Case(
        "another schema",
        "INSERT INTO {d}.t VALUES (1, 'a', 5)",
        ("t@3<2 APPEND NOTHING",),
        before=_then("ALTER TABLE {d}.t ADD COLUMNS (w INT)"),
    ),
    Case(
        "to a branch",
        "INSERT INTO {d}.`t$branch_b` VALUES (8, 'h')",
        ("t/b@2<1 APPEND NOTHING",),
        (),
        _then(TAGGED, BRANCHED),
    ),
    Case(
        "to an empty branch",
        "INSERT INTO {d}.`t$branch_e` SELECT * FROM {d}.t",
        ("t/e@1 APPEND NOTHING",),
        ("t@2",),
        _then("CALL pai.sys.create_branch('{db}.t', 'e')"),
    ),
    Case("compact", "CALL pai.sys.compact('{db}.k')", ("k@3<2 COMPACT NOTHING",), (), _then(KEYED, KEYS, KEYS)),
    Case("compact nothing", "CALL pai.sys.compact('{db}.p')", (), (), _then(PARTITIONED)),
    Case(
        "sort",
        "CALL pai.sys.compact(table => '{db}.t', order_strategy => 'order', order_by => 'id')",
        ("t@3<2 OVERWRITE PART",),
    ),
    Case(
        "expire partitions",
        "CALL pai.sys.expire_partitions('{db}.p', '1 d', 'yyyy-MM-dd')",
        ("p@2<1 OVERWRITE PART",),
        (),
        _then(PARTITIONED, "INSERT INTO {d}.p VALUES (1, 'a', '2020-01-01')"),
    ),
    Case(
        "expire no partitions",
        "CALL pai.sys.expire_partitions('{db}.p', '9999 d', 'yyyy-MM-dd')",
        (),
        (),
        _then(PARTITIONED),
    ),
]

READS = [
    Case("a version", "INSERT INTO {d}.s SELECT * FROM {d}.t VERSION AS OF 1", ("s@2<1 APPEND NOTHING",), ("t@1",)),
    Case(
        "a tag",
        "INSERT INTO {d}.s SELECT * FROM {d}.t VERSION AS OF 'monday'",
        ("s@2<1 APPEND NOTHING",),
        ("t#monday@1",),
        _then(TAGGED),
    ),
    Case(
        "a time",
        "INSERT INTO {d}.s SELECT * FROM {d}.t TIMESTAMP AS OF '2999-01-01'",
        ("s@2<1 APPEND NOTHING",),
        ("t@2",),
    ),
    Case("scan.snapshot-id", _read_with(("scan.snapshot-id", "1")), ("s@2<1 APPEND NOTHING",), ("t@1",)),
    Case(
        "scan.tag-name",
        _read_with(("scan.tag-name", "monday")),
        ("s@2<1 APPEND NOTHING",),
        ("t#monday@1",),
        _then(TAGGED),
    ),
    Case(
        "scan.timestamp-millis",
        _read_with(("scan.timestamp-millis", "32503680000000")),
        ("s@2<1 APPEND NOTHING",),
        ("t@2",),
    ),
    Case("changes", _read_with(("incremental-between", "1,2")), ("s@2<1 APPEND NOTHING",), ("t@2>1",)),
    Case(
        "changes, asked of a function",
        _changes_by_function,
        ("s@2<1 APPEND NOTHING",),
        ("t@2>1",),
    ),
    Case(
        "changes between tags",
        _read_with(("incremental-between", "monday,tuesday")),
        ("s@2<1 APPEND NOTHING",),
        ("t@2>?",),
        _then(TAGGED, "CALL pai.sys.create_tag('{db}.t', 'tuesday', 2)"),
    ),
    Case(
        "no changes",
        "INSERT OVERWRITE {d}.s SELECT id, v FROM {d}.n VERSION AS OF 2",
        ("s@2<1 OVERWRITE ALL",),
        ("n@2",),
        _then("CREATE TABLE {d}.n AS SELECT * FROM {d}.t", "TRUNCATE TABLE {d}.n"),
    ),
    Case(
        "a branch",
        "INSERT INTO {d}.s SELECT * FROM {d}.`t$branch_b`",
        ("s@2<1 APPEND NOTHING",),
        ("t/b@1",),
        _then(TAGGED, BRANCHED),
    ),
    Case("a path", _of_path, ("s@2<1 APPEND NOTHING",), ("t@2",)),
    Case("log", "CREATE TABLE {d}.n AS SELECT * FROM {d}.`t$audit_log`", ("n@1 APPEND ALL",), ("t@2",)),
    Case(
        "read optimized",
        "CREATE TABLE {d}.n AS SELECT * FROM {d}.`k$ro`",
        ("n@1 APPEND ALL",),
        ("k@3",),
        _then(KEYED, KEYS, "CALL pai.sys.compact('{db}.k')", KEYS),
    ),
    Case(
        "what the table says of itself",
        "CREATE TABLE {d}.n AS SELECT snapshot_id FROM {d}.`t$snapshots`",
        ("n@1 APPEND ALL",),
        ("t",),
    ),
    Case(
        "two versions",
        "INSERT INTO {d}.s SELECT a.id, b.v FROM {d}.t a LEFT JOIN {d}.t VERSION AS OF 1 b ON a.id = b.id",
        ("s@2<1 APPEND NOTHING",),
        ("t@1", "t@2"),
    ),
    Case(
        "nothing yet",
        "INSERT OVERWRITE {d}.s SELECT * FROM {d}.n",
        ("s@2<1 OVERWRITE ALL",),
        ("n",),
        _then("CREATE TABLE {d}.n (id INT, v STRING)"),
    ),
    Case(
        "no file left", "INSERT OVERWRITE {d}.s SELECT * FROM {d}.t WHERE id > 99", ("s@2<1 OVERWRITE ALL",), ("t@2",)
    ),
    Case(
        "beside one that gives nothing",
        "INSERT INTO {d}.s SELECT t.id, s.v FROM {d}.t LEFT JOIN (SELECT * FROM {d}.s WHERE id > 99) s ON t.id = s.id",
        ("s@2<1 APPEND NOTHING",),
        ("t@2", "s@1"),
    ),
    Case(
        "a view",
        "INSERT INTO {d}.s SELECT * FROM {db}_view",
        ("s@2<1 APPEND NOTHING",),
        ("t@2",),
        _then("CREATE TEMPORARY VIEW {db}_view AS SELECT * FROM {d}.t"),
    ),
    Case(
        "a union",
        "INSERT INTO {d}.s SELECT * FROM {d}.t UNION ALL SELECT * FROM {d}.s",
        ("s@2<1 APPEND NOTHING",),
        ("t@2", "s@1"),
    ),
    Case(
        "a scalar subquery",
        "INSERT INTO {d}.s SELECT id, (SELECT max(v) FROM {d}.s) FROM {d}.t",
        ("s@2<1 APPEND NOTHING",),
        ("t@2", "s@1"),
    ),
    Case(
        "partitions chosen at run time",
        "INSERT INTO {d}.s SELECT p.id, p.v FROM {d}.p JOIN {d}.n ON p.d = n.d WHERE n.w = 1",
        ("s@2<1 APPEND NOTHING",),
        ("p@1", "n@1"),
        _then(PARTITIONED, FILLED, "CREATE TABLE {d}.n AS SELECT 'a' d, 1 w UNION ALL SELECT 'q', 2"),
    ),
    Case("from a cache", _cached, ("s@2<1 APPEND NOTHING",), ("t@2",)),
]
