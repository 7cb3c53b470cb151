"""Tables of databases, by url and in catalogs: PostgreSQL and MariaDB are servers, Derby and SQLite files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from sqlalchemy.engine import make_url

from headwater.events import (
    AlterTable,
    Committed,
    CreateTable,
    CreateView,
    DatasetId,
    DropTable,
    Event,
    Format,
    Gap,
    Output,
    StatementFailed,
    TableName,
)
from headwater.events.jobs import CommitKind, OverwriteScope
from tests.kit.spark.driver import HOST, JDBC, Driver, driver_with, edges, of, the

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.local import Service

pytestmark = [pytest.mark.database, pytest.mark.sample(9)]

SECRET: Final = "hunter2-is-secret"
CATALOG: Final = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
MADE: Final = (CommitKind.CREATE, OverwriteScope.ALL)
ADDED: Final = (CommitKind.APPEND, OverwriteScope.NOTHING)
REPLACED: Final = (CommitKind.OVERWRITE, OverwriteScope.ALL)
ROWS: Final = "SELECT id AS a, string(id) AS b FROM range(3)"


@dataclass(frozen=True)
class Database:
    """What to reach it by, and how its tables are called."""

    options: Mapping[str, str]
    namespace: str
    prefix: str
    """Of a table's full name."""
    upper: bool = False
    """Names without quotes are upper case."""

    def dataset(self, table: str) -> Any:
        """A key of dictionaries too, which a type checker doesn't see of a model."""
        return DatasetId(namespace=self.namespace, name=self.prefix + (table.upper() if self.upper else table))


@pytest.fixture(scope="module")
def postgres_database(postgres: Service) -> Database:
    url = make_url(postgres.address)
    options = {
        "url": f"jdbc:postgresql://localhost:{url.port}/{url.database}",
        "user": str(url.username),
        "password": str(url.password),
        "driver": "org.postgresql.Driver",
    }
    return Database(options, f"postgres://{HOST}:{url.port}", f"{url.database}.public.")


@pytest.fixture(scope="module")
def mariadb_database(mariadb: Service) -> Database:
    url = make_url(mariadb.address)
    options = {
        "url": f"jdbc:mysql://127.0.0.1:{url.port}/{url.database}?permitMysqlScheme",
        "user": str(url.username),
        "password": str(url.password),
        "driver": "org.mariadb.jdbc.Driver",
    }
    return Database(options, f"mysql://{HOST}:{url.port}", f"{url.database}.")


@pytest.fixture(scope="module")
def driver(java_home: Path, postgres_database: Database, mariadb_database: Database) -> Generator[Driver, None, None]:
    conf = {"spark__sql__catalog__pg": CATALOG, "spark__sql__catalog__my": CATALOG}
    for name, database in (("pg", postgres_database), ("my", mariadb_database)):
        conf |= {f"spark__sql__catalog__{name}__{key}": text for key, text in database.options.items()}
    with driver_with(java_home, JDBC, **conf) as driver:
        yield driver


@pytest.fixture
def derby(driver: Driver) -> Database:
    path = driver.warehouse / "derby"
    options = {"url": f"jdbc:derby:{path};create=true", "user": "app", "password": SECRET}
    return Database(options, f"derby://{HOST}{path}", "APP.", upper=True)


@pytest.fixture
def sqlite(driver: Driver) -> Database:
    path = driver.warehouse / "files.sqlite"
    return Database({"url": f"jdbc:sqlite:{path}", "driver": "org.sqlite.JDBC"}, f"sqlite://{HOST}{path}", "main.")


@pytest.fixture(
    params=[
        pytest.param("derby", marks=pytest.mark.smoke),
        "postgres_database",
        pytest.param("mariadb_database", marks=pytest.mark.long),
    ]
)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def read(driver: Driver, database: Database, **options: str) -> DataFrame:
    return driver.spark.read.format("jdbc").options(**{**database.options, **options}).load()


def write(driver: Driver, database: Database, table: str, mode: str, **options: str) -> None:
    writer = driver.spark.sql(ROWS).write.format("jdbc").mode(mode)
    writer.options(**{**database.options, "dbtable": table, **options}).save()


def table(driver: Driver, database: Database) -> str:
    """A table of a case's own, with the columns a and b and three rows."""
    name = driver.name()
    write(driver, database, name, "error")
    return name


