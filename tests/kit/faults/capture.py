"""Drivers to be hard on: several SparkContexts in one JVM, and parts of Java that block until a test lets them go."""

from __future__ import annotations

import gc
import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.listeners.capture.command_registry import ignored_commands
from headwater.listeners.capture.driver_listener import DriverListener
from headwater.listeners.capture.jvm import JavaClasses
from headwater.listeners.settings import read_settings
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READS = {"spark.headwater.capture.reads": "true"}
_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

BLOCKING_EYE = """
package headwatertest;

public class BlockingExtractor implements headwater.capture.FormatExtractor {
    public final java.util.concurrent.CountDownLatch gate = new java.util.concurrent.CountDownLatch(1);
    public final java.util.concurrent.CountDownLatch reached = new java.util.concurrent.CountDownLatch(1);
    public String format() { return "blocking"; }
    public boolean table(Object table, headwater.capture.Json json) { return false; }
    public boolean relation(Object relation, headwater.capture.Json json) { return false; }
    public boolean read(Object leaf, headwater.capture.Json json) { return false; }
    public void ended(headwater.capture.Statement statement, headwater.capture.Json json) throws Exception {
        reached.countDown();
        gate.await();
    }
}
"""
BLOCKING_LISTENER = """
package headwatertest;

public class BlockingListener extends org.apache.spark.scheduler.SparkListener {
    public final java.util.concurrent.CountDownLatch gate = new java.util.concurrent.CountDownLatch(1);
    public final java.util.concurrent.CountDownLatch reached = new java.util.concurrent.CountDownLatch(1);
    public void onOtherEvent(org.apache.spark.scheduler.SparkListenerEvent event) {
        reached.countDown();
        try { gate.await(); } catch (InterruptedException e) { throw new RuntimeException(e); }
    }
}
"""
KEEPING_LISTENER = """
package headwatertest;

public class KeepingListener extends org.apache.spark.scheduler.SparkListener {
    public volatile Object end;
    public void onOtherEvent(org.apache.spark.scheduler.SparkListenerEvent event) {
        if (event instanceof org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd) end = event;
    }
}
"""


@contextmanager
def driver(java_home: Path, warehouse: Path, **conf: str) -> Generator[SparkSession, None, None]:
    """A driver with 1 GB, and a table `a` of one row."""
    own = {
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={warehouse} {_OPTIONS}",
        "spark.jars.packages": "",
        "spark.sql.warehouse.dir": str(warehouse / "tables"),
    }
    settings = {**own, **conf}
    with spark_session(java_home, **settings) as spark:
        make_tables(spark)
        yield spark


def make_tables(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE IF NOT EXISTS a (id INT, s STRING) USING parquet")
    spark.sql("CREATE TABLE IF NOT EXISTS b (id INT, s STRING) USING parquet")
    spark.sql("INSERT OVERWRITE a VALUES (1, 'x')")


def another_context(spark: SparkSession, **conf: str) -> SparkSession:
    """Stop this context, and make another one in the same JVM."""
    from pyspark.sql import SparkSession

    settings = {**dict(spark.sparkContext.getConf().getAll()), **conf}
    for own in ("spark.app.id", "spark.app.startTime", "spark.driver.port", "spark.driver.host"):
        settings.pop(own, None)
    spark.stop()
    builder: Any = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


class ScriptedTap(DriverListener):
    """A tap with eyes of the test's own, whose texts only the test takes."""

    def __init__(self, context: Any, conf: Mapping[str, str], eyes: Iterable[Any] = ()) -> None:
        self._scripted = list(eyes)
        super().__init__(context, read_settings(conf)[0], ignored_commands())

    def _make_extractors(self) -> list[Any]:
        return [*super()._make_extractors(), *self._scripted]

    @property
    def inside(self) -> Any:
        return self._listener

    def waiting(self) -> tuple[int, int]:
        """How many plans wait to be read, and what they weigh."""
        return int(self._field("plans")), int(self._field("weight"))

    def open(self) -> int:
        """How many executions it believes to be running."""
        return int(self._field("open", self._field("running")).size())

    def held_facts(self) -> int:
        """How many facts of hooks wait for a statement to end."""
        return int(self._java.call("CommitRecorder", "held"))

    def records(self, seconds: float = 60) -> list[dict[str, Any]]:
        """All that the tap has to say of what was done so far, without the mark at its end."""
        assert self.settle("end", seconds)
        found: list[dict[str, Any]] = []
        while True:
            found += map(json.loads, self.take(1000, seconds))
            if found[-1]["kind"] == "mark":
                return found[:-1]

    def _field(self, name: str, owner: Any = None) -> Any:
        holder = self._listener if owner is None else owner
        field = holder.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field.get(holder)


@contextmanager
def tapped(
    spark: SparkSession, conf: Mapping[str, str] = READS, eyes: Iterable[Any] = ()
) -> Generator[ScriptedTap, None, None]:
    tap = ScriptedTap(spark.sparkContext, conf, eyes)
    tap.start()
    try:
        yield tap
    finally:
        tap.stop()


def compiled(spark: SparkSession, source: str) -> Any:
    """An object of the class in this source, which may name headwater's own classes."""
    context: Any = spark.sparkContext
    compiler = context._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(JavaClasses(context).load("FormatExtractor").getClassLoader())
    compiler.cook(source)
    name = source.partition("public class ")[2].split()[0]
    made = compiler.getClassLoader().loadClass(f"headwatertest.{name}")
    constructor = made.getConstructor(context._gateway.new_array(context._jvm.java.lang.Class, 0))
    return constructor.newInstance(context._gateway.new_array(context._jvm.java.lang.Object, 0))


def public(thing: Any, field: str) -> Any:
    return thing.getClass().getField(field).get(thing)


def open_gate(thing: Any) -> None:
    public(thing, "gate").countDown()


def await_blocked(spark: SparkSession, thing: Any) -> None:
    context: Any = spark.sparkContext
    jvm = context._jvm
    wait = getattr(public(thing, "reached"), "await")
    assert wait(30, jvm.java.util.concurrent.TimeUnit.SECONDS)


def used_heap(spark: SparkSession) -> int:
    """Bytes in use in the driver's JVM after a full collection, of what Python holds on to there too: a DataFrame that
    nobody has any more keeps its plan, and what that broadcast, until its circle of objects is found."""
    gc.collect()
    context: Any = spark.sparkContext
    jvm = context._jvm
    for _ in range(2):
        jvm.java.lang.System.gc()
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def java_threads(spark: SparkSession) -> set[str]:
    """Names of the JVM's threads that are ours."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    names = {thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()}
    return {name for name in names if "headwater" in name}
