"""The ways to write that are Paimon's own, as `writing_ways.py` has those of all.

It is run as a job. Of the tests it imports its sibling alone, so the repository has to be on the job's path.
"""

# ruff: noqa: ARG005

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from tests.kit.cases.writing_ways import ROW, Way, end, java, main, rows, sql, stream

OTHER: Final = "pai.db.other"
KEYED: Final = "pai.db.keyed"
PARTS: Final = "pai.db.parts"
MINE: Final = "pai.db.appended"
"""Redirected by the lens, as the next one."""
MY_KEYED: Final = "pai.db.my_keyed"
BRANCH: Final = "pai.db.`other$branch_b`"
STATEMENTS: Final = (
    "CREATE DATABASE pai.db",
    *(f"CREATE TABLE pai.db.{name} (id INT, amount INT)" for name in ("orders", "appended", "other")),
    *(
        f"CREATE TABLE pai.db.{name} (id INT NOT NULL, amount INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
        for name in ("keyed", "my_keyed")
    ),
    "CREATE TABLE pai.db.parts (id INT, p INT) PARTITIONED BY (p)",
    *(f"INSERT INTO pai.db.{name} VALUES (1, 10), (2, 20)" for name in ("orders", "other", "keyed", "parts")),
    f"INSERT INTO {OTHER} VALUES (3, 30)",
    "CALL pai.sys.create_tag(table => 'db.other', tag => 't1', snapshot => 1)",
    "CALL pai.sys.create_branch(table => 'db.other', branch => 'b', tag => 't1')",
    "CREATE DATABASE spark_catalog.db",
    "CREATE TABLE spark_catalog.db.files (id INT, amount INT) USING parquet",
    "INSERT INTO spark_catalog.db.files VALUES (1, 10)",
)


def call(name: str, arguments: str) -> Way:
    return sql(f"CALL pai.sys.{name}({arguments})")


def table_of(spark: Any) -> Any:
    """Paimon's own table, as Java has it."""
    options = java(spark).org.apache.paimon.options.Options()
    return java(spark).org.apache.paimon.catalog.CatalogFactory.createCatalog(
        java(spark).org.apache.paimon.catalog.CatalogContext.create(options)
    )


