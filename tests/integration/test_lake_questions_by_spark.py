"""Questions in Spark's SQL have the answers that were found by hand, and those of a database over the same events.

The tables are views of a session, so that each story has its own in no time; tests/kit/lake/contract.py asks
tables of each format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import CatalogId, Event, LineageDeleted
from headwater.events.administration import LineageScope
from headwater.lineage.client import Lineage
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.lake.reading import LakeTarget
from headwater.lineage.lake.spark_dialect import spark_engine
from headwater.lineage.lake.spark_reading import empty_relation
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, merge_by_key
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, open_store
from tests.kit.lineage import pip5_story
from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.stories import Story, ask, producer_of
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.xdist_group("lake"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # Spark 3.5 compares the versions of pandas so
    pytest.mark.filterwarnings("ignore:distutils Version classes are deprecated:DeprecationWarning"),
]
QUICK = {"half_known"}
"""It is told each time; the others take minutes."""


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[SparkSession]:
    small = {
        "spark.jars.packages": "",
        "spark.ui.showConsoleProgress": "false",
        # few rows: compiling a plan takes longer than running it
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    with spark_session(java_home, **small) as spark:
        yield spark


def store_in_views(spark: SparkSession, rows: Iterable[Row]) -> Store:
    """A store whose tables are views of the session."""
    by_name: dict[str, list[tuple[Any, ...]]] = {}
    for row in merge_by_key(rows).values():
        by_name.setdefault(row.kind.name, []).append(row.values)
    for name, values in by_name.items():
        schema = ", ".join(f"`{column}` {kind}" for column, kind in lake_tables()[name].columns.items())
        spark.createDataFrame(values, schema).createOrReplaceTempView(f"views_{name}")
    engine = spark_engine(spark, lambda: lambda name: f"`views_{name}`" if name in by_name else empty_relation(name))
    return Store(engine, LakeTarget.of(LakeAddress("views", ("of", "spark"))))


def rows_of(events: Iterable[Event]) -> list[Row]:
    return [row for each in events for row in map_event(each)]


@pytest.mark.parametrize(
    "story",
    [pytest.param(each, marks=() if each.name in QUICK else pytest.mark.long) for each in STORIES],
    ids=lambda each: each.name,
)
def test_what_is_reported_is_answered(spark: SparkSession, story: Story) -> None:
    producer = producer_of(story)
    with store_in_views(spark, rows_of(producer.events)) as store, store.engine.connect() as connection:
        answers = {check.question: ask(connection, check.question) for check in producer.checks}
    assert answers == {check.question: (check.rows, check.whys) for check in producer.checks}


def deleted_of_a_catalog() -> list[Event]:
    """The name catalog1 stood for two, and the lineage of one of them is deleted."""
    story = pip5_story.Story()
    story.events += pip5_story.events()
    story.options("catalog1", CatalogId(type="paimon", location="file://host/warehouse3"))
    story.emit(LineageDeleted, scope=LineageScope.ALL, catalog=pip5_story.CATALOGS["catalog1"], before=story.now)
    return story.events


TABLES = ("myTable", "copies")


def answers_of(lineage: Lineage, now: Any) -> dict[str, Any]:
    """Answers of questions that ask in SQL what is deleted."""
    asked: dict[str, Callable[[], Any]] = {}
    for each in TABLES:
        about = name(each)
        asked |= {
            f"jobs of {each}": lambda about=about: lineage.jobs_of(about, now=now),  # type: ignore[misc]
            f"uses of {each}": lambda about=about: lineage.uses(about, now=now),  # type: ignore[misc]
        }
    return {question: answer() for question, answer in asked.items()}


def name(table: str) -> str:
    return f"{'catalog2' if table == 'copies' else 'catalog1'}.myDatabase.{table}"


@pytest.mark.long
def test_what_was_deleted_of_a_catalog_is_left_out_as_by_a_database(spark: SparkSession, tmp_path: Path) -> None:
    """With lineage of a catalog deleted, each row asks which catalogs its table's name stood for, three EXISTS deep."""
    reported = deleted_of_a_catalog()
    now = reported[-1].time + timedelta(hours=1)
    with open_store(f"sqlite:///{tmp_path}/store.db") as database, store_in_views(spark, rows_of(reported)) as lake:
        database.merge(rows_of(reported))
        expected, found = answers_of(Lineage(database), now), answers_of(Lineage(lake), now)
        for question, answer in expected.items():
            assert found[question] == answer, question
        with database.engine.connect() as one, lake.engine.connect() as other:
            assert store_digest(other) == store_digest(one)


@pytest.mark.long
def test_values_of_all_kinds_come_back_and_mean_nothing_to_spark(spark: SparkSession) -> None:
    """Quotes, backslashes, variables of Spark's SQL, percent signs, and numbers of 64 bits."""
    engine = spark_engine(spark, lambda: lambda name: name)
    texts = ["it's", 'a "b"', "back\\slash\\n", "${spark.app.name}", "100 %s", "--x", "ü€😀", "", "a\nb", "%(x)s"]
    with engine.connect() as connection:
        for value in [*texts, b"", b"\x00'\xff", 2**63 - 1, -(2**63) + 1, 0, True, None]:
            found = connection.exec_driver_sql("SELECT %s AS it", (value,)).scalar()
            assert found == value, value
            assert type(found) is type(value)
