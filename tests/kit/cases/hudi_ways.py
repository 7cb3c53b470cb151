"""The ways to write that are Hudi's own, as `writing_ways.py` has those of all.

It is run as a job. Of the tests it imports its sibling alone, so the repository has to be on the job's path.
"""

# ruff: noqa: ARG005

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from tests.kit.cases.writing_ways import ROW, Way, end, java, main, rows, sql, stream

OTHER: Final = "spark_catalog.db.other"
MERGED: Final = "spark_catalog.db.merged"
PARTS: Final = "spark_catalog.db.parts"
MINE: Final = "spark_catalog.db.appended"
"""Redirected by the lens."""
KEYED: Final = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'amount'"
STATEMENTS: Final = (
    "CREATE DATABASE spark_catalog.db",
    *(
        f"CREATE TABLE spark_catalog.db.{name} (id INT, amount INT) USING hudi {KEYED})"
        for name in ("orders", "appended", "other")
    ),
    f"CREATE TABLE {MERGED} (id INT, amount INT) USING hudi {KEYED}, type = 'mor')",
    f"CREATE TABLE {PARTS} (id INT, amount INT, p INT) USING hudi PARTITIONED BY (p) {KEYED})",
    *(f"INSERT INTO spark_catalog.db.{name} VALUES (1, 10), (2, 20)" for name in ("orders", "other", "merged")),
    f"INSERT INTO {OTHER} VALUES (3, 30)",
    f"UPDATE {MERGED} SET amount = 11 WHERE id = 1",
    f"INSERT INTO {PARTS} VALUES (1, 10, 10)",
)


def save(spark: Any, operation: str, mode: str, **more: str) -> Any:
    """A write of Hudi's data source to the real table, but for its path."""
    options = {
        "hoodie.table.name": "other",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "amount",
        "hoodie.datasource.write.partitionpath.field": "",
    }
    return rows(spark).write.format("hudi").options(**options, **more).mode(mode)


EVOLVING: Final = {"hoodie.schema.on.read.enable": "true"}
"""Hudi then has commands of its own for ALTER TABLE."""


def save_by_path(operation: str, mode: str) -> Way:
    return lambda spark, w: save(spark, operation, mode).save(w.other)


SYNCED: Final = {
    "hoodie.datasource.meta.sync.enable": "true",
    "hoodie.datasource.hive_sync.enable": "true",
    "hoodie.datasource.hive_sync.mode": "hms",
    "hoodie.datasource.hive_sync.database": "db",
    "hoodie.datasource.hive_sync.table": "other",
}
"""A write of any table with these is made known as `db.other`."""


def with_settings(statement: str, settings: Mapping[str, str] = SYNCED) -> Way:
    """A statement in a session that has these settings."""

    def run(spark: Any, w: Any) -> None:
        for name, value in settings.items():
            spark.conf.set(name, value.format(w=w))
        try:
            spark.sql(statement.format(w=w)).collect()
        finally:
            for name in settings:
                spark.conf.unset(name)

    return run