SQL: Final[Mapping[str, Way]] = {
    "INSERT": sql(f"INSERT INTO {OTHER} {ROW}"),
    "INSERT keyed": sql(f"INSERT INTO {KEYED} {ROW}"),
    "INSERT OVERWRITE": sql(f"INSERT OVERWRITE {OTHER} {ROW}"),
    "INSERT OVERWRITE PARTITION": sql(f"INSERT OVERWRITE {PARTS} PARTITION (p = 10) SELECT 9 AS id"),
    "INSERT OVERWRITE of some partitions": sql(
        "SET spark.sql.sources.partitionOverwriteMode = dynamic",
        f"INSERT OVERWRITE {PARTS} SELECT 9 AS id, 10 AS p",
    ),
    "INSERT into a branch": sql(f"INSERT INTO {BRANCH} {ROW}"),
    "INSERT into a redirected table's branch": sql(f"INSERT INTO pai.db.`appended$branch_b` {ROW}"),
    "UPDATE": sql(f"UPDATE {OTHER} SET amount = 0"),
    "UPDATE keyed": sql(f"UPDATE {KEYED} SET amount = 0"),
    "DELETE": sql(f"DELETE FROM {OTHER} WHERE id > 0"),
    "DELETE keyed": sql(f"DELETE FROM {KEYED} WHERE id > 0"),
    "DELETE a partition": sql(f"DELETE FROM {PARTS} WHERE p = 10"),
    "DELETE of a branch": sql(f"DELETE FROM {BRANCH} WHERE id > 0"),
    "MERGE": sql(f"MERGE INTO {OTHER} t USING ({ROW}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "MERGE keyed": sql(f"MERGE INTO {KEYED} t USING ({ROW}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "TRUNCATE": sql(f"TRUNCATE TABLE {OTHER}"),
    "TRUNCATE PARTITION": sql(f"TRUNCATE TABLE {PARTS} PARTITION (p = 10)"),
    "DROP PARTITION": sql(f"ALTER TABLE {PARTS} DROP PARTITION (p = 10)"),
    "CREATE TABLE": sql("CREATE TABLE pai.db.made (id INT)"),
    "CREATE TABLE AS": sql(f"CREATE TABLE pai.db.made AS {ROW}"),
    "REPLACE TABLE": sql(f"CREATE OR REPLACE TABLE {OTHER} (id INT)"),
    "REPLACE TABLE AS": sql(f"CREATE OR REPLACE TABLE {OTHER} AS {ROW}"),
    "CREATE TABLE of files": sql("CREATE TABLE pai.db.made (id INT) USING parquet"),
    "DROP TABLE": sql(f"DROP TABLE {OTHER}"),
    "DROP TABLE PURGE": sql(f"DROP TABLE {OTHER} PURGE"),
    "CREATE DATABASE": sql("CREATE DATABASE pai.made"),
    "ALTER DATABASE": sql("ALTER DATABASE pai.db SET DBPROPERTIES ('a' = 'b')"),
    "DROP DATABASE": sql("DROP DATABASE pai.db CASCADE"),
    "RENAME": sql(f"ALTER TABLE {OTHER} RENAME TO pai.db.moved"),
    "ADD COLUMN": sql(f"ALTER TABLE {OTHER} ADD COLUMN more INT"),
    "RENAME COLUMN": sql(f"ALTER TABLE {OTHER} RENAME COLUMN amount TO total"),
    "DROP COLUMN": sql(f"ALTER TABLE {OTHER} DROP COLUMN amount"),
    "ALTER COLUMN": sql(f"ALTER TABLE {OTHER} ALTER COLUMN amount TYPE BIGINT"),
    "SET TBLPROPERTIES": sql(f"ALTER TABLE {OTHER} SET TBLPROPERTIES ('snapshot.num-retained.max' = '1')"),
    "UNSET TBLPROPERTIES": sql(f"ALTER TABLE {KEYED} UNSET TBLPROPERTIES ('bucket')"),
    "COMMENT": sql(f"COMMENT ON TABLE {OTHER} IS 'made'"),
    "ANALYZE": sql(f"ANALYZE TABLE {OTHER} COMPUTE STATISTICS"),
    "ANALYZE COLUMNS": sql(f"ANALYZE TABLE {OTHER} COMPUTE STATISTICS FOR COLUMNS id, amount"),
    "a catalog of the script's own": sql(
        "SET spark.sql.catalog.mine = org.apache.paimon.spark.SparkCatalog",
        "SET spark.sql.catalog.mine.warehouse = file:{w.pai}",
        f"INSERT INTO mine.db.other {ROW}",
    ),
    "a temporary view of its files": sql(
        "CREATE TEMP VIEW of_paimon USING paimon OPTIONS (path '{w.other}')", f"INSERT INTO of_paimon {ROW}"
    ),
}
PROCEDURES: Final[Mapping[str, Way]] = {
    f"CALL {name}": call(name, arguments)
    for name, arguments in {
        "compact": "table => 'db.other'",
        "create_branch": "table => 'db.other', branch => 'made', tag => 't1'",
        "create_tag": "table => 'db.other', tag => 'made', snapshot => 2",
        "create_tag_from_timestamp": "table => 'db.other', tag => 'made', timestamp => 1",
        "delete_branch": "table => 'db.other', branch => 'b'",
        "delete_tag": "table => 'db.other', tag => 't1'",
        "expire_partitions": (
            "table => 'db.parts', expiration_time => '1 d', timestamp_formatter => 'yyyy', "
            "expire_strategy => 'update-time'"
        ),
        "expire_snapshots": "table => 'db.other', retain_max => 1",
        "fast_forward": "table => 'db.other', branch => 'b'",
        "mark_partition_done": "table => 'db.parts', partitions => 'p=10'",
        "migrate_file": "source_type => 'hive', source_table => 'db.files', target_table => 'db.other'",
        "migrate_table": "source_type => 'hive', table => 'db.files'",
        "remove_orphan_files": "table => 'db.other', older_than => '2999-01-01 00:00:00'",
        "repair": "'db.other'",
        "reset_consumer": "table => 'db.other', consumerId => 'c', nextSnapshotId => 1",
        "rollback": "table => 'db.other', version => '1'",
    }.items()
}
"""Of a redirected table, too: a procedure looks its table up by itself."""
LEADING_BACK: Final[Mapping[str, Way]] = {
    "CALL of a redirected table": call("compact", "table => 'db.appended'"),
    "property path": sql(f"ALTER TABLE {MINE} SET TBLPROPERTIES ('path' = '{{w.other}}')"),
    "made anew with a path": sql(
        f"CREATE OR REPLACE TABLE {MINE} (id INT, amount INT) TBLPROPERTIES ('path' = '{{w.other}}')"
    ),
    "made anew at a LOCATION": sql(f"CREATE OR REPLACE TABLE {MINE} (id INT, amount INT) LOCATION '{{w.other}}'"),
    "RENAME elsewhere": sql(f"ALTER TABLE {MINE} RENAME TO pai.db.moved"),
    "writeTo with a path": lambda spark, w: rows(spark).writeTo(MINE).option("path", w.other).append(),
    "saveAsTable with a path": lambda spark, w: (
        rows(spark).write.format("paimon").mode("append").option("path", w.other).saveAsTable(MINE)
    ),
}
FRAMES: Final[Mapping[str, Way]] = {
    "save by path": lambda spark, w: rows(spark).write.format("paimon").mode("append").save(w.other),
    "save by path, overwriting": lambda spark, w: rows(spark).write.format("paimon").mode("overwrite").save(w.other),
    "save with the option path": lambda spark, w: (
        rows(spark).write.format("paimon").mode("append").option("path", w.other).save()
    ),
    "save over a redirected table's path": lambda spark, w: (
        rows(spark).write.format("paimon").mode("append").save(f"{w.pai}/db.db/appended")
    ),
    "saveAsTable": lambda spark, w: rows(spark).write.format("paimon").mode("append").saveAsTable(OTHER),
    "saveAsTable overwrite": lambda spark, w: rows(spark).write.format("paimon").mode("overwrite").saveAsTable(OTHER),
    "saveAsTable of a new one": lambda spark, w: rows(spark).write.format("paimon").saveAsTable("pai.db.made"),
    "insertInto": lambda spark, w: rows(spark).write.insertInto(OTHER),
    "insertInto overwrite": lambda spark, w: rows(spark).write.insertInto(OTHER, overwrite=True),
    "insertInto a branch": lambda spark, w: rows(spark).write.insertInto(BRANCH),
    "writeTo append": lambda spark, w: rows(spark).writeTo(OTHER).append(),
    "writeTo overwrite": lambda spark, w: rows(spark).writeTo(OTHER).overwrite(rows(spark).id > 0),
    "writeTo overwritePartitions": lambda spark, w: rows(spark).writeTo(OTHER).overwritePartitions(),
    "writeTo create": lambda spark, w: rows(spark).writeTo("pai.db.made").create(),
    "writeTo createOrReplace": lambda spark, w: rows(spark).writeTo(OTHER).createOrReplace(),
    "catalog.createTable": lambda spark, w: spark.catalog.createTable("pai.db.made", source="paimon"),
}
STREAMS: Final[Mapping[str, Way]] = {
    "start by path": lambda spark, w: end(stream(spark, w, "path").format("paimon").start(w.other)),
    "option path": lambda spark, w: end(stream(spark, w, "option").format("paimon").option("path", w.other).start()),
    "toTable of a new one": lambda spark, w: end(stream(spark, w, "new").format("paimon").toTable("pai.db.made")),
    "foreachBatch": lambda spark, w: end(
        stream(spark, w, "batch").foreachBatch(lambda frame, _: frame.writeTo(OTHER).append()).start()
    ),
    "foreachBatch by path": lambda spark, w: end(
        stream(spark, w, "batch path")
        .foreachBatch(lambda frame, _: frame.write.format("paimon").mode("append").save(w.other))
        .start()
    ),
    "a source with a consumer": lambda spark, w: end(
        spark.readStream.format("paimon")
        .option("consumer-id", "made")
        .load(w.other)
        .writeStream.format("noop")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{w.free}/checkpoints/consumer")
        .start()
    ),
}
JAVA: Final[Mapping[str, Way]] = {
    "Paimon's catalog": lambda spark, w: table_of(spark),
    "Spark's catalog of Paimon": lambda spark, w: (
        spark._jsparkSession.sessionState().catalogManager().catalog("pai").dropNamespace(["db"], True)
    ),
    "Paimon's table": lambda spark, w: java(spark).org.apache.paimon.table.FileStoreTableFactory.create(
        java(spark).org.apache.paimon.fs.local.LocalFileIO(), java(spark).org.apache.paimon.fs.Path(w.other)
    ),
}
UPSERT: Final = f"MERGE INTO {MY_KEYED} t USING ({ROW} WHERE false) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
PASSING: Final[Mapping[str, Way]] = {
    "INSERT where the lens leads": sql(f"INSERT INTO {MINE} SELECT 100, 1 WHERE false"),
    "UPDATE where the lens leads": sql(f"UPDATE {MINE} SET amount = 0 WHERE id > 100"),
    "DELETE where the lens leads": sql(f"DELETE FROM {MINE} WHERE id > 100"),
    "MERGE where the lens leads": sql(UPSERT),
    "ADD COLUMN where the lens leads": sql(f"ALTER TABLE {MY_KEYED} ADD COLUMN more INT"),
    "insertInto where the lens leads": lambda spark, w: rows(spark).where("id < 0").write.insertInto(MINE),
    "foreachBatch where the lens leads": lambda spark, w: end(
        stream(spark, w, "passes").foreachBatch(lambda frame, _: frame.where("id < 0").writeTo(MINE).append()).start()
    ),
    "a session's option path leads nowhere": sql(
        "SET spark.paimon.path = {w.other}", f"INSERT INTO {MINE} SELECT 100, 1 WHERE false", "RESET spark.paimon.path"
    ),
    "SHOW": sql(f"SHOW COLUMNS FROM {MINE}", f"DESCRIBE EXTENDED {MINE}", f"SHOW TBLPROPERTIES {MINE}"),
}
GROUPS: Final = {
    "sql": SQL,
    "procedures": PROCEDURES,
    "leading back": LEADING_BACK,
    "frames": FRAMES,
    "streams": STREAMS,
    "java": JAVA,
    "passing": PASSING,
}
WAYS: Final[Mapping[str, Way]] = {name: way for group in GROUPS.values() for name, way in group.items()}

if __name__ == "__main__":
    main(WAYS, (MINE, MY_KEYED), {"pai": "pai", "other": "pai/db.db/other"}, *sys.argv[1:])
