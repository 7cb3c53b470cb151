"""The script of a job that, after its own work, tries each of the ways to write that it is told.

Each way aims at something real: a table that isn't redirected, the place of one, a catalog, a file of the warehouse.
What came of each is written as a line of JSON: `done`, `refused`, or `failed`, with the error. It is run as a job, so
nothing of the tests is imported here. Ways of Paimon's and Hudi's own are in `paimon_ways.py` and `hudi_ways.py`.
"""

# Jobs do all that, and each way fits on a line.
# ruff: noqa: ARG005, BLE001, PTH102, PTH104, PTH107, PTH109, PTH211, S605

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

Way: TypeAlias = "Callable[[Any, SimpleNamespace], object]"
ICE: Final = "ice.db.other"
DELTA: Final = "spark_catalog.db.delta_other"
FILES: Final = "spark_catalog.db.files"
PARTS: Final = "spark_catalog.db.parts"
MINE: Final = "ice.db.appended"
"""Redirected by the lens, as the next one."""
MY_DELTA: Final = "spark_catalog.db.delta_out"
ROW: Final = "SELECT 9 AS id, 9 AS amount"
STATEMENTS: Final = (
    "CREATE DATABASE ice.db",
    "CREATE DATABASE spark_catalog.db",
    *(f"CREATE TABLE ice.db.{name} (id INT, amount INT) USING iceberg" for name in ("orders", "appended", "other")),
    *(
        f"CREATE TABLE spark_catalog.db.{name} (id INT, amount INT) USING delta"
        for name in ("delta_out", "delta_other")
    ),
    "CREATE TABLE spark_catalog.db.files (id INT, amount INT) USING parquet",
    "CREATE TABLE spark_catalog.db.parts (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
    "CREATE VIEW spark_catalog.db.a_view AS SELECT 1 AS id",
    "CREATE FUNCTION spark_catalog.db.a_function AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs'",
    "INSERT INTO spark_catalog.db.parts PARTITION (p = 1) SELECT 1",
    *(
        f"INSERT INTO {table} VALUES ({number}, 10)"
        for table in ("ice.db.orders", "ice.db.other", "spark_catalog.db.delta_other", "spark_catalog.db.files")
        for number in (1, 2)
    ),
)


def sql(*texts: str) -> Way:
    """A way that runs these statements."""

    def run(spark: Any, w: SimpleNamespace) -> None:
        for text in texts:
            spark.sql(text.format(w=w)).collect()

    return run


def rows(spark: Any) -> Any:
    return spark.sql(ROW)


def stream(spark: Any, w: SimpleNamespace, name: str) -> Any:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = source.selectExpr("CAST(value AS INT) AS id", "1 AS amount").writeStream.trigger(availableNow=True)
    return writer.option("checkpointLocation", f"{w.free}/checkpoints/{name}")


def end(query: Any) -> None:
    query.awaitTermination(100)
    if query.exception() is not None:
        raise query.exception()


def java(spark: Any) -> Any:
    return spark.sparkContext._jvm


