"""Views and databases in Spark's own catalog, what the session keeps to itself, and who told what in a race."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.errors import AnalysisException
from sqlalchemy import Connection

from headwater.events import AlterDatabase, AlterView, CreateDatabase, CreateTable, CreateView, DatasetId, Gap
from headwater.events.catalog import ModificationEffect
from headwater.lineage.bulk import merge_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.columns import ColumnEdge, downstream_columns, upstream_columns
from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.questions.tables import TableEdge, downstream_tables, upstream_tables
from headwater.lineage.store import open_store
from tests.kit.cases.catalog_lines import lines
from tests.kit.spark.driver import HOST, PLAIN, Driver, of, shared_driver_fixture, the
from tests.kit.waiting import PATIENCE

pytestmark = pytest.mark.xdist_group("spark-plain")

Tables: TypeAlias = Callable[[Connection, str], LineageAnswer[TableEdge]]
Columns: TypeAlias = Callable[[Connection, str], LineageAnswer[ColumnEdge]]

A = "CREATE TABLE {db}.a (id INT COMMENT 'the key', s STRING) USING parquet"
V = "CREATE VIEW {db}.v AS SELECT id FROM {db}.a"
_V = "v (id int 'the key'; id<spark_catalog.{db}.a.id)"
NAMED = (
    "CREATE VIEW {db}.v (n COMMENT 'a number', t) COMMENT 'mine' TBLPROPERTIES (k='v') "
    "AS SELECT id + 1 AS a, upper(s) AS b FROM {db}.a WHERE id > 7"
)
REPORTED_NAMED = (
    "+ view v (n int 'a number', t string; n<spark_catalog.{db}.a.id; t<spark_catalog.{db}.a.s; "
    "*<spark_catalog.{db}.a.id; k=v; 'mine')"
)
OLD = "(id int 'the key'; id<spark_catalog.{db}.a.id)"


driver = shared_driver_fixture(PLAIN)


VIEWS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "create": ((A,), V, (f"+ view {_V}",)),
    "columns by other names": ((A,), NAMED, (REPORTED_NAMED,)),
    "of a view": (
        (A, V),
        "CREATE VIEW {db}.w AS SELECT id AS x FROM {db}.v",
        ("+ view w (x int 'the key'; x<spark_catalog.{db}.v.id)",),
    ),
    "of no table": ((), "CREATE VIEW {db}.v AS SELECT 1 AS one", ("+ view v (one int!)",)),
    "if not exists, new": ((A,), V.replace("VIEW", "VIEW IF NOT EXISTS"), (f"+ view {_V} if not exists",)),
    "if not exists, there": ((A, V), "CREATE VIEW IF NOT EXISTS {db}.v AS SELECT 1 AS one", ()),
    "or replace, new": ((A,), V.replace("CREATE", "CREATE OR REPLACE"), (f"+ view {_V}",)),
    "or replace, there": (
        (A, V),
        "CREATE OR REPLACE VIEW {db}.v AS SELECT s FROM {db}.a",
        ("+ view v (s string; s<spark_catalog.{db}.a.s) replaced",),
    ),
    "as": (
        (A, V),
        "ALTER VIEW {db}.v AS SELECT s AS t FROM {db}.a",
        (f"view v: {OLD} -> (t string; t<spark_catalog.{{db}}.a.s)",),
    ),
    "set properties": (
        (A, V),
        "ALTER VIEW {db}.v SET TBLPROPERTIES (k='v')",
        (f"view v: {OLD} -> {OLD[:-1]}; k=v)",),
    ),
    "unset properties": (
        (A, V, "ALTER VIEW {db}.v SET TBLPROPERTIES (k='v')"),
        "ALTER VIEW {db}.v UNSET TBLPROPERTIES (k)",
        (f"view v: {OLD[:-1]}; k=v) -> {OLD}",),
    ),
    "rename": ((A, V), "ALTER VIEW {db}.v RENAME TO {db}.w", (f"view v to w: {OLD} -> {OLD}",)),
    "drop": ((A, V), "DROP VIEW {db}.v", ("- view v known",)),
    "drop if exists, there": ((A, V), "DROP VIEW IF EXISTS {db}.v", ("- view v if exists known",)),
    "drop if exists, not there": ((), "DROP VIEW IF EXISTS {db}.nothing", ()),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", VIEWS)
def test_views(driver: Driver, name: str) -> None:
    before, statement, truth = VIEWS[name]
    db = driver.database()
    driver.run(*(each.replace("{db}", db) for each in before))
    captured = driver.events_of(statement.replace("{db}", db))
    assert lines(captured) == [line.replace("{db}", db) for line in truth]
    assert not of(Gap, captured)


def test_the_text_of_a_view_has_no_literals(driver: Driver) -> None:
    db = driver.database()
    driver.run(A.replace("{db}", db))
    captured = driver.events_of(f"CREATE VIEW {db}.v AS SELECT id, 'hunter2' AS word FROM {db}.a WHERE id > 12345")
    view = the(CreateView, captured).view
    assert view.sql == f"SELECT id, ? AS word FROM {db}.a WHERE id > ?"
    (source,) = view.sources
    assert source.dataset == DatasetId(namespace=f"file://{HOST}", name=f"{driver.warehouse}/spark/{db}.db/a")
    again = the(AlterView, driver.events_of(f"ALTER VIEW {db}.v AS SELECT id FROM {db}.a WHERE s = 'hunter3'"))
    assert again.new_view is not None
    assert again.new_view.sql == f"SELECT id FROM {db}.a WHERE s = ?"


def test_a_view_is_in_every_answer(driver: Driver, tmp_path: Path) -> None:
    """From Spark to the store's answers: views that have no identity are dropped on this way, and each part of it is
    right by itself. A view over a view, one that is renamed, and one whose old name is taken by another."""
    db = driver.database()
    captured = driver.events_of(
        *(each.replace("{db}", db) for each in (A, V)),
        f"CREATE VIEW {db}.w AS SELECT id AS x FROM {db}.v",
        f"CREATE TABLE {db}.b (id INT) USING parquet",
        f"CREATE VIEW {db}.old AS SELECT s AS y FROM {db}.a",
        f"ALTER VIEW {db}.old RENAME TO {db}.new",
        f"ALTER VIEW {db}.new SET TBLPROPERTIES (k='v')",
        f"CREATE VIEW {db}.old AS SELECT id AS z FROM {db}.b",
        f"CREATE VIEW {db}.gone AS SELECT id FROM {db}.b",
        f"DROP VIEW {db}.gone",
    )
    with open_store(f"sqlite:///{tmp_path}/lineage.db") as store, store.engine.begin() as connection:
        merge_rows(connection, [row for event in captured for row in map_event(event)])

        def tables(direction: Tables, name: str) -> set[tuple[str, str, str]]:
            edges = direction(connection, f"{db}.{name}").rows
            return {(short(each.target.label), short(each.source.label), each.via) for each in edges}

        def columns(direction: Columns, name: str) -> set[tuple[str, str]]:
            edges = direction(connection, f"{db}.{name}").rows
            return {(short(each.target.label), short(each.source.label)) for each in edges}

        def short(label: str) -> str:
            return label.removeprefix(f"spark_catalog.{db}.")

        assert tables(upstream_tables, "w") == {("w", "v", "VIEW"), ("v", "a", "VIEW")}
        assert tables(downstream_tables, "a") == {("v", "a", "VIEW"), ("w", "v", "VIEW"), ("new", "a", "VIEW")}
        assert tables(downstream_tables, "b") == {("old", "b", "VIEW")}
        assert columns(upstream_columns, "w.x") == {("w.x", "v.id"), ("v.id", "a.id")}
        assert columns(downstream_columns, "a.s") == {("new.y", "a.s")}
        assert columns(downstream_columns, "b.id") == {("old.z", "b.id")}
        (limit,) = downstream_tables(connection, f"{db}.v").limits
        assert limit.why is LimitReason.THROUGH_VIEW


SESSIONS_OWN = [
    "CREATE TEMPORARY VIEW {db}_v AS SELECT 1 AS one",
    "CREATE GLOBAL TEMPORARY VIEW {db}_g AS SELECT 1 AS one",
    "ALTER VIEW {db}_v AS SELECT 2 AS two",
    "DROP VIEW {db}_v",
    "DROP VIEW global_temp.{db}_g",
    "ANALYZE TABLE {db}.a COMPUTE STATISTICS",
    "ANALYZE TABLE {db}.a COMPUTE STATISTICS FOR ALL COLUMNS",
    "CACHE TABLE {db}.a",
    "UNCACHE TABLE {db}.a",
    "REFRESH TABLE {db}.a",
    "CLEAR CACHE",
    "SHOW TABLES IN {db}",
    "SHOW COLUMNS IN {db}.a",
    "SHOW CREATE TABLE {db}.a",
    "SHOW TBLPROPERTIES {db}.a",
    "SHOW NAMESPACES",
    "SHOW FUNCTIONS",
    "SHOW VIEWS",
    "DESCRIBE TABLE {db}.a",
    "DESCRIBE DATABASE {db}",
    "DESCRIBE FUNCTION upper",
    "EXPLAIN SELECT * FROM {db}.a",
    "SET some.key=1",
    "RESET some.key",
    "USE {db}",
    "USE default",
    "CREATE FUNCTION {db}.f AS 'a.b.C'",
    "DROP FUNCTION {db}.f",
    "LIST JARS",
]


def test_what_is_the_sessions_own_is_nothing_to_tell(driver: Driver) -> None:
    db = driver.database()
    driver.run(A.replace("{db}", db))
    captured = {statement: driver.events_of(statement.replace("{db}", db)) for statement in SESSIONS_OWN}
    assert {statement: events for statement, events in captured.items() if events} == {}
    assert driver.events_of(f"CREATE VIEW {db}.heard AS SELECT 1"), "all the time somebody listened"


DATABASES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "create": ((), "CREATE DATABASE {db}", ("+ database {db} (at {db}.db)",)),
    "with all it can have": (
        (),
        "CREATE DATABASE {db} COMMENT 'mine' LOCATION '{w}/{db}_x' WITH DBPROPERTIES (k='v')",
        ("+ database {db} (k=v; 'mine'; at {db}_x)",),
    ),
    "if not exists, new": ((), "CREATE DATABASE IF NOT EXISTS {db}", ("+ database {db} (at {db}.db) if not exists",)),
    "if not exists, there": (("CREATE DATABASE {db}",), "CREATE DATABASE IF NOT EXISTS {db}", ()),
    "properties": (
        ("CREATE DATABASE {db}",),
        "ALTER DATABASE {db} SET DBPROPERTIES (k='v')",
        ("database {db}: (at {db}.db) -> (k=v; at {db}.db)",),
    ),
    "location": (
        ("CREATE DATABASE {db}",),
        "ALTER DATABASE {db} SET LOCATION '{w}/{db}_y'",
        ("database {db}: (at {db}.db) -> (at {db}_y)",),
    ),
    "comment": (
        ("CREATE DATABASE {db} COMMENT 'old'",),
        "COMMENT ON DATABASE {db} IS 'new'",
        ("database {db}: ('old'; at {db}.db) -> ('new'; at {db}.db)",),
    ),
    "drop": (("CREATE DATABASE {db}",), "DROP DATABASE {db}", ("- database {db} known",)),
    "drop cascade": (
        ("CREATE DATABASE {db}", A),
        "DROP DATABASE {db} CASCADE",
        ("- database {db} cascade known",),
    ),
    "drop if exists, there": (
        ("CREATE DATABASE {db}",),
        "DROP DATABASE IF EXISTS {db}",
        ("- database {db} if exists known",),
    ),
    "drop if exists, not there": ((), "DROP DATABASE IF EXISTS {db}", ()),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", DATABASES)
def test_databases(driver: Driver, name: str) -> None:
    before, statement, truth = DATABASES[name]

    def filled(text: str) -> str:
        return text.replace("{db}", db).replace("{w}", str(driver.warehouse))

    db = driver.name()
    driver.run(*map(filled, before))
    captured = driver.events_of(filled(statement))
    assert lines(captured) == [filled(line) for line in truth]
    after = [event.database for event in of(CreateDatabase, captured)]
    after += [event.new_database for event in of(AlterDatabase, captured)]
    for database in after:
        assert database.location == driver.spark.catalog.getDatabase(db).locationUri


def test_dropped_with_its_database_is_forgotten(driver: Driver) -> None:
    """What is made anew under the name isn't what was there."""
    db = driver.database()
    driver.run(A.replace("{db}", db), f"DROP DATABASE {db} CASCADE", f"CREATE DATABASE {db}")
    assert lines(driver.events_of(f"DROP TABLE IF EXISTS {db}.a")) == []