def sqlite_table(driver: Driver) -> str:
    """The same, made without Spark: Spark 4.1 takes SQLite's answer that there is no table for an error."""
    name = driver.name()
    with closing(sqlite3.connect(driver.warehouse / "files.sqlite")) as connection:
        connection.executescript(f"CREATE TABLE {name} (a BIGINT, b TEXT); INSERT INTO {name} VALUES (0, '0')")
    return name


def events_of(driver: Driver, frame: DataFrame) -> list[Event]:
    """What is recorded of these rows when they are written into a path."""
    path = str(driver.warehouse / driver.name())
    return driver.events_of(lambda _: frame.write.parquet(path))


def where(each: Output) -> Any:
    return each.dataset


def sources(events: list[Event]) -> list[DatasetId | None]:
    found = the(Committed, events).inputs
    assert all(each.format is Format.JDBC and each.snapshot is None and each.version is None for each in found)
    assert not of(Gap, events)
    return [each.dataset for each in found]


def outputs(events: list[Event]) -> dict[Any, tuple[CommitKind, OverwriteScope]]:
    assert not of(Gap, events)
    return {where(each): (each.commit_kind, each.replaced) for each in the(Committed, events).outputs}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("mode", "truncate", "done"),
    [
        ("error", "false", MADE),
        ("append", "false", ADDED),
        ("overwrite", "false", REPLACED),
        ("overwrite", "true", REPLACED),
        ("ignore", "false", MADE),
    ],
)
def test_a_write(
    driver: Driver, database: Database, mode: str, truncate: str, done: tuple[CommitKind, OverwriteScope]
) -> None:
    name = driver.name() if mode in {"error", "ignore"} else table(driver, database)
    captured = driver.events_of(lambda _: write(driver, database, name, mode, truncate=truncate))
    assert outputs(captured) == {database.dataset(name): done}
    (sink,) = driver.lineage(the(Committed, captured)).outputs
    assert [column.name for column in sink.columns] == ["a", "b"]
    assert sink.format is Format.JDBC


def test_a_read(driver: Driver, database: Database) -> None:
    name = table(driver, database)
    frame = read(driver, database, dbtable=name).where("a > 0").select("b").limit(1)
    captured = events_of(driver, frame)
    assert sources(captured) == [database.dataset(name)]
    found = f"{database.dataset(name).name}"
    lineage = driver.lineage(the(Committed, captured))
    assert edges(lineage) == {f"b <- {found}.b", f"~FILTER {found}.a"}
    assert [column.name for column in lineage.inputs[0].columns] == ["a", "b"]


def test_a_table_of_sqlites(driver: Driver, sqlite: Database) -> None:
    name = sqlite_table(driver)
    assert sources(events_of(driver, read(driver, sqlite, dbtable=name))) == [sqlite.dataset(name)]


@pytest.mark.smoke
def test_ignoring_what_is_there_is_nothing(driver: Driver, derby: Database) -> None:
    name = table(driver, derby)
    assert not driver.events_of(lambda _: write(driver, derby, name, "ignore"))


def test_what_was_copied_is_made_from_its_table(driver: Driver, database: Database, derby: Database) -> None:
    name, other = table(driver, database), driver.name()
    frame = read(driver, database, dbtable=name)
    captured = driver.events_of(lambda _: frame.write.format("jdbc").options(**derby.options, dbtable=other).save())
    assert sources(captured) == [database.dataset(name)]
    assert the(Committed, captured).outputs[0].made_from == (0,)
    assert f"b <- {database.dataset(name).name}.b" in edges(driver.lineage(the(Committed, captured)))


@pytest.mark.smoke
def test_a_read_in_partitions_is_one_input(driver: Driver, derby: Database) -> None:
    name = table(driver, derby)
    pieces = {"partitionColumn": "A", "lowerBound": "0", "upperBound": "3", "numPartitions": "3"}
    captured = events_of(driver, read(driver, derby, dbtable=name, **pieces).groupBy("b").count())
    assert sources(captured) == [derby.dataset(name)]
    found = derby.dataset(name).name
    assert edges(driver.lineage(the(Committed, captured))) == {f"b <- {found}.b", f"~GROUP_BY {found}.b"}


def test_a_read_by_predicates_is_one_input(driver: Driver, derby: Database) -> None:
    name = table(driver, derby)
    properties = {key: text for key, text in derby.options.items() if key != "url"}
    frame = driver.spark.read.jdbc(derby.options["url"], name, predicates=['"a" = 0', '"a" = 1'], properties=properties)
    assert sources(events_of(driver, frame)) == [derby.dataset(name)]


