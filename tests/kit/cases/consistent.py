"""Tables of which some are made from one, and a store that knows it. Each holds the rows of the version that it was
made from, so what was read together shows in the rows."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.events import Event
from headwater.lens import consistent
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from tests.kit.cases.lens import ids
from tests.kit.spark.driver import Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOGS: Final = {"iceberg": "ice", "delta": "spark_catalog", "paimon": "pai", "hudi": "spark_catalog"}
KEY: Final = consistent.KEY


class Tables:
    """`b` and `c` are made from `a`, and `b` once more after `a` has grown: version 2 of `b` goes with none of `c`."""

    def __init__(self, driver: Driver, using: str, store: Path) -> None:
        self.driver = driver
        self.using = using
        self.store = store
        self.db = f"{CATALOGS[using]}.{driver.database(CATALOGS[using])}"
        self.a, self.b, self.c, self.d = (f"{self.db}.{name}" for name in "abcd")
        open_store(str(store), create=True).close()
        self.run(*(f"CREATE TABLE {each} (id INT) USING {using}" for each in (self.a, self.b, self.c)))
        self.grow(1)
        self.copy(self.b, self.c)
        self.grow(2)
        self.copy(self.b)

    def run(self, *statements: str) -> None:
        self.report(self.driver.events_of(*statements))

    def report(self, events: list[Event]) -> None:
        with open_store(str(self.store)) as opened:
            for event in events:
                opened.merge(map_event(event))

    def grow(self, number: int) -> None:
        self.run(f"INSERT INTO {self.a} VALUES ({number})")

    def copy(self, *tables: str) -> None:
        self.run(*(self.copying(each) for each in tables))

    def copying(self, table: str) -> str:
        return f"INSERT OVERWRITE {table} SELECT id FROM {self.a}"

    def alone(self, spark: SparkSession) -> list[int]:
        """The ids that only one of `b` and `c` has."""
        query = f"SELECT id FROM {self.b} b FULL JOIN {self.c} c USING (id) WHERE b.id IS NULL OR c.id IS NULL"
        return ids(spark.sql(query))


@contextmanager
def reading(
    spark: SparkSession, store: Path | str, max_age: str = "0s", **settings: str
) -> Generator[SparkSession, None, None]:
    """A session beside this one that reads consistently: with `otherwise="latest"` and the like. Each statement asks
    the store, unless an answer may have an age."""
    inside: Any = spark
    reads = consistent.begin(inside.sparkContext, {f"{KEY}.store": str(store)})
    session = spark.newSession()
    session.sql(f"SET {KEY} = true")
    for key, value in {"max.age": max_age, **settings}.items():
        session.sql(f"SET {KEY}.{key} = {value}")
    try:
        yield session
    finally:
        reads.close()


def explained(spark: SparkSession, query: str) -> str:
    """What EXPLAIN says below the plan."""
    text: str = spark.sql(f"EXPLAIN {query}").collect()[0][0]
    return text.partition("== Consistent Reads ==\n")[2]