def test_a_catalog_statement_is_accounted_to_its_parent(driver: Driver) -> None:
    """DDL is no step of lineage: it is the application's, or the block's around it."""
    db = driver.database()
    created = the(CreateTable, driver.events_of(A.replace("{db}", db)))
    assert created.job is not None
    assert created.job.name == "app"
    assert created.statement is not None


def test_the_context_says_which_catalog(driver: Driver) -> None:
    db = driver.database()
    context = the(CreateTable, driver.events_of(A.replace("{db}", db))).context
    assert context.name == "spark_catalog"
    assert context.class_name == "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog"
    assert context.id is not None
    assert context.id.location == f"file://{HOST}{driver.warehouse}/spark"


RACERS = 4
ROUNDS = 10


def test_of_many_who_race_to_create_a_table_one_did(driver: Driver) -> None:
    """Each round has one table, and all want to make it: the one who did tells it, and nobody else does."""
    db = driver.database()

    def make(number: int) -> Callable[[], object]:
        return lambda: driver.run(f"CREATE TABLE IF NOT EXISTS {db}.t{number} (id INT) USING parquet")

    captured = driver.events_of(lambda _: race(make))
    made = of(CreateTable, captured)
    assert sorted(event.identifier.table for event in made) == sorted(f"t{number}" for number in range(ROUNDS))
    assert all(event.effect is ModificationEffect.APPLIED for event in made)
    assert not of(Gap, captured)


def test_of_many_who_race_to_drop_one_did(driver: Driver) -> None:
    db = driver.database()
    driver.run(*(f"CREATE TABLE {db}.t{number} (id INT) USING parquet" for number in range(ROUNDS)))

    def drop(number: int) -> Callable[[], object]:
        return lambda: driver.run(f"DROP TABLE IF EXISTS {db}.t{number}")

    captured = driver.events_of(lambda _: race(drop))
    assert sorted(lines(captured)) == sorted(f"- t{number} if exists known" for number in range(ROUNDS))


def race(act: Callable[[int], Callable[[], object]]) -> None:
    for number in range(ROUNDS):
        raced(act(number))


def raced(act: Callable[[], object]) -> None:
    """The same thing, by several threads at once, of whom one at least has to succeed."""
    start = threading.Barrier(RACERS)
    failed: list[AnalysisException] = []

    def run() -> None:
        start.wait(PATIENCE)
        try:
            act()
        except AnalysisException as e:  # Spark's own catalog looks first, and creates then
            failed.append(e)

    threads = [threading.Thread(target=run) for _ in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(failed) < RACERS