def test_an_rdd_below_a_frame_shows_its_table(driver: Driver, derby: Database, sqlite: Database) -> None:
    """Only Spark's RDD of a database says where the rows are from: of a plan below `rdd` nothing else is left. A query
    of the database stays opaque, and a broadcast may hide more."""
    name, other = table(driver, derby), sqlite_table(driver)
    frame = read(driver, derby, dbtable=name).select("a")
    path = driver.warehouse / driver.name()

    saved = the(Committed, driver.events_of(lambda _: frame.rdd.map(str).saveAsTextFile(str(path))))
    both = frame.rdd.union(read(driver, sqlite, dbtable=other).select("a").rdd).map(lambda row: (str(row),))
    events = driver.events_of(lambda spark: spark.createDataFrame(both, "v STRING").write.json(f"{path}.json"))
    asked = read(driver, derby, query=f"SELECT * FROM {name}")
    queried = the(Committed, driver.events_of(lambda _: asked.rdd.map(str).saveAsTextFile(f"{path}.asked")))

    assert [(each.dataset, each.opaque) for each in saved.inputs] == [(derby.dataset(name), None), (None, "RDD")]
    found = {(each.dataset, each.opaque) for each in the(Committed, events).inputs}
    assert found == {(derby.dataset(name), None), (sqlite.dataset(other), None), (None, "LogicalRDD")}
    assert [(each.dataset, each.opaque) for each in queried.inputs] == [(None, "RDD")]
    assert not of(Gap, events)
    assert SECRET not in str(driver.bus.events)


def test_one_table_read_twice_is_one_input(driver: Driver, derby: Database) -> None:
    name = table(driver, derby)
    frame = read(driver, derby, dbtable=name).union(read(driver, derby, dbtable=f"app.{name}", fetchsize="10"))
    assert sources(events_of(driver, frame)) == [derby.dataset(name)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["query", "dbtable"])
@pytest.mark.smoke
def test_a_query_of_the_database_may_be_anything(driver: Driver, derby: Database, form: str) -> None:
    name = table(driver, derby)
    query = f"select * from {name} where '{SECRET}' <> '' and \"a\" > 0"
    captured = events_of(driver, read(driver, derby, **{form: query if form == "query" else f"({query}) q"}))
    assert sources(captured) == [None]
    (found,) = the(Committed, captured).inputs
    assert found.opaque is not None
    assert f"select * from {name} where" in found.opaque
    assert derby.namespace.partition("://")[2] in found.opaque


def test_two_queries_are_two_inputs(driver: Driver, derby: Database) -> None:
    one, other = table(driver, derby), table(driver, derby)
    frame = read(driver, derby, query=f"select * from {one}").union(read(driver, derby, query=f"select * from {other}"))
    assert sources(events_of(driver, frame)) == [None, None]


def test_a_name_in_quotes_keeps_its_case(driver: Driver, derby: Database) -> None:
    name = f"Mixed {driver.name()}"
    captured = driver.events_of(lambda _: write(driver, derby, f'"{name}"', "error"))
    quoted: Any = DatasetId(namespace=derby.namespace, name=f"APP.{name}")
    assert outputs(captured) == {quoted: MADE}
    assert sources(events_of(driver, read(driver, derby, dbtable=f'APP."{name}"'))) == [quoted]


@pytest.mark.long
def test_a_schema_that_is_only_assumed(driver: Driver, postgres_database: Database) -> None:
    name = table(driver, postgres_database)
    for dbtable, options in ((name, {"assumed": "schema public"}), (f"public.{name}", {})):
        captured = events_of(driver, read(driver, postgres_database, dbtable=dbtable))
        assert sources(captured) == [postgres_database.dataset(name)]
        lineage = driver.lineage(the(Committed, captured))
        assert dict(lineage.inputs[0].options) == {"driver": "org.postgresql.Driver", **options}


def test_a_schema_of_the_url(driver: Driver, postgres_database: Database) -> None:
    schema, name = driver.name(), driver.name()
    driver.run(f"CREATE NAMESPACE pg.{schema}")
    url = f"{postgres_database.options['url']}?currentSchema={schema}"
    captured = driver.events_of(lambda _: write(driver, postgres_database, name, "error", url=url))
    (dataset,) = outputs(captured)
    assert dataset is not None
    assert dataset.name.split(".")[1:] == [schema, name]