SQL: Final[Mapping[str, Way]] = {
    "INSERT": sql(f"INSERT INTO {OTHER} {ROW}"),
    "INSERT OVERWRITE": sql(f"INSERT OVERWRITE {OTHER} {ROW}"),
    "INSERT OVERWRITE PARTITION": sql(f"INSERT OVERWRITE {PARTS} PARTITION (p = 10) {ROW}"),
    "UPDATE": sql(f"UPDATE {OTHER} SET amount = 0"),
    "UPDATE merged on read": sql(f"UPDATE {MERGED} SET amount = 0"),
    "DELETE": sql(f"DELETE FROM {OTHER} WHERE id > 0"),
    "MERGE": sql(f"MERGE INTO {OTHER} t USING ({ROW}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "TRUNCATE": sql(f"TRUNCATE TABLE {OTHER}"),
    "TRUNCATE PARTITION": sql(f"TRUNCATE TABLE {PARTS} PARTITION (p = 10)"),
    "ADD PARTITION": sql(f"ALTER TABLE {PARTS} ADD PARTITION (p = 11)"),
    "DROP PARTITION": sql(f"ALTER TABLE {PARTS} DROP PARTITION (p = 10)"),
    "CREATE TABLE": sql("CREATE TABLE spark_catalog.db.made (id INT) USING hudi"),
    "CREATE TABLE AS": sql(f"CREATE TABLE spark_catalog.db.made USING hudi AS {ROW}"),
    "CREATE TABLE LIKE": sql("CREATE TABLE db.made LIKE db.other"),
    "CREATE TABLE with LOCATION": sql("CREATE TABLE spark_catalog.db.made USING hudi LOCATION '{w.other}'"),
    "DROP TABLE": sql(f"DROP TABLE {OTHER}"),
    "DROP TABLE PURGE": sql(f"DROP TABLE {OTHER} PURGE"),
    "RENAME": sql(f"ALTER TABLE {OTHER} RENAME TO db.moved"),
    "ADD COLUMNS": sql(f"ALTER TABLE {OTHER} ADD COLUMNS (more INT)"),
    "ALTER COLUMN": sql(f"ALTER TABLE {OTHER} ALTER COLUMN amount TYPE BIGINT"),
    "DROP COLUMN where columns may change": with_settings(f"ALTER TABLE {OTHER} DROP COLUMN amount", EVOLVING),
    "SET TBLPROPERTIES where columns may change": with_settings(
        f"ALTER TABLE {OTHER} SET TBLPROPERTIES ('a' = 'b')", EVOLVING
    ),
    "SET TBLPROPERTIES": sql(f"ALTER TABLE {OTHER} SET TBLPROPERTIES ('a' = 'b')"),
    "CREATE INDEX": sql(f"CREATE INDEX made ON {OTHER} USING column_stats (amount)"),
    "DROP INDEX": sql(f"DROP INDEX made ON {OTHER}"),
    "MSCK REPAIR": sql(f"MSCK REPAIR TABLE {PARTS}"),
    "ANALYZE": sql(f"ANALYZE TABLE {OTHER} COMPUTE STATISTICS"),
    "SCHEDULE COMPACTION": sql("SCHEDULE COMPACTION ON db.merged"),
    "RUN COMPACTION": sql("RUN COMPACTION ON db.merged"),
    "SCHEDULE COMPACTION by path": sql("SCHEDULE COMPACTION ON '{w.merged}'"),
    "RUN COMPACTION by path": sql("RUN COMPACTION ON '{w.merged}'"),
    "a temporary view of its files": sql(
        "CREATE TEMP VIEW of_hudi USING hudi OPTIONS (path '{w.other}')",
        "INSERT INTO of_hudi SELECT * FROM of_hudi",
    ),
}
PROCEDURES: Final[Mapping[str, Way]] = {
    f"CALL {name}": sql(f"CALL {name}({arguments})")
    for name, arguments in {
        "archive_commits": "table => 'db.other', min_commits => 1, max_commits => 2",
        "copy_to_table": "table => 'db.other', new_table => 'made'",
        "copy_to_temp_view": "table => 'db.other', view_name => 'made'",
        "create_metadata_table": "table => 'db.other'",
        "create_savepoint": "table => 'db.other', commit_time => '1'",
        "delete_marker": "table => 'db.other', instant_time => '1'",
        "delete_metadata_table": "table => 'db.other'",
        "delete_savepoint": "table => 'db.other', instant_time => '1'",
        "downgrade_table": "table => 'db.other', to_version => 'SIX'",
        "drop_partition": "table => 'db.parts', partition => 'p=10'",
        "export_instants": "table => 'db.other', local_folder => '{w.other}'",
        "hive_sync": "table => 'db.other'",
        "init_metadata_table": "table => 'db.other'",
        "repair_add_partition_meta": "table => 'db.parts', dry_run => false",
        "repair_corrupted_clean_files": "table => 'db.other'",
        "repair_deduplicate": (
            "table => 'db.other', duplicated_partition_path => '', repaired_output_path => '{w.other}'"
        ),
        "repair_migrate_partition_meta": "table => 'db.parts', dry_run => false",
        "repair_overwrite_hoodie_props": "table => 'db.other', new_props_file_path => '{w.other}/made'",
        "rollback_to_instant": "table => 'db.other', instant_time => '1'",
        "rollback_to_savepoint": "table => 'db.other', instant_time => '1'",
        "run_bootstrap": (
            "table => 'db.made', table_type => 'COPY_ON_WRITE', bootstrap_path => '{w.real}/landing', "
            "base_path => '{w.real}/made', rowKey_field => 'id'"
        ),
        "run_clean": "table => 'db.other', retain_commits => 1",
        "run_clustering": "table => 'db.other'",
        "run_compaction": "op => 'run', table => 'db.merged'",
        "run_rollback_inflight_tableservice": "table => 'db.other', pending_instant => '1'",
        "run_ttl": "table => 'db.parts'",
        "set_audit_lock": "table => 'db.other', state => 'enabled'",
        "truncate_table": "table => 'db.other'",
        "upgrade_table": "table => 'db.other', to_version => 'EIGHT'",
    }.items()
}
LEADING_BACK: Final[Mapping[str, Way]] = {
    "INSERT with sync": with_settings(f"INSERT INTO {MINE} {ROW}"),
    "CALL of a redirected table": sql("CALL run_clustering(table => 'db.appended')"),
    "UPDATE with sync": with_settings(f"UPDATE {MINE} SET amount = 1 WHERE id = 1"),
    "DELETE with sync": with_settings(f"DELETE FROM {MINE} WHERE id = 1"),
    "MERGE with sync": with_settings(
        f"MERGE INTO {MINE} t USING ({ROW}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    ),
    "UPDATE with a database by SET": with_settings(
        f"UPDATE {MINE} SET amount = 1", {"hoodie.database.name": "db", "hoodie.table.name": "other"}
    ),
    "TBLPROPERTIES of sync": sql(
        f"ALTER TABLE {MINE} SET TBLPROPERTIES ('hoodie.datasource.hive_sync.table' = 'other')"
    ),
    "saveAsTable with sync": lambda spark, w: (
        rows(spark).write.format("hudi").options(**SYNCED).mode("append").saveAsTable(MINE)
    ),
    "saveAsTable with a path": lambda spark, w: (
        rows(spark).write.format("hudi").mode("append").option("path", w.other).saveAsTable(MINE)
    ),
    "INSERT with a base path by SET": with_settings(f"INSERT INTO {MINE} {ROW}", {"hoodie.base.path": "{w.other}"}),
    "UPDATE with a base path by SET": with_settings(f"UPDATE {MINE} SET amount = 1", {"hoodie.base.path": "{w.other}"}),
    "RENAME elsewhere": sql(f"ALTER TABLE {MINE} RENAME TO db.moved"),
    "SET TBLPROPERTIES of a path": sql(f"ALTER TABLE {MINE} SET TBLPROPERTIES ('hoodie.base.path' = '{{w.other}}')"),
    "SET TBLPROPERTIES of a path where columns may change": with_settings(
        f"ALTER TABLE {MINE} SET TBLPROPERTIES ('hoodie.base.path' = '{{w.other}}')", EVOLVING
    ),
    "made anew at a LOCATION": sql(f"DROP TABLE {MINE}", f"CREATE TABLE {MINE} USING hudi LOCATION '{{w.other}}'"),
}
FRAMES: Final[Mapping[str, Way]] = {
    **{
        f"save by path, {operation} {mode}": save_by_path(operation, mode)
        for operation, mode in (
            ("upsert", "append"),
            ("insert", "append"),
            ("bulk_insert", "append"),
            ("delete", "append"),
            ("insert_overwrite_table", "append"),
            ("bulk_insert", "overwrite"),
        )
    },
    "save, delete_partition": lambda spark, w: save(
        spark, "delete_partition", "append", **{"hoodie.datasource.write.partitions.to.delete": "p=10"}
    ).save(f"{w.real}/db.db/parts"),
    "save with the option path": lambda spark, w: save(spark, "upsert", "append").option("path", w.other).save(),
    "save over a redirected table's path": lambda spark, w: save(spark, "upsert", "append").save(
        f"{w.real}/db.db/appended"
    ),
    "saveAsTable": lambda spark, w: save(spark, "upsert", "append").saveAsTable(OTHER),
    "saveAsTable overwrite": lambda spark, w: save(spark, "upsert", "overwrite").saveAsTable(OTHER),
    "saveAsTable of a new one": lambda spark, w: save(spark, "upsert", "append").saveAsTable("db.made"),
    "insertInto": lambda spark, w: rows(spark).write.insertInto(OTHER),
    "insertInto overwrite": lambda spark, w: rows(spark).write.insertInto(OTHER, overwrite=True),
    "writeTo append": lambda spark, w: rows(spark).writeTo(OTHER).append(),
    "writeTo create": lambda spark, w: rows(spark).writeTo("spark_catalog.db.made").using("hudi").create(),
    "catalog.createTable": lambda spark, w: spark.catalog.createTable("db.made", path=w.other, source="hudi"),
}
STREAMS: Final[Mapping[str, Way]] = {
    "start by path": lambda spark, w: end(
        stream(spark, w, "path")
        .format("hudi")
        .options(
            **{
                "hoodie.table.name": "other",
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.precombine.field": "amount",
            }
        )
        .start(w.other)
    ),
    "toTable": lambda spark, w: end(stream(spark, w, "table").format("hudi").toTable(OTHER)),
    "toTable of a redirected table": lambda spark, w: end(stream(spark, w, "mine").format("hudi").toTable(MINE)),
    "foreachBatch": lambda spark, w: end(
        stream(spark, w, "batch").foreachBatch(lambda frame, _: frame.write.insertInto(OTHER)).start()
    ),
    "foreachBatch by path": lambda spark, w: end(
        stream(spark, w, "batch path")
        .foreachBatch(lambda frame, _: save(spark, "upsert", "append").save(w.other))
        .start()
    ),
}
JAVA: Final[Mapping[str, Way]] = {
    "a view of the table's metadata": lambda spark, w: java(
        spark
    ).org.apache.hudi.common.table.HoodieTableMetaClient.builder(),
    "Hudi's writer": lambda spark, w: java(spark).org.apache.hudi.DataSourceUtils.createHoodieClient(
        spark.sparkContext._jsc, "", w.other, "other", java(spark).java.util.HashMap()
    ),
}
PASSING: Final[Mapping[str, Way]] = {
    "INSERT where the lens leads": sql(f"INSERT INTO {MINE} SELECT id, amount FROM {MINE} WHERE id < 0"),
    "UPDATE where the lens leads": sql(f"UPDATE {MINE} SET amount = 0 WHERE id > 100"),
    "DELETE where the lens leads": sql(f"DELETE FROM {MINE} WHERE id > 100"),
    "MERGE where the lens leads": sql(
        f"MERGE INTO {MINE} t USING ({ROW}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    ),
    "foreachBatch where the lens leads": lambda spark, w: end(
        stream(spark, w, "passes").foreachBatch(lambda frame, _: frame.where("id < 0").write.insertInto(MINE)).start()
    ),
    "SHOW": sql(f"SHOW CREATE TABLE {MINE}", f"DESCRIBE EXTENDED {MINE}"),
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
    main(WAYS, (MINE,), {"other": "spark/db.db/other", "merged": "spark/db.db/merged"}, *sys.argv[1:])
