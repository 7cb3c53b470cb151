"""Many threads and sessions at once: each statement is reported once, as its own, and nothing of us stays behind."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import Committed, Gap
from tests.kit.faults.capture import BLOCKING_LISTENER, compiled, driver, open_gate, tapped
from tests.kit.spark.driver import attached, of
from tests.kit.threads import in_threads
from tests.kit.waiting import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
WRITING_THREAD = """
package headwatertest;

public class WritingThread extends Thread {
    private org.apache.spark.sql.SparkSession session;
    private String statement;
    private int times;
    public void begin(Object session, String statement, int times) {
        this.session = (org.apache.spark.sql.SparkSession) session;
        this.statement = statement;
        this.times = times;
        start();
    }
    public void run() { for (int i = 0; i < times; i++) session.sql(statement); }
    public void await_end() throws InterruptedException { join(); }
}
"""
UNKNOWN_INTERFACE = """
package headwatertest;

public class UnknownInterface implements java.lang.reflect.InvocationHandler {
    public interface Newer extends java.util.Comparator {
        boolean flag();
        char letter();
        long wide();
        double rate();
        void nothing();
        String text();
        scala.Option option();
    }
    public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] arguments) throws Throwable {
        return headwater.capture.ProxyDefaults.answer(proxy, method, arguments);
    }
    public String answers() {
        Object made = java.lang.reflect.Proxy.newProxyInstance(
            getClass().getClassLoader(), new Class[] {Newer.class}, this);
        Newer asked = (Newer) made;
        asked.nothing();
        boolean isItself = asked.equals(made) && !asked.equals(this) && asked.hashCode() == made.hashCode();
        boolean isStandard = asked.reversed() instanceof java.util.Comparator;
        return asked.flag() + " " + (int) asked.letter() + " " + asked.wide() + " " + asked.rate() + " " + asked.text()
            + " " + asked.option() + " " + asked.compare("a", "b") + " " + isStandard + " " + isItself;
    }
}
"""
THREADS = 8
EACH = 5


@pytest.fixture(scope="module")
def spark(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[SparkSession, None, None]:
    with driver(java_home, tmp_path_factory.mktemp("behaviour")) as session:
        yield session


def test_threads_and_sessions_are_distinguished(spark: SparkSession) -> None:
    """Each thread has a session, a job tag, a group and a name for its job of its own."""
    context: Any = spark.sparkContext

    def work(thread: int) -> None:
        session = spark.newSession()
        session.sql(f"SET spark.headwater.job.name=job_{thread}")
        context.addJobTag(f"tag_{thread}")
        context.setJobGroup(f"group_{thread}", "of a thread")
        for n in range(EACH):
            session.sql(f"INSERT OVERWRITE told_{thread} SELECT id + {n} AS id FROM a").collect()

    for thread in range(THREADS):
        spark.sql(f"CREATE TABLE told_{thread} (id INT) USING parquet")
    with tapped(spark, {}) as tap:
        in_threads(THREADS, work)
        records = tap.records()
    assert {each["kind"] for each in records} == {"statement"}
    assert len({each["id"] for each in records}) == len(records)
    writes = [each for each in records if each["confs"]]
    assert len(writes) == THREADS * EACH
    for thread in range(THREADS):
        own = [each for each in writes if each["tags"] == [f"tag_{thread}"]]
        assert len(own) == EACH
        assert {each["confs"]["spark.headwater.job.name"] for each in own} == {f"job_{thread}"}


def test_python_that_holds_its_lock_for_seconds(spark: SparkSession) -> None:
    """While nothing in Python runs, the driver's JVM goes on, and what it did then is reported."""
    session: Any = spark
    hold = ctypes.PyDLL(None).usleep
    with attached(spark) as (capture, bus):
        job = compiled(spark, WRITING_THREAD)
        job.begin(session._jsparkSession, "INSERT OVERWRITE b SELECT * FROM a", 20)
        for _ in range(4):
            hold(500_000)
        job.await_end()
        assert capture.drain(60)
        assert len(of(Committed, bus.events)) == 20
        assert of(Gap, bus.events) == []


def test_what_a_proxy_is_asked_that_it_does_not_know(spark: SparkSession) -> None:
    """A newer library may ask for anything after a user's commit; null for a boolean or a number would fail there."""
    assert compiled(spark, UNKNOWN_INTERFACE).answers() == "false 0 0 0.0 null None 0 true true"


def test_a_listener_of_somebody_elses_that_hangs(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    hanging = compiled(spark, BLOCKING_LISTENER)
    context._jsc.sc().addSparkListener(hanging)
    try:
        with attached(spark, close_within=2 * PATIENCE) as (capture, bus):
            spark.sql("INSERT OVERWRITE b SELECT * FROM a")
            assert capture.drain(PATIENCE), "who waits for the one that hangs says no in the end"
            assert len(of(Committed, bus.events)) == 1
            started = time.monotonic()
    finally:
        open_gate(hanging)
        context._jsc.sc().removeSparkListener(hanging)
    assert time.monotonic() - started < PATIENCE, "else it waits as long as it may"


def test_draining_a_driver_that_is_never_idle(spark: SparkSession) -> None:
    """What was done before is reported, whatever goes on meanwhile."""
    stop = threading.Event()

    def keep_busy(_: int) -> None:
        while not stop.is_set():
            spark.range(100).repartition(20).count()

    busy = threading.Thread(target=in_threads, args=(2, keep_busy))
    with attached(spark) as (capture, bus):
        busy.start()
        try:
            for n in range(3):
                spark.sql("INSERT OVERWRITE b SELECT * FROM a")
                assert capture.drain(60)
                assert len(of(Committed, bus.events)) == n + 1
        finally:
            stop.set()
            busy.join()


def statements(spark: SparkSession, count: int) -> None:
    """So many of each kind, of which some fail as they run, and some as they are planned."""
    for n in range(count):
        spark.sql(f"SELECT id + {n} FROM a").collect()
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")
        spark.sql("CREATE TABLE c USING parquet AS SELECT * FROM a")
        spark.sql("DROP TABLE c")
        for failing in ("INSERT INTO b SELECT raise_error('no'), s FROM a", "UPDATE a SET id = 2"):
            with pytest.raises(Exception, match=r"no|UPDATE"):
                spark.sql(failing)


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.timeout(900))])
def test_statements_leave_nothing_behind(spark: SparkSession, count: int) -> None:
    with tapped(spark) as tap:
        statements(spark, count)
        records = tap.records()
        assert tap.open() == 0
        assert tap.waiting() == (0, 0)
        assert tap.held_facts() == 0
    assert len([each for each in records if "failure" in each]) == 2 * count
    assert {each["kind"] for each in records} == {"statement"}
