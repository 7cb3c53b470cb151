"""Paimon PIP-5's queries in Spark SQL, through Spark's own JDBC catalogs, as docs/sql-with-spark.md has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import make_url, text

from headwater.lineage.sql.pip5_views import VIEWS
from headwater.local import Service
from tests.kit.lineage import pip5_story
from tests.kit.lineage.readers import postgres_reader
from tests.kit.lineage.sql_doc import ANSWERS, Query, block, placed, queries, rows_in
from tests.kit.lineage.views import database_of, fill
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.long,
]
# As they are printed in the proposal.
DOWNSTREAM_SNAPSHOTS = """
SELECT T.database, T.table, T.snapshot_id FROM
    source_job_lineage S
    JOIN sink_job_lineage T
    ON S.job=T.job AND S.barrier_id=T.barrier_id
    where S.`database`='myDatabase' and S.`table`='myTable' and S.snapshot_id=123
"""
TWO_CATALOGS = """
SELECT k.snapshot_id FROM catalog2.paimon.sink_job_lineage k
    JOIN catalog1.paimon.source_job_lineage s
    ON s.job=k.job AND s.barrier_id=k.barrier_id
    WHERE s.job='job_name' AND s.snapshot_id=10
"""


@pytest.fixture(scope="module")
def spark(java_home: Path, postgres: Service) -> Iterator[SparkSession]:
    with database_of(postgres.address, schema="headwater") as engine, postgres_reader(engine):
        fill(engine, pip5_story.events(catalog2_keeps_data=True), ("paimon", None))
        with engine.begin() as connection:
            connection.execute(text("GRANT USAGE ON SCHEMA paimon TO reader"))
            connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA paimon TO reader"))
        url = make_url(postgres.address).set(database=engine.url.database)
        conf = dict(line.split(maxsplit=1) for line in placed(block("properties"), url).splitlines())
        conf |= {key.replace("catalog1", "nobody"): text for key, text in conf.items() if "catalog1" in key}
        conf["spark.sql.catalog.nobody.url"] = conf["spark.sql.catalog.catalog1.url"].replace(
            "catalog=catalog1", "catalog=x"
        )
        conf |= {key.replace("catalog1", "owner"): text for key, text in conf.items() if "catalog1" in key}
        conf |= {
            "spark.sql.catalog.owner.user": str(url.username),
            "spark.sql.catalog.owner.password": str(url.password),
        }
        with spark_session(java_home, **conf) as session:
            session.sql("USE catalog1.paimon")
            yield session


def shown(frame: DataFrame) -> str:
    inside: Any = frame
    return str(inside._jdf.showString(20, 0, False))


@pytest.mark.parametrize("query", queries("spark"), ids=str)
def test_a_query_of_the_proposal_has_its_answer(spark: SparkSession, query: Query) -> None:
    assert rows_in(shown(spark.sql(query.sql.strip().rstrip(";")))) == ANSWERS[query.title]


@pytest.mark.parametrize(
    ("printed", "column"),
    [
        (DOWNSTREAM_SNAPSHOTS, "barrier_id"),
        (TWO_CATALOGS, "barrier_id"),
        ("SELECT name, value FROM paimon.catalog_options", "name"),
        ("SELECT * FROM souce_job_lineage", "souce_job_lineage"),
    ],
)
def test_where_the_proposal_slips(spark: SparkSession, printed: str, column: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=column):
        spark.sql(printed)


def test_all_views_are_tables_by_name(spark: SparkSession) -> None:
    """Spark lists what PostgreSQL calls a table, and reads what it calls a view."""
    assert spark.sql("SHOW TABLES IN catalog1.paimon").collect() == []
    kept = {"source_snapshot_lineage": 1, "sink_snapshot_lineage": 3}
    for view in VIEWS:
        rows = len(pip5_story.ROWS["catalog2"][view]) or kept.get(view, 0)
        assert spark.table(f"catalog2.paimon.{view}").count() == rows, view


def test_types_and_times(spark: SparkSession) -> None:
    frame = spark.table("catalog1.paimon.source_snapshot_lineage")
    types = [("job", "string"), ("barrier_id", "bigint"), ("database", "string"), ("table", "string")]
    assert frame.dtypes == [*types, ("snapshot_id", "bigint"), ("create_time", "timestamp")]
    (row,) = frame.where("snapshot_id = 41").selectExpr("unix_micros(create_time) AS micros").collect()
    assert datetime.fromtimestamp(row.micros / 1e6, timezone.utc) == pip5_story.minute(3)


def test_filters_are_the_databases(spark: SparkSession) -> None:
    query = "SELECT * FROM source_snapshot_lineage WHERE `table` = 'myTable' AND snapshot_id = 123 AND job LIKE 'rep%'"
    (plan,) = spark.sql(f"EXPLAIN FORMATTED {query}").collect()
    (pushed,) = [line for line in plan.plan.splitlines() if "PushedFilters" in line]
    assert "table = 'myTable'" in pushed
    assert "snapshot_id = 123" in pushed
    assert "job LIKE 'rep%'" in pushed
    assert "\nFilter" not in plan.plan
    assert [row.job for row in spark.sql(query).collect()] == ["report"]


def refusal(spark: SparkSession, statement: str) -> str:
    """What Spark says, and the database before it."""
    with pytest.raises(Exception) as refused:  # noqa: PT011 - Spark has many kinds
        spark.sql(statement).collect()
    error: Any = refused.value
    words, cause = str(error), getattr(error, "_origin", None)
    while cause is not None:
        words, cause = f"{words} {cause.getMessage()}", cause.getCause()
    return words


@pytest.mark.long
@pytest.mark.sample(4)
@pytest.mark.parametrize("catalog", ["catalog1", "owner"])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO {} VALUES ('j', 'd', 't', 1L)", {"permission denied", "cannot insert into view"}),
        ("INSERT OVERWRITE {} VALUES ('j', 'd', 't', 1L)", {"permission denied", "is not a table"}),
        ("UPDATE {} SET snapshot_id = 7", {"UPDATE TABLE is not supported"}),
        ("DELETE FROM {}", {"does not support deletes"}),
        ("TRUNCATE TABLE {}", {"does not support truncates"}),
        ("ALTER TABLE {} ADD COLUMN more INT", {"must be owner", "cannot be performed on relation"}),
        ("ALTER TABLE {} ALTER COLUMN job DROP NOT NULL", {"must be owner", "cannot be performed on relation"}),
    ],
)
def test_nothing_is_written_through_spark(spark: SparkSession, statement: str, words: set[str], catalog: str) -> None:
    message = refusal(spark, statement.format(f"{catalog}.paimon.job_startup"))
    assert any(each in message for each in words), message
    assert_there(spark)


def assert_there(spark: SparkSession) -> None:
    assert [tuple(row) for row in spark.table("catalog1.paimon.job_startup").collect()] == [
        ("report", "myDatabase", "myTable", 123)
    ]


@pytest.mark.long
@pytest.mark.parametrize("catalog", ["catalog1", "owner"])
def test_a_view_is_no_table_to_drop(spark: SparkSession, catalog: str) -> None:
    """PostgreSQL refuses, and Spark doesn't tell."""
    spark.sql(f"DROP TABLE {catalog}.paimon.job_startup")
    assert_there(spark)


def test_a_reader_changes_nothing_of_a_view_and_sees_nothing_else(spark: SparkSession) -> None:
    for statement, words in (
        ("ALTER TABLE catalog1.paimon.job_startup RENAME TO paimon.gone", "must be owner"),
        ("ALTER TABLE catalog1.paimon.job_startup RENAME COLUMN job TO work", "must be owner"),
        ("CREATE TABLE catalog1.paimon.mine (a INT)", "permission denied"),
        ("DROP NAMESPACE catalog1.paimon CASCADE", "must be owner"),
        ("SELECT * FROM catalog1.headwater.writes", "cannot be found"),
    ):
        assert words in refusal(spark, statement)
    assert_there(spark)


def test_a_catalog_that_nobody_knows_is_reported_in_spark_too(spark: SparkSession) -> None:
    assert "no catalog x is known here" in refusal(spark, "SELECT * FROM nobody.paimon.job_startup")