SQL: Final[Mapping[str, Way]] = {
    "INSERT iceberg": sql(f"INSERT INTO {ICE} {ROW}"),
    "INSERT delta": sql(f"INSERT INTO {DELTA} {ROW}"),
    "INSERT parquet": sql(f"INSERT INTO {FILES} {ROW}"),
    "INSERT hive": sql(f"INSERT INTO {PARTS} PARTITION (p = 7) SELECT 1 AS id"),
    "INSERT OVERWRITE": sql(f"INSERT OVERWRITE {DELTA} {ROW}"),
    "INSERT OVERWRITE DIRECTORY": sql("INSERT OVERWRITE DIRECTORY '{w.real}/dir' USING parquet " + ROW),
    "INSERT OVERWRITE LOCAL DIRECTORY": sql("INSERT OVERWRITE LOCAL DIRECTORY '{w.real}/local' STORED AS orc " + ROW),
    "INSERT by path": sql("INSERT INTO delta.`{w.delta}` " + ROW),
    "UPDATE iceberg": sql(f"UPDATE {ICE} SET amount = 0"),
    "UPDATE delta": sql(f"UPDATE {DELTA} SET amount = 0"),
    "DELETE iceberg": sql(f"DELETE FROM {ICE} WHERE id > 0"),
    "DELETE delta": sql(f"DELETE FROM {DELTA} WHERE id > 0"),
    "MERGE iceberg": sql(f"MERGE INTO {ICE} t USING ({ROW}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "MERGE delta": sql(f"MERGE INTO {DELTA} t USING ({ROW}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "TRUNCATE": sql(f"TRUNCATE TABLE {ICE}"),
    "TRUNCATE parquet": sql(f"TRUNCATE TABLE {FILES}"),
    "CREATE TABLE": sql("CREATE TABLE ice.db.made (id INT) USING iceberg"),
    "CREATE TABLE AS": sql(f"CREATE TABLE ice.db.made USING iceberg AS {ROW}"),
    "CREATE OR REPLACE TABLE AS": sql(f"CREATE OR REPLACE TABLE {ICE} USING iceberg AS {ROW}"),
    "CREATE TABLE LIKE": sql("CREATE TABLE db.made LIKE db.files"),
    "CREATE TABLE CLONE": sql(f"CREATE TABLE spark_catalog.db.made SHALLOW CLONE {DELTA}"),
    "CREATE TABLE of files with LOCATION": sql(
        "CREATE TABLE spark_catalog.db.made USING parquet LOCATION '{w.real}/made' AS " + ROW
    ),
    "CREATE VIEW": sql(f"CREATE VIEW spark_catalog.db.made AS {ROW}"),
    "ALTER VIEW": sql(f"ALTER VIEW spark_catalog.db.a_view AS {ROW}"),
    "DROP VIEW": sql("DROP VIEW spark_catalog.db.a_view"),
    "CREATE DATABASE": sql("CREATE DATABASE ice.made"),
    "CREATE DATABASE with LOCATION": sql("CREATE DATABASE spark_catalog.made LOCATION '{w.real}/made'"),
    "ALTER DATABASE": sql("ALTER DATABASE spark_catalog.db SET DBPROPERTIES ('a' = 'b')"),
    "ALTER DATABASE LOCATION": sql("ALTER DATABASE spark_catalog.db SET LOCATION '{w.real}/elsewhere'"),
    "DROP DATABASE": sql("DROP DATABASE spark_catalog.db CASCADE"),
    "CREATE FUNCTION": sql("CREATE FUNCTION spark_catalog.db.made AS 'java.lang.String'"),
    "DROP FUNCTION": sql("DROP FUNCTION spark_catalog.db.a_function"),
    "DROP iceberg": sql(f"DROP TABLE {ICE}"),
    "DROP PURGE": sql(f"DROP TABLE {FILES} PURGE"),
    "ALTER ADD COLUMN": sql(f"ALTER TABLE {ICE} ADD COLUMN more INT"),
    "ALTER SET TBLPROPERTIES": sql(f"ALTER TABLE {DELTA} SET TBLPROPERTIES ('a' = 'b')"),
    "ALTER ADD PARTITION FIELD": sql(f"ALTER TABLE {ICE} ADD PARTITION FIELD id"),
    "ALTER WRITE ORDERED BY": sql(f"ALTER TABLE {ICE} WRITE ORDERED BY id"),
    "ALTER CREATE BRANCH": sql(f"ALTER TABLE {ICE} CREATE BRANCH b"),
    "ALTER CREATE TAG": sql(f"ALTER TABLE {ICE} CREATE TAG t"),
    "ALTER RENAME": sql("ALTER TABLE spark_catalog.db.files RENAME TO db.moved"),
    "ALTER ADD PARTITION": sql(f"ALTER TABLE {PARTS} ADD PARTITION (p = 8) LOCATION '{{w.real}}/files'"),
    "ALTER DROP PARTITION": sql(f"ALTER TABLE {PARTS} DROP PARTITION (p = 1)"),
    "ALTER SET LOCATION": sql(f"ALTER TABLE {PARTS} SET LOCATION '{{w.real}}/files'"),
    "ALTER SET SERDEPROPERTIES": sql(f"ALTER TABLE {PARTS} SET SERDEPROPERTIES ('a' = 'b')"),
    "MSCK REPAIR": sql(f"MSCK REPAIR TABLE {PARTS}"),
    "LOAD DATA": sql(f"LOAD DATA LOCAL INPATH '{{w.free}}/loaded' INTO TABLE {PARTS} PARTITION (p = 1)"),
    "ANALYZE": sql(f"ANALYZE TABLE {FILES} COMPUTE STATISTICS"),
    "ANALYZE TABLES": sql("ANALYZE TABLES IN spark_catalog.db COMPUTE STATISTICS"),
    "COMMENT ON TABLE": sql(f"COMMENT ON TABLE {FILES} IS 'made'"),
    "COMMENT ON DATABASE": sql("COMMENT ON DATABASE spark_catalog.db IS 'made'"),
    "CALL": sql("CALL ice.system.expire_snapshots(table => 'db.other', retain_last => 1)"),
    "OPTIMIZE": sql(f"OPTIMIZE {DELTA}"),
    "VACUUM": sql(f"VACUUM {DELTA}"),
    "RESTORE": sql(f"RESTORE TABLE {DELTA} TO VERSION AS OF 0"),
    "REORG": sql(f"REORG TABLE {DELTA} APPLY (PURGE)"),
    "GENERATE": sql(f"GENERATE symlink_format_manifest FOR TABLE {DELTA}"),
    "CONVERT TO DELTA": sql("CONVERT TO DELTA parquet.`{w.real}/landing`"),
    "TRANSFORM": sql(f"SELECT TRANSFORM (id) USING 'tee {{w.real}}/tee' AS (x STRING) FROM ({ROW})"),
    "reflect": sql("SELECT reflect('java.lang.System', 'setProperty', 'headwater.way', 'taken')"),
    "in a subquery's shadow": sql(f"INSERT INTO {ICE} SELECT id, amount FROM {MINE}"),
    "a temporary view of files": sql(
        "CREATE TEMP VIEW of_files (id INT, amount INT) USING parquet OPTIONS (path '{w.real}/db.db/files')",
        f"INSERT INTO of_files {ROW}",
    ),
    "a temporary view over a table": sql(
        f"CREATE OR REPLACE TEMP VIEW over_table AS SELECT * FROM {FILES}", f"INSERT INTO over_table {ROW}"
    ),
}
LEADING_BACK: Final[Mapping[str, Way]] = {
    "SET LOCATION of a redirected table": sql(f"ALTER TABLE {MY_DELTA} SET LOCATION '{{w.delta}}'"),
    "CREATE with LOCATION": sql("CREATE OR REPLACE TABLE " + MINE + " USING iceberg LOCATION '{w.ice}' AS " + ROW),
    "property location": lambda spark, w: (
        rows(spark).writeTo(MINE).using("iceberg").tableProperty("location", w.ice).createOrReplace()
    ),
    "property write.data.path": lambda spark, w: (
        rows(spark).writeTo(MINE).using("iceberg").tableProperty("write.data.path", w.ice).createOrReplace()
    ),
    "TBLPROPERTIES write.metadata.path": sql(
        f"ALTER TABLE {MINE} SET TBLPROPERTIES ('write.metadata.path' = '{{w.ice}}/metadata')"
    ),
    "OPTIONS path": sql("CREATE OR REPLACE TABLE " + MY_DELTA + " USING delta OPTIONS (path '{w.delta}') AS " + ROW),
    "saveAsTable with a path": lambda spark, w: (
        rows(spark).write.format("delta").mode("overwrite").option("path", w.delta).saveAsTable(MY_DELTA)
    ),
    "RENAME TO elsewhere": sql(f"ALTER TABLE {MY_DELTA} RENAME TO db.moved"),
    "RENAME iceberg elsewhere": sql(f"ALTER TABLE {MINE} RENAME TO ice.db.moved"),
    "a view of the same name": sql(
        f"CREATE OR REPLACE TEMP VIEW appended AS SELECT * FROM {MINE}", f"DROP TABLE {ICE}"
    ),
}
FRAMES: Final[Mapping[str, Way]] = {
    "save parquet": lambda spark, w: rows(spark).write.parquet(f"{w.real}/made"),
    "save csv": lambda spark, w: rows(spark).write.csv(f"{w.real}/made"),
    "save json over files": lambda spark, w: rows(spark).write.mode("overwrite").json(f"{w.real}/landing"),
    "save text": lambda spark, w: rows(spark).selectExpr("string(id)").write.text(f"{w.real}/made"),
    "save delta": lambda spark, w: rows(spark).write.format("delta").mode("append").save(w.delta),
    "save iceberg": lambda spark, w: rows(spark).write.format("iceberg").mode("append").save(ICE),
    "save iceberg by path": lambda spark, w: rows(spark).write.format("iceberg").mode("append").save(w.ice),
    "save jdbc": lambda spark, w: (
        rows(spark)
        .write.format("jdbc")
        .option("url", f"jdbc:derby:{w.real}/derby;create=true")
        .option("dbtable", "t")
        .save()
    ),
    "jdbc": lambda spark, w: rows(spark).write.jdbc(f"jdbc:derby:{w.real}/derby;create=true", "t"),
    "saveAsTable": lambda spark, w: rows(spark).write.mode("append").saveAsTable(FILES),
    "saveAsTable overwrite": lambda spark, w: rows(spark).write.mode("overwrite").format("parquet").saveAsTable(FILES),
    "saveAsTable of a new one": lambda spark, w: rows(spark).write.format("parquet").saveAsTable("db.made"),
    "insertInto": lambda spark, w: rows(spark).write.insertInto(DELTA),
    "writeTo append": lambda spark, w: rows(spark).writeTo(ICE).append(),
    "writeTo overwritePartitions": lambda spark, w: rows(spark).writeTo(ICE).overwritePartitions(),
    "writeTo create": lambda spark, w: rows(spark).writeTo("ice.db.made").using("iceberg").create(),
    "catalog.createTable": lambda spark, w: spark.catalog.createTable("db.made", f"{w.real}/files", "parquet"),
    "catalog.recoverPartitions": lambda spark, w: spark.catalog.recoverPartitions(PARTS),
    "another session": lambda spark, w: spark.newSession().sql(f"INSERT INTO {ICE} {ROW}"),
    "the session of a frame": lambda spark, w: rows(spark).sparkSession.sql(f"INSERT INTO {ICE} {ROW}"),
    "getActiveSession": lambda spark, w: type(spark).getActiveSession().sql(f"INSERT INTO {ICE} {ROW}"),
}


def in_thread(spark: Any, w: SimpleNamespace) -> None:
    found: list[BaseException] = []

    def write() -> None:
        try:
            spark.sql(f"INSERT INTO {ICE} {ROW}")
        except Exception as e:
            found.append(e)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    if found:
        raise found[0]


def logistic(spark: Any) -> Any:
    from pyspark.ml.feature import Binarizer

    return Binarizer(threshold=1.0, inputCol="a", outputCol="b")


def pipeline(spark: Any) -> Any:
    from pyspark.ml import Pipeline

    return Pipeline(stages=[logistic(spark)])


def old_model(spark: Any, w: SimpleNamespace) -> None:
    from pyspark.mllib.linalg import Vectors
    from pyspark.mllib.regression import LabeledPoint, LinearRegressionModel
    from pyspark.mllib.util import MLUtils

    LinearRegressionModel(Vectors.dense([1.0]), 0.5).save(spark.sparkContext, f"{w.real}/model")
    MLUtils.saveAsLibSVMFile(spark.sparkContext.parallelize([LabeledPoint(1.0, [1.0])]), f"{w.real}/svm")


RDDS: Final[Mapping[str, Way]] = {
    "saveAsTextFile": lambda spark, w: spark.sparkContext.parallelize(["a"], 1).saveAsTextFile(f"{w.real}/made"),
    "saveAsPickleFile": lambda spark, w: spark.sparkContext.parallelize(["a"], 1).saveAsPickleFile(f"{w.real}/made"),
    "saveAsSequenceFile": lambda spark, w: spark.sparkContext.parallelize([(1, 2)], 1).saveAsSequenceFile(
        f"{w.real}/made"
    ),
    "saveAsHadoopFile": lambda spark, w: spark.sparkContext.parallelize([(1, 2)], 1).saveAsHadoopFile(
        f"{w.real}/made", "org.apache.hadoop.mapred.TextOutputFormat"
    ),
    "saveAsNewAPIHadoopFile": lambda spark, w: spark.sparkContext.parallelize([(1, 2)], 1).saveAsNewAPIHadoopFile(
        f"{w.real}/made", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
    ),
    "saveAsHadoopDataset": lambda spark, w: spark.sparkContext.parallelize([(1, 2)], 1).saveAsHadoopDataset(
        {
            "mapred.output.format.class": "org.apache.hadoop.mapred.TextOutputFormat",
            "mapreduce.output.fileoutputformat.outputdir": f"{w.real}/made",
            "mapreduce.job.output.key.class": "org.apache.hadoop.io.IntWritable",
            "mapreduce.job.output.value.class": "org.apache.hadoop.io.IntWritable",
        }
    ),
    "df.rdd saveAsTextFile": lambda spark, w: rows(spark).rdd.saveAsTextFile(f"{w.real}/made"),
    "ML transformer": lambda spark, w: logistic(spark).save(f"{w.real}/model"),
    "ML writer, overwriting": lambda spark, w: logistic(spark).write().overwrite().save(f"{w.real}/landing"),
    "ML pipeline": lambda spark, w: pipeline(spark).write().overwrite().save(f"{w.real}/landing"),
    "MLlib model": old_model,
    "a thread that is waited for": in_thread,
}
JAVA: Final[Mapping[str, Way]] = {
    "Dataset.write by py4j": lambda spark, w: rows(spark)._jdf.write().parquet(f"{w.real}/made"),
    "JavaRDD by py4j": lambda spark, w: rows(spark)._jdf.javaRDD().saveAsTextFile(f"{w.real}/made"),
    "DeltaTable.vacuum": lambda spark, w: (
        java(spark).io.delta.tables.DeltaTable.forName(spark._jsparkSession, DELTA.partition(".")[2]).vacuum()
    ),
    "DeltaTable.vacuum of a redirected table": lambda spark, w: (
        java(spark).io.delta.tables.DeltaTable.forName(spark._jsparkSession, MY_DELTA.partition(".")[2]).vacuum()
    ),
    "DeltaTable.delete": lambda spark, w: (
        java(spark).io.delta.tables.DeltaTable.forName(spark._jsparkSession, DELTA.partition(".")[2]).delete()
    ),
    "DeltaTable.forPath": lambda spark, w: (
        java(spark).io.delta.tables.DeltaTable.forPath(spark._jsparkSession, w.delta).restoreToVersion(0)
    ),
    "DeltaTable.convertToDelta": lambda spark, w: java(spark).io.delta.tables.DeltaTable.convertToDelta(
        spark._jsparkSession, f"parquet.`{w.real}/landing`"
    ),
    "Iceberg's tables": lambda spark, w: (
        java(spark)
        .org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, ICE)
        .newDelete()
        .deleteFromRowFilter(java(spark).org.apache.iceberg.expressions.Expressions.alwaysTrue())
        .commit()
    ),
    "Iceberg's actions": lambda spark, w: (
        java(spark)
        .org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
        .deleteOrphanFiles(java(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, ICE))
        .execute()
    ),
    "FileSystem.delete": lambda spark, w: (
        java(spark)
        .org.apache.hadoop.fs.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration())
        .delete(java(spark).org.apache.hadoop.fs.Path(f"{w.real}/landing"), True)
    ),
    "Path.getFileSystem": lambda spark, w: (
        java(spark)
        .org.apache.hadoop.fs.Path(f"{w.real}/made")
        .getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        .mkdirs(java(spark).org.apache.hadoop.fs.Path(f"{w.real}/made"))
    ),
    "the session catalog": lambda spark, w: (
        spark._jsparkSession.sessionState().catalog().externalCatalog().dropTable("db", "files", True, True)
    ),
    "a Java session": lambda spark, w: spark._jsparkSession.newSession().sql(f"INSERT INTO {ICE} {ROW}"),
    "java.nio": lambda spark, w: java(spark).java.nio.file.Files.delete(
        java(spark).java.io.File(f"{w.real}/landing/rows.csv").toPath()
    ),
    "java.io.File": lambda spark, w: java(spark).java.io.File(f"{w.real}/landing/rows.csv").delete(),
    "DriverManager": lambda spark, w: java(spark).java.sql.DriverManager.getConnection(
        f"jdbc:derby:{w.real}/derby;create=true"
    ),
    "Runtime.exec": lambda spark, w: (
        java(spark).java.lang.Runtime.getRuntime().exec(f"rm -r {w.real}/landing").waitFor()
    ),
    "Class.forName": lambda spark, w: java(spark).java.lang.Class.forName("java.io.File"),
}
STREAMS: Final[Mapping[str, Way]] = {
    "iceberg sink, option path": lambda spark, w: end(
        stream(spark, w, "ice").format("iceberg").option("path", ICE).start()
    ),
    "toTable iceberg": lambda spark, w: end(stream(spark, w, "ice2").toTable(ICE)),
    "toTable delta": lambda spark, w: end(stream(spark, w, "delta").format("delta").toTable(DELTA)),
    "toTable parquet": lambda spark, w: end(stream(spark, w, "files").format("parquet").toTable(FILES)),
    "toTable of a new one": lambda spark, w: end(stream(spark, w, "new").format("parquet").toTable("db.made")),
    "start parquet": lambda spark, w: end(stream(spark, w, "p").format("parquet").start(f"{w.real}/made")),
    "start delta": lambda spark, w: end(stream(spark, w, "d").format("delta").start(w.delta)),
    "foreach": lambda spark, w: end(stream(spark, w, "foreach").foreach(lambda row: None).start()),
    "foreachBatch to a real table": lambda spark, w: end(
        stream(spark, w, "real").foreachBatch(lambda frame, _: frame.writeTo(ICE).append()).start()
    ),
    "foreachBatch by SQL": lambda spark, w: end(
        stream(spark, w, "by_sql")
        .foreachBatch(lambda frame, _: frame.sparkSession.sql(f"INSERT INTO {ICE} {ROW}"))
        .start()
    ),
}
PROCESS: Final[Mapping[str, Way]] = {
    "subprocess": lambda _, w: subprocess.run(["rm", "-r", f"{w.real}/landing"], check=True),
    "os.system": lambda _, w: os.system(f"rm -r {w.real}/landing"),
    "os.posix_spawn": lambda _, w: os.posix_spawn("/bin/rm", ["rm", "-r", f"{w.real}/landing"], {}),
    "os.fork": lambda _, w: os.fork() or os._exit(0),
    "open": lambda _, w: Path(w.real, "landing", "rows.csv").write_text("9,9"),
    "os.remove": lambda _, w: os.remove(f"{w.real}/landing/rows.csv"),
    "os.rename": lambda _, w: os.rename(f"{w.free}/loaded", f"{w.real}/landing/more"),
    "shutil.rmtree": lambda _, w: shutil.rmtree(f"{w.real}/landing"),
    "shutil.copyfile": lambda _, w: shutil.copyfile(f"{w.free}/loaded", f"{w.real}/landing/more"),
    "os.mkdir": lambda _, w: os.mkdir(f"{w.real}/made"),
    "os.truncate": lambda _, w: os.truncate(f"{w.real}/landing/rows.csv", 0),
    "os.symlink": lambda _, w: os.symlink(w.free, f"{w.real}/made"),
}


