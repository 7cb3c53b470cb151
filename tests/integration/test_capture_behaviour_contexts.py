"""Several contexts in one JVM, one after the other, headwater installed in each: nothing of one is left in the next."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from headwater.events import Closed, Committed
from headwater.listeners import install, uninstall
from headwater.testing.memory import MemoryListener
from tests.kit.faults.capture import another_context, driver, java_threads, make_tables
from tests.kit.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def python_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("headwater")}


def has_no_threads(spark: SparkSession) -> bool:
    return java_threads(spark) == set()


class Kept(MemoryListener):
    made: list[Kept] = []  # noqa: RUF012 - one for each context


class KeptFactory:
    def create(self, context: object) -> Kept:
        Kept.made.append(Kept())
        return Kept.made[-1]


@pytest.fixture
def spark(java_home: Path, tmp_path: Path) -> Generator[SparkSession, None, None]:
    conf = {"spark.headwater.listeners": f"kept={__name__}:KeptFactory", "spark.headwater.spool.dir": str(tmp_path)}
    with driver(java_home, tmp_path, **conf) as session:
        yield session
    uninstall()


@pytest.mark.long
def test_contexts_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    taps: list[Any] = []
    for number in range(3):
        installed: Any = install(spark)
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")
        assert installed.flush(60)
        context: Any = spark.sparkContext
        registered = _listeners(context)
        assert len(registered) == 1
        taps.append(context._jvm.java.lang.ref.WeakReference(registered.pop()))
        stopping = threading.Thread(target=spark.stop)  # from another thread than the one that made it
        stopping.start()
        stopping.join(60)
        assert not stopping.is_alive()
        assert [type(each) for each in Kept.made[number].events[-1:]] == [Closed]
        assert len([each for each in Kept.made[number].events if isinstance(each, Committed)]) == 1
        del context, registered, installed
        spark = another_context(spark, **{"spark.sql.warehouse.dir": str(tmp_path / f"tables_{number}")})
        make_tables(spark)
        until(partial(has_no_threads, spark), "ending our threads in the JVM")
        until(lambda: python_threads() <= {"headwater"}, "ending our threads")
    gc.collect()
    jvm = cast("Any", spark.sparkContext)._jvm

    def is_gone() -> bool:
        jvm.java.lang.System.gc()
        return all(each.get() is None for each in taps)

    until(is_gone, "letting go of the taps")


def _listeners(context: Any) -> set[Any]:
    found = context._jsc.sc().listenerBus().listeners()
    return {each for each in found if each.getClass().getName().startswith("headwater")}
