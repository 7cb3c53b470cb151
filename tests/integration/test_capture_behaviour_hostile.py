"""Listeners that do their worst, in a driver as users start it: the job doesn't notice, nor do the other listeners."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.drivers import SESSION, Place
from tests.kit.waiting import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.spark]
HOSTILE = """
import _thread, os, sys, threading, time

class Base:
    def __init__(self, context): self.seen = 0
    def on_event(self, event):
        self.seen += 1
        if event.kind == "Committed":
            self.harm()
    def on_missed(self, count): ...
    def flush(self, timeout): ...
    def close(self, timeout): return True

class Factory:
    @classmethod
    def create(cls, context): return cls.made(context)

class Raising(Base):
    def harm(self): raise RuntimeError("no")

class Hanging(Base):
    def harm(self): threading.Event().wait()
    def close(self, timeout): threading.Event().wait()

class Hoarding(Base):
    kept = []
    def harm(self): self.kept.append(bytearray(1 << 20))

class Exiting(Base):
    def harm(self): sys.exit(7)

class Killing(Base):
    def harm(self): _thread.exit()

class Writing(Base):
    def harm(self):
        from pyspark.sql import SparkSession
        spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        spark.sql("INSERT INTO of_listener VALUES (1)")

def factory(kind):
    class Made:
        def create(self, context): return kind(context)
    return Made

RaisingFactory, HangingFactory, HoardingFactory, ExitingFactory, KillingFactory, WritingFactory = (
    factory(each) for each in (Raising, Hanging, Hoarding, Exiting, Killing, Writing)
)
"""
JOB = (
    SESSION
    + """
import time
spark.sql("CREATE TABLE of_listener (id INT) USING parquet")
spark.sql("CREATE TABLE t (id INT) USING parquet")
def job():
    started = time.monotonic()
    for n in range(20):
        spark.sql(f"INSERT INTO t VALUES ({n})")
    return time.monotonic() - started
seconds = job()
assert spark.table("t").count() == 20
assert sorted(row.id for row in spark.table("t").collect()) == list(range(20))
deadline = time.monotonic() + 60
while spark.table("of_listener").count() < 20:
    assert time.monotonic() < deadline
    time.sleep(0.1)
time.sleep(1)  # for a loop, if there is one
assert spark.table("of_listener").count() == 20
started = time.monotonic()
spark.stop()
print("stopped in", time.monotonic() - started)
"""
)
NAMES = ("raising", "hanging", "hoarding", "exiting", "killing", "writing")


def test_listeners_that_do_their_worst(tmp_path: Path, java_home: Path) -> None:
    place = Place(tmp_path, java_home, patience=4)  # one that hangs takes all of it, and others end meanwhile
    (tmp_path / "hostile.py").write_text(HOSTILE)
    listeners = ["seen:SeenFactory", *(f"{name}=hostile:{name.capitalize()}Factory" for name in NAMES)]
    place.configure({"spark.headwater.listeners": ",".join(listeners)})
    ended = place.python(JOB)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    stopped = float(ended.out.split("stopped in")[1])
    assert stopped < PATIENCE, "the seconds that it is given, and Spark's own; else it never ends"
    written = [each["outputs"][0]["table"]["table"] for each in ended.of("Committed")]
    assert written == ["t"] * 20
    assert ended.kinds()[-1] == "Closed"


KILLED = (
    SESSION
    + """
import os, signal, time
spark.sql("CREATE TABLE t (id INT) USING parquet")
for n in range(3):
    spark.sql(f"INSERT INTO t VALUES ({n})")
import headwater.listeners
assert headwater.listeners.install(spark).flush(60)
java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
os.kill(java, signal.SIGKILL)
time.sleep(3)  # whoever asks the JVM something meanwhile finds it gone
print("the script goes on")
"""
)


@pytest.mark.long
def test_a_jvm_that_is_killed(tmp_path: Path, java_home: Path) -> None:
    place = Place(tmp_path, java_home)
    ended = place.python(KILLED)
    assert ended.code == 0, ended.err
    assert "the script goes on" in ended.out
    assert "Traceback" not in ended.err
    assert len(ended.of("Committed")) == 3
    assert any("doesn't answer" in each["detail"] for each in ended.of("Gap"))
    assert ended.kinds()[-1] == "Closed"
