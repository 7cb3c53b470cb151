"""Column lineage of what a real Spark analyzes: a table of queries, and what only DataFrames have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Plan
from tests.kit.plan.frames import FRAMES, Frame
from tests.kit.plan.notation import edges, edges_of, table_of
from tests.kit.plan.queries import QUERIES, TABLES
from tests.kit.plan.reader import PlanReader
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def spark(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    conf = {"spark.jars.packages": "", "spark.sql.warehouse.dir": str(warehouse)}
    with spark_session(java_home, **conf) as session:
        inside: Any = session.udf
        inside.register("shout", lambda text: text.upper())
        for statement in TABLES:
            session.sql(statement)
        yield session


@pytest.fixture(scope="module")
def reader(spark: SparkSession) -> PlanReader:
    return PlanReader(spark)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_the_edges_that_it_should(reader: PlanReader, query: str) -> None:
    plan = Plan.parse(reader.sql(query))
    assert edges_of(plan) == edges(QUERIES[query])


@pytest.mark.parametrize("name", FRAMES)
def test_what_only_dataframes_have(spark: SparkSession, reader: PlanReader, name: str) -> None:
    frame: Frame = FRAMES[name]
    plan = Plan.parse(reader.of(frame.make(spark)))
    assert edges_of(plan) == edges(frame.edges)


TWICE = (
    "select customer from orders group by customer having max(id) > 1 and count(distinct status) > 2",
    "select customer from orders group by customer order by max(id)",
    "select upper(status) from orders group by rollup(upper(status))",
    "select id from orders group by id having max((select min(id) from customers)) > 1",
)
OBSERVED = {
    "observed": lambda spark: spark.table("orders").observe(_observation(), _max("id")),
    "temporary": lambda spark: [spark.table("orders").createOrReplaceTempView("t"), spark.sql("select id from t")][1],
    "formatted": lambda spark: spark.sql("select id from {orders}", orders=spark.table("orders")),
}


def _asked(query: str, spark: Any) -> Any:
    return spark.sql(query)


def _observation() -> Any:
    from pyspark.sql import Observation

    return Observation()


def _max(column: str) -> Any:
    from pyspark.sql import functions

    return functions.max(column)


def test_what_is_reported_twice_is_one_text(spark: SparkSession, reader: PlanReader) -> None:
    """Whatever Spark makes up for a statement: ids of columns in names, of observations, names of views."""
    inside: Any = spark
    made: dict[str, Callable[[Any], Any]] = {query: partial(_asked, query) for query in (*QUERIES, *TWICE)}
    made |= {name: frame.make for name, frame in FRAMES.items()} | OBSERVED
    for what, make in made.items():
        first = reader.of(make(spark))
        inside._jsparkSession.sessionState().catalog().invalidateAllCachedTables()  # or columns have the ids they had
        assert reader.of(make(spark)) == first, what


def test_a_users_own_name_is_kept_whatever_it_looks_like(reader: PlanReader) -> None:
    plan = reader.sql("select id as `max(id#7)`, name as `a#1` from customers")
    assert [plan["attributes"][each][0] for each in plan["nodes"][-1]["out"]] == ["max(id#7)", "a#1"]


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("with t as (select * from items) select id from customers", ["customers"]),
        ("select id from customers where id in (select customer from orders)", ["customers", "orders"]),
        ("select a.id from customers a join customers b on a.id = b.id", ["customers", "customers"]),
        ("with t as (select id from customers) select a.id from t a join t b on a.id = b.id", ["customers"]),
        ("select (select max(qty) from items) as m from range(3)", ["items"]),
        ("select 1", []),
    ],
)
def test_leaves_are_what_is_read(reader: PlanReader, query: str, tables: list[str]) -> None:
    plan = Plan.parse(reader.sql(query))
    assert sorted(table_of(plan, each) for each in lineage_of(plan, plan.root).leaves) == tables


def test_a_cached_table_is_seen_through(spark: SparkSession, reader: PlanReader) -> None:
    cached = spark.sql("select id, upper(name) as n from customers").cache()
    try:
        assert edges_of(Plan.parse(reader.of(cached.filter("n > 'x'")))) == edges(
            "id = c.id; n <- c.name; ~FILTER c.name"
        )
    finally:
        cached.unpersist()


def test_what_a_write_stores_is_followed_through_its_casts(reader: PlanReader) -> None:
    reader.sql(
        "create table stored (a bigint, b int, c char(4), d struct<w:bigint,h:int,box:struct<d:int>>) using parquet"
    )
    plan = Plan.parse(reader.sql("insert into stored select qty, score, sku, dims from items, customers"))
    expected = "a = i.qty; b <- c.score; c = i.sku; d <- i.dims.w, i.dims.h, i.dims.box.d"
    assert edges_of(plan, plan.top.plan_of("query")) == edges(expected)