def test_a_database_in_memory_is_nowhere(driver: Driver, derby: Database) -> None:
    nowhere = {"url": "jdbc:derby:memory:nowhere;create=true"}
    captured = driver.events_of(lambda _: write(driver, derby, "app.t", "error", **nowhere))
    assert outputs(captured) == {None: MADE}
    assert the(Committed, captured).outputs[0].opaque


@pytest.mark.smoke
def test_a_table_in_sparks_catalog_is_that_of_the_database(driver: Driver, derby: Database) -> None:
    db, name = driver.database(), table(driver, derby)
    options = ", ".join(f"{key} '{text}'" for key, text in derby.options.items())
    made = the(CreateTable, driver.events_of(f"CREATE TABLE {db}.t USING jdbc OPTIONS ({options}, dbtable '{name}')"))
    assert (made.dataset, made.format) == (derby.dataset(name), Format.JDBC)
    assert made.table is not None
    assert set(made.table.properties) == {"option.url", "option.user", "option.dbtable"}
    captured = driver.events_of(f"INSERT INTO {db}.t SELECT 7, 'x'")
    assert outputs(captured) == {derby.dataset(name): ADDED}
    assert the(Committed, captured).outputs[0].table == TableName(catalog="spark_catalog", database=db, table="t")
    captured = events_of(driver, driver.spark.table(f"{db}.t"))
    assert sources(captured) == [derby.dataset(name)]
    assert the(Committed, captured).inputs[0].table == TableName(catalog="spark_catalog", database=db, table="t")
    assert outputs(driver.events_of(f"INSERT OVERWRITE {db}.t SELECT 7, 'x'")) == {derby.dataset(name): REPLACED}
    gone = the(DropTable, driver.events_of(f"DROP TABLE {db}.t"))
    assert gone.dataset == derby.dataset(name)


@pytest.mark.long
def test_a_table_in_sparks_catalog_is_altered_in_its_place(driver: Driver, derby: Database) -> None:
    db, name = driver.database(), table(driver, derby)
    options = ", ".join(f"{key} '{text}'" for key, text in derby.options.items())
    driver.run(f"CREATE TABLE {db}.t USING jdbc OPTIONS ({options}, dbtable '{name}')")
    captured = the(AlterTable, driver.events_of(f"ALTER TABLE {db}.t SET TBLPROPERTIES (p = '1')"))
    assert captured.dataset == derby.dataset(name)


@pytest.mark.long
def test_a_query_under_a_name_in_sparks_catalog(driver: Driver, derby: Database) -> None:
    db, name = driver.database(), table(driver, derby)
    options = ", ".join(f"{key} '{text}'" for key, text in derby.options.items())
    made = the(
        CreateTable,
        driver.events_of(f"CREATE TABLE {db}.t USING jdbc OPTIONS ({options}, query 'select * from {name}')"),
    )
    assert made.dataset is None
    (found,) = the(Committed, events_of(driver, driver.spark.table(f"{db}.t"))).inputs
    assert (found.dataset, found.opaque) == (None, None)
    assert found.table == TableName(catalog="spark_catalog", database=db, table="t")


@pytest.mark.smoke
def test_a_table_in_sparks_catalog_that_a_query_makes(driver: Driver, derby: Database) -> None:
    db, name = driver.database(), driver.name()
    options = ", ".join(f"{key} '{text}'" for key, text in derby.options.items())
    captured = driver.events_of(f"CREATE TABLE {db}.t USING jdbc OPTIONS ({options}, dbtable '{name}') AS {ROWS}")
    assert outputs(captured) == {derby.dataset(name): MADE}
    assert the(CreateTable, captured).dataset == derby.dataset(name)
    assert the(Committed, captured).outputs[0].table == TableName(catalog="spark_catalog", database=db, table="t")
    given = {**derby.options, "dbtable": name}
    for mode, done in (("append", ADDED), ("overwrite", MADE)):
        captured = driver.events_of(
            lambda spark, mode=mode: (  # type: ignore[misc]
                spark.sql(ROWS).write.format("jdbc").mode(mode).options(**given).saveAsTable(f"{db}.t")
            )
        )
        assert outputs(captured) == {derby.dataset(name): done}, mode