def delta_merge(spark: Any, w: SimpleNamespace) -> None:
    table = java(spark).io.delta.tables.DeltaTable.forName(spark._jsparkSession, MY_DELTA.partition(".")[2])
    table.alias("t").merge(rows(spark).alias("s")._jdf, "t.id = s.id").whenNotMatched().insertAll().execute()


PASSING: Final[Mapping[str, Way]] = {
    "a query": sql(f"SELECT count(*) FROM {MINE}"),
    "DataFrame API": lambda spark, w: (
        spark.table(MINE).groupBy("id").count().join(rows(spark), "id").dropDuplicates().orderBy("id").collect()
    ),
    "a Python function": lambda spark, w: rows(spark).rdd.map(lambda row: row.id + 1).collect(),
    "mapInPandas": lambda spark, w: (
        rows(spark).repartition(1).mapInPandas(lambda it: it, "id INT, amount INT").collect()
    ),
    "a temporary view": sql(f"CREATE OR REPLACE TEMP VIEW tmp AS {ROW}", "SELECT * FROM tmp", "DROP VIEW tmp"),
    "session settings": sql(
        "SET spark.sql.shuffle.partitions = 2", "USE spark_catalog.db", "SHOW TABLES", "USE spark_catalog.default"
    ),
    "CACHE": lambda spark, w: (spark.table(MINE).cache().count(), spark.catalog.clearCache()),
    "explain": lambda spark, w: (rows(spark).explain(True), spark.sql(f"EXPLAIN INSERT INTO {MINE} {ROW}").collect()),
    "DESCRIBE": sql(f"DESCRIBE EXTENDED {MINE}", f"SHOW CREATE TABLE {MINE}"),
    "a database that is there": sql("CREATE DATABASE IF NOT EXISTS spark_catalog.db"),
    "localCheckpoint": lambda spark, w: rows(spark).localCheckpoint().collect(),
    "ML fit": lambda spark, w: logistic(spark).transform(spark.createDataFrame([(2.0,)], ["a"])).collect(),
    "a file of one's own": lambda _, w: Path(w.free, "report.txt").write_text("done"),
    "Java that is harmless": lambda spark, w: (
        java(spark).java.lang.System.currentTimeMillis(),
        java(spark).java.util.ArrayList().add("a"),
        spark.sparkContext._jsc.hadoopConfiguration().set("headwater.test", "a"),
        java(spark).org.apache.log4j.LogManager.getLogger("job").info("here"),
        rows(spark)._jdf.queryExecution().toString(),
    ),
    "INSERT where the lens leads": sql(f"INSERT INTO {MINE} SELECT 100, 1 WHERE false"),
    "ALTER where the lens leads": sql(f"ALTER TABLE {MY_DELTA} SET TBLPROPERTIES ('a' = 'b')"),
    "DeltaTable.merge where the lens leads": delta_merge,
    "foreachBatch where the lens leads": lambda spark, w: end(
        stream(spark, w, "batch")
        .foreachBatch(lambda frame, _: frame.sparkSession.sql(ROW).where("id < 0").writeTo(MINE).append())
        .start()
    ),
    "memory sink": lambda spark, w: end(stream(spark, w, "memory").format("memory").queryName("m").start()),
}
GROUPS: Final = {
    "sql": SQL,
    "leading back": LEADING_BACK,
    "frames": FRAMES,
    "rdds": RDDS,
    "java": JAVA,
    "streams": STREAMS,
    "process": PROCESS,
    "passing": PASSING,
}
WAYS: Final[Mapping[str, Way]] = {name: way for group in GROUPS.values() for name, way in group.items()}


