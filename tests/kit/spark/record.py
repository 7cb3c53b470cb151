"""Records `recorded/*.jsonl` anew, what the driver's JVM writes of statements of each kind:

    .venv/bin/python -m tests.kit.spark.record               # Spark 3.5
    .venv-spark-4.1.1/bin/python -m tests.kit.spark.record   # what only Spark 4 shows

Nothing but names of directories and people is changed in what came.
"""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater import local
from headwater.local.process import free_ports
from tests.kit.faults.capture import KEEPING_LISTENER, READS, ScriptedTap, compiled, public, tapped
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.hosting import CLIENT, CONNECT
from tests.kit.spark.session import spark_session
from tests.kit.spark.versions import MAJOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER: Final = Path(__file__).parents[2] / "unit/capture/recorded"
_ALL: Final = {**READS, "spark.headwater.capture.sql": "true"}
_NO_HOOKS: Final = {**_ALL, "spark.headwater.capture.hooks": "off"}
_NO_ROOM: Final = {"spark.headwater.capture.queue.count": "1"}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        warehouse, port = Path(name), free_ports(1)[0]
        conf = {key: text.format(warehouse=warehouse) for key, text in ICEBERG.conf.items()}
        conf["spark.jars.packages"] = ",".join((*ICEBERG.packages, *CONNECT))
        conf["spark.sql.warehouse.dir"] = str(warehouse / "spark")
        conf["spark.headwater.job.name"] = "orders_etl"
        if MAJOR < 4:
            conf |= {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"}
            conf |= {"spark.connect.grpc.binding.port": str(port)}
        with spark_session(local.java().home, **conf) as spark:
            found = _of_spark4(spark) if MAJOR >= 4 else _of_spark3(spark, warehouse, port)
    FOLDER.mkdir(exist_ok=True)
    target = FOLDER / ("spark4.jsonl" if MAJOR >= 4 else "spark3.jsonl")
    target.write_text("".join(f"{_neutral(json.dumps(each), warehouse)}\n" for each in found))
    print(f"{target.name}: {sorted({each['kind'] for each in found})}, {target.stat().st_size:,} bytes")


def _of_spark4(spark: SparkSession) -> list[dict[str, Any]]:
    """A write that analysis refuses, and a procedure that no hook sees."""
    _make_table(spark)
    with tapped(spark, _NO_HOOKS) as tap:
        with suppress(Exception):
            spark.sql("INSERT INTO ice.shop.orders SELECT nope, 1 FROM ice.shop.orders")
        spark.sql("CALL ice.system.expire_snapshots(table => 'shop.orders')").collect()
        return tap.records()


def _of_spark3(spark: SparkSession, warehouse: Path, port: int) -> list[dict[str, Any]]:
    context: Any = spark.sparkContext
    keeper = compiled(spark, KEEPING_LISTENER)
    context._jsc.sc().addSparkListener(keeper)
    _make_table(spark)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    context._jsc.sc().removeSparkListener(keeper)
    with tapped(spark, _ALL) as tap:
        _statements(spark)
        _rdds(spark, warehouse)
        _streams(spark, warehouse)
        _client(port)
        _outside(spark)
        tap.inside.onOtherEvent(public(keeper, "end"))
        _lose(tap, spark)
        assert tap.settle("7d5a", 60)
        found = [json.loads(text) for text in tap.take(1_000, 10)]
    with tapped(spark, _NO_ROOM) as tap:
        for _ in range(3):
            spark.sql("DELETE FROM ice.shop.orders WHERE id = 9")
        return [*found, *tap.records()]


def _make_table(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE ice.shop")
    spark.sql("CREATE TABLE ice.shop.orders (id INT, v INT) USING iceberg")
    spark.sql("INSERT INTO ice.shop.orders VALUES (1, 2)")


def _statements(spark: SparkSession) -> None:
    """That write, fail, read, call, keep rows, and write what was kept."""
    context: Any = spark.sparkContext
    context.addJobTag("nightly")
    spark.sql("SET spark.headwater.job.name = of_the_session")
    spark.sql("INSERT INTO ice.shop.orders SELECT id + 1, v FROM ice.shop.orders")
    with suppress(Exception):
        spark.sql("INSERT INTO ice.shop.orders SELECT raise_error('no'), 1")
    with suppress(Exception):
        spark.sql("UPDATE ice.shop.orders SET v = CAST(raise_error('no') AS INT)")
    spark.sql("SELECT count(*) FROM ice.shop.orders").collect()
    spark.sql("CALL ice.system.rewrite_manifests('shop.orders')").collect()
    spark.table("ice.shop.orders").localCheckpoint().writeTo("ice.shop.orders").append()
    spark.sql("CREATE TABLE plain USING parquet AS SELECT * FROM ice.shop.orders")
    context.removeJobTag("nightly")


def _rdds(spark: SparkSession, warehouse: Path) -> None:
    rows = spark.sparkContext.parallelize([1, 2])
    rows.saveAsTextFile(str(warehouse / "text"))
    rows.foreach(lambda _: None)


def _streams(spark: SparkSession, warehouse: Path) -> None:
    """Into a function, into files, and one that fails."""
    stream = spark.readStream.schema("id INT, v INT").parquet(str(warehouse / "spark/plain"))

    def begin(name: str, frame: Any) -> Any:
        return frame.writeStream.queryName(name).option("checkpointLocation", str(warehouse / name))

    def save(batch: Any, _: int) -> None:
        batch.writeTo("ice.shop.orders").append()

    into_files = begin("into_files", stream).format("parquet").option("path", str(warehouse / "out"))
    failing = begin("failing", stream.selectExpr("CAST(raise_error('no') AS INT) AS id")).format("noop")
    for writer in (begin("into_function", stream).foreachBatch(save), into_files, failing):
        query = writer.start()
        with suppress(Exception):
            query.processAllAvailable()
        query.stop()


def _client(port: int) -> None:
    """One whose statement fails before Spark runs it, and who leaves."""
    command = [sys.executable, "-W", "ignore", str(CLIENT), f"sc://127.0.0.1:{port}/;user_id=anna"]
    wanted = [{"sql": "INSERT INTO ice.shop.nowhere VALUES (1)"}, {"sql": "INSERT INTO ice.shop.orders VALUES (7, 7)"}]
    lines = "".join(json.dumps(each) + "\n" for each in wanted)
    subprocess.run(command, input=lines, text=True, check=True, stdout=subprocess.PIPE)


def _outside(spark: SparkSession) -> None:
    """A commit by Iceberg's own classes."""
    inside: Any = spark
    jvm = inside._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(inside._jsparkSession, "ice.shop.orders")
    table.updateProperties().set("owner.team", "shop").commit()
    table.manageSnapshots().createTag("first", table.currentSnapshot().snapshotId()).commit()
    table.newDelete().deleteFromRowFilter(jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()).commit()


def _lose(tap: ScriptedTap, spark: SparkSession) -> None:
    """As if Spark's queue had been full; and an event that can't be read."""
    context: Any = spark.sparkContext
    registry = context._jsc.sc().listenerBus().metrics().metricRegistry()
    registry.counter("queue.headwater.numDroppedEvents").inc(3)
    tap.inside.onOtherEvent(None)


def _neutral(text: str, warehouse: Path) -> str:
    text = text.replace(str(warehouse), "/warehouse").replace(str(Path.home()), "/home/somebody")
    return text.replace(f': "{getpass.getuser()}"', ': "somebody"')


if __name__ == "__main__":
    main()