@pytest.mark.smoke
def test_a_temporary_view_is_the_table(driver: Driver, derby: Database) -> None:
    name, view = table(driver, derby), driver.name()
    options = ", ".join(f"{key} '{text}'" for key, text in derby.options.items())
    driver.run(f"CREATE TEMPORARY VIEW {view} USING jdbc OPTIONS ({options}, dbtable '{name}')")
    assert sources(events_of(driver, driver.spark.table(view))) == [derby.dataset(name)]
    assert outputs(driver.events_of(f"INSERT INTO {view} SELECT 7, 'x'")) == {derby.dataset(name): ADDED}


def test_a_view_over_a_table_of_a_database(driver: Driver, derby: Database) -> None:
    db, name = driver.database(), table(driver, derby)
    options = ", ".join(f"{key} '{text}'" for key, text in derby.options.items())
    driver.run(f"CREATE TABLE {db}.t USING jdbc OPTIONS ({options}, dbtable '{name}')")
    view = the(CreateView, driver.events_of(f"CREATE VIEW {db}.v AS SELECT a FROM {db}.t")).view
    assert [each.dataset for each in view.sources] == [derby.dataset(name)]


def test_rows_that_were_cached(driver: Driver, derby: Database) -> None:
    name = table(driver, derby)
    frame = read(driver, derby, dbtable=name).cache()
    assert sources(events_of(driver, frame)) == [derby.dataset(name)]
    frame.unpersist()


def test_options_that_may_be_reported(driver: Driver, postgres_database: Database) -> None:
    name = driver.name()
    captured = driver.events_of(
        lambda _: write(
            driver,
            postgres_database,
            f"public.{name}",
            "error",
            createTableColumnTypes="b VARCHAR(40)",
            batchsize="7",
            sessionInitStatement=f"SELECT '{SECRET}'",
            ApplicationName=SECRET,
        )
    )
    assert outputs(captured) == {postgres_database.dataset(name): MADE}
    assert dict(driver.lineage(the(Committed, captured)).outputs[0].options) == {
        "createtablecolumntypes": "b VARCHAR(40)",
        "batchsize": "7",
        "driver": "org.postgresql.Driver",
    }


@pytest.mark.smoke
def test_a_write_that_fails_midway(driver: Driver, derby: Database) -> None:
    name = table(driver, derby)
    query = "SELECT id AS a, if(id = 2, string(raise_error('no')), 'x') AS b FROM range(3)"
    options = {**derby.options, "dbtable": name}
    captured = driver.events_of_failure(
        lambda spark: spark.sql(query).write.format("jdbc").mode("append").options(**options).save()
    )
    failed = the(StatementFailed, captured)
    assert [each.dataset for each in failed.outputs] == [derby.dataset(name)]
    assert not of(Committed, captured)


def test_a_server_that_isnt_there(driver: Driver, postgres_database: Database) -> None:
    options = {**postgres_database.options, "url": f"jdbc:postgresql://u:{SECRET}@127.0.0.1:1/d?password={SECRET}"}
    nowhere = Database(options, f"postgres://{HOST}:1", "d.public.")
    captured = driver.events_of_failure(lambda _: write(driver, nowhere, "t", "append"))
    assert [each.dataset for each in the(StatementFailed, captured).outputs] == [nowhere.dataset("t")]


@pytest.mark.sample(1)
@pytest.mark.smoke
@pytest.mark.parametrize("catalog", ["pg", "my"])
def test_tables_of_a_catalog(
    driver: Driver, catalog: str, postgres_database: Database, mariadb_database: Database
) -> None:
    database = postgres_database if catalog == "pg" else mariadb_database
    schema = "public" if catalog == "pg" else database.prefix.rstrip(".")
    name = driver.name()
    full, dataset = f"{catalog}.{schema}.{name}", database.dataset(name)
    made = the(CreateTable, driver.events_of(f"CREATE TABLE {full} (a BIGINT, b STRING)"))
    assert (made.dataset, made.format, made.context.factory) == (dataset, Format.JDBC, "jdbc")
    assert made.identifier == TableName(catalog=catalog, database=schema, table=name)
    captured = driver.events_of(f"INSERT INTO {full} {ROWS}")
    assert outputs(captured) == {dataset: ADDED}
    assert the(Committed, captured).outputs[0].format is Format.JDBC
    assert outputs(driver.events_of(f"INSERT OVERWRITE {full} {ROWS}")) == {dataset: REPLACED}
    assert outputs(driver.events_of(lambda spark: spark.sql(ROWS).writeTo(full).append())) == {dataset: ADDED}
    copied = driver.events_of(f"CREATE TABLE {full}_copy AS SELECT b, a FROM {full} WHERE a > 0")
    assert outputs(copied) == {database.dataset(f"{name}_copy"): MADE}
    assert sources(copied) == [dataset]
    assert edges(driver.lineage(the(Committed, copied))) == {f"a <- {name}.a", f"b <- {name}.b", f"~FILTER {name}.a"}
    assert the(CreateTable, copied).dataset == database.dataset(f"{name}_copy")