def write_later(spark: Any) -> None:
    """A thread that goes on when the script is through, as the interpreter lets it."""
    main = threading.main_thread()

    def write() -> None:
        main.join()
        spark.sql(f"INSERT INTO {ICE} {ROW}")

    threading.Thread(target=write).start()


def write_after_all(spark: Any) -> None:
    """As the last one, but the script's own rows."""

    def write() -> None:
        threading.Event().wait(3)
        spark.sql(f"INSERT INTO {MINE} {ROW}")

    threading.Thread(target=write).start()


def write_from_pool(spark: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ThreadPoolExecutor(2).submit(write_after_all, spark)


def go_on_streaming(spark: Any) -> None:
    source = spark.readStream.format("rate").load()

    def write(frame: Any, number: int) -> None:
        frame.sparkSession.sql(f"INSERT INTO {MINE} SELECT 1 AS id, 1 AS amount WHERE false")

    place = f"{os.getcwd()}/free/checkpoints/going-on"
    source.writeStream.foreachBatch(write).option("checkpointLocation", place).start()


ENDS: Final[Mapping[str, Callable[[Any], object]]] = {
    "thread": write_later,
    "thread of its own rows": write_after_all,
    "pool": write_from_pool,
    "atexit": lambda spark: atexit.register(lambda: spark.sql(f"INSERT INTO {ICE} {ROW}")),
    "atexit in a new session": lambda spark: atexit.register(
        lambda: (spark.stop(), type(spark).builder.getOrCreate().sql(f"INSERT INTO {ICE} {ROW}"))
    ),
    "atexit that hides its error": lambda spark: atexit.register(lambda: attempt(WAYS["INSERT iceberg"], spark, None)),
    "stream": go_on_streaming,
    "swallowed": lambda spark: attempt(WAYS["INSERT iceberg"], spark, None),
    "nothing": lambda spark: None,
}
"""How a script may go on when its last line has run, or not say what happened."""


def attempt(way: Way, spark: Any, w: Any) -> tuple[str, str]:
    try:
        way(spark, w)
    except Exception as e:
        text = str(e)
        return ("refused" if "the lens '" in text else "failed", f"{type(e).__name__}: {text[:600]}")
    return "done", ""


def main(ways: Mapping[str, Way], mine: Sequence[str], places: Mapping[str, str], database: str, *given: str) -> None:
    """Add to the tables that are redirected, and try ways. `places` are below the working directory."""
    from pyspark.sql import SparkSession

    folder = Path.cwd()
    places = {"real": "spark", "free": "free", **places}
    w = SimpleNamespace(**{name: str(folder / place) for name, place in places.items()})
    spark = SparkSession.builder.appName("ways").getOrCreate()
    for table in mine:
        spark.sql(f"INSERT INTO {table} SELECT id, amount FROM {database}.orders")
    for name in given:
        if name.startswith("end:"):
            ENDS[name.removeprefix("end:")](spark)
            continue
        outcome, error = attempt(ways[name], spark, w)
        with Path(w.free, "outcomes.jsonl").open("a") as file:
            file.write(json.dumps([name, outcome, error]) + "\n")


if __name__ == "__main__":
    main(WAYS, (MINE, MY_DELTA), {"delta": "spark/db.db/delta_other", "ice": "ice/db/other"}, *sys.argv[1:])