@pytest.mark.spark3  # Spark 4.1 takes SQLite's answer that there is no table for an error
def test_a_catalog_without_schemas(driver: Driver, sqlite: Database) -> None:
    """SQLite knows none: the namespace of its tables has no parts."""
    for key, text in {"": CATALOG, **{f".{key}": text for key, text in sqlite.options.items()}}.items():
        driver.spark.conf.set(f"spark.sql.catalog.lite{key}", text)
    name = driver.name()
    identifier = TableName(catalog="lite", database="", table=name)
    made = the(CreateTable, driver.events_of(f"CREATE TABLE lite.{name} (a INT)"))
    assert (made.identifier, made.dataset) == (identifier, sqlite.dataset(name))
    assert outputs(driver.events_of(f"INSERT INTO lite.{name} SELECT 1")) == {sqlite.dataset(name): ADDED}
    captured = events_of(driver, driver.spark.table(f"lite.{name}"))
    assert sources(captured) == [sqlite.dataset(name)]
    assert the(Committed, captured).inputs[0].table == identifier
    gone = the(DropTable, driver.events_of(f"DROP TABLE lite.{name}"))
    assert (gone.identifier, gone.dataset) == (identifier, sqlite.dataset(name))


@pytest.mark.smoke
def test_what_is_pushed_down_to_the_database(driver: Driver, postgres_database: Database) -> None:
    name = table(driver, postgres_database)
    driver.spark.conf.set("spark.sql.catalog.pg.pushDownAggregate", "true")
    frame = driver.spark.sql(f"SELECT b, max(a) AS most FROM pg.public.{name} WHERE a < 2 GROUP BY b LIMIT 1")
    captured = events_of(driver, frame)
    assert sources(captured) == [postgres_database.dataset(name)]
    assert edges(driver.lineage(the(Committed, captured))) == {
        f"b <- {name}.b",
        f"most <- AGGREGATION {name}.a",
        f"~GROUP_BY {name}.b",
        f"~FILTER {name}.a",
    }


def test_a_catalog_and_a_url_tell_one_dataset(driver: Driver, postgres_database: Database) -> None:
    name = table(driver, postgres_database)
    by_url = read(driver, postgres_database, dbtable=name)
    captured = events_of(driver, by_url.union(driver.spark.table(f"pg.public.{name}")))
    assert set(sources(captured)) == {postgres_database.dataset(name)}


def test_a_table_of_a_catalog_is_altered(driver: Driver, postgres_database: Database) -> None:
    name = table(driver, postgres_database)
    for change in ("ADD COLUMN c INT", "RENAME COLUMN c TO d", "ALTER COLUMN d TYPE BIGINT", "DROP COLUMN d"):
        captured = the(AlterTable, driver.events_of(f"ALTER TABLE pg.public.{name} {change}"))
        assert captured.dataset == postgres_database.dataset(name), change
        assert captured.format is Format.JDBC, change
    assert [column.name for column in driver.spark.table(f"pg.public.{name}").schema] == ["a", "b"]


def test_a_table_of_a_catalog_is_renamed_and_dropped(driver: Driver, postgres_database: Database) -> None:
    name = table(driver, postgres_database)
    moved = the(AlterTable, driver.events_of(f"ALTER TABLE pg.public.{name} RENAME TO public.{name}_new"))
    (change,) = moved.changes
    assert moved.dataset == postgres_database.dataset(name)
    assert getattr(change, "dataset", None) == postgres_database.dataset(f"{name}_new")
    gone = the(DropTable, driver.events_of(f"DROP TABLE pg.public.{name}_new"))
    assert gone.dataset == postgres_database.dataset(f"{name}_new")


def test_no_secret_was_reported_by_any_case(
    driver: Driver, derby: Database, postgres_database: Database, mariadb_database: Database
) -> None:
    table(driver, derby)
    hidden = {SECRET, postgres_database.options["password"], mariadb_database.options["password"]}
    texts = [event.model_dump_json() for event in driver.bus.events]
    assert texts
    assert not [text for text in texts for secret in hidden if secret in text or json.dumps(secret)[1:-1] in text]
