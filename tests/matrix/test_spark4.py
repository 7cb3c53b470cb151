"""What only Spark 4 has: types, syntax, functions and scripts of its own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headwater.events import AlterTable, Committed, CreateTable, CreateView, Gap, StatementFailed, TableName
from headwater.events.changes import RecommentColumn
from tests.kit.spark.driver import PLAIN, Driver, driver_fixture, edges, of, the
from tests.kit.spark.versions import MAJOR, MINOR
from tests.kit.spark_messages import mask_all_messages

pytestmark = [pytest.mark.spark4, pytest.mark.smoke]


driver = driver_fixture(PLAIN, spark__sql__scripting__enabled="true")


@pytest.fixture(scope="module")
def db(driver: Driver) -> str:
    """`p(id, s)` and `q(id, s)` of Parquet with a row each, and functions over them."""
    db = driver.database()
    driver.run(
        f"CREATE TABLE {db}.p USING parquet AS SELECT 1 AS id, 'a' AS s",
        f"CREATE TABLE {db}.q (id INT, s STRING) USING parquet",
        f"CREATE FUNCTION {db}.twice(x INT) RETURNS INT RETURN x * 2",
        f"CREATE FUNCTION {db}.named(x INT) RETURNS STRING RETURN (SELECT max(p.s) FROM {db}.p p WHERE p.id = x)",
        f"CREATE TEMPORARY FUNCTION above(x INT) RETURNS TABLE(n INT, t STRING) RETURN SELECT id + x, s FROM {db}.p",
        "DECLARE VARIABLE n INT DEFAULT 5",
    )
    return db


@dataclass(frozen=True)
class Write:
    """A query that is written into q(id, s), and its columns' lineage."""

    name: str
    query: str
    columns: frozenset[str]
    by_name: bool = False


def write(name: str, query: str, *columns: str, by_name: bool = False) -> Write:
    return Write(name, query, frozenset(columns), by_name)


PLAIN_COLUMNS = ("id <- p.id", "s <- p.s")
WRITES = (
    write("by name", "SELECT s, id FROM {db}.p", *PLAIN_COLUMNS, by_name=True),
    write("pipes", "FROM {db}.p |> WHERE id > 0 |> SELECT id, s", *PLAIN_COLUMNS, "~FILTER p.id"),
    write(
        "pipes that extend",
        "FROM {db}.p |> EXTEND id + 1 AS n |> SET s = upper(s) |> SELECT n, s",
        "id <- TRANSFORMATION p.id",
        "s <- TRANSFORMATION p.s",
    ),
    write(
        "pipes that aggregate",
        "FROM {db}.p |> AGGREGATE max(id) AS id GROUP BY s |> SELECT id, s |> ORDER BY id |> LIMIT 3",
        "id <- AGGREGATION p.id",
        "s <- p.s",
        "~GROUP_BY p.s",
        "~SORT p.id",
    ),
    write("a function", "SELECT {db}.twice(id), s FROM {db}.p", "id <- TRANSFORMATION p.id", "s <- p.s"),
    write(
        "a function that asks a table",
        "SELECT id, {db}.named(id) FROM {db}.p",
        "id <- p.id",
        "s <- AGGREGATION p.s",
        "s <- CONDITIONAL p.id",
    ),
    write("a table function", "SELECT * FROM above(3)", "id <- TRANSFORMATION p.id", "s <- p.s"),
    write(
        "a table function of each row",
        "SELECT f.n, p.s FROM {db}.p p, LATERAL above(p.id) f",
        "id <- TRANSFORMATION p.id",
        "s <- p.s",
    ),
    write("a variable", "SELECT id + n, s FROM {db}.p", "id <- TRANSFORMATION p.id", "s <- p.s"),
    write(
        "a variant",
        "SELECT variant_get(try_parse_json(s), '$.a', 'int'), s FROM {db}.p",
        "id <- TRANSFORMATION p.s",
        "s <- p.s",
    ),
    write("a collation", "SELECT id, s COLLATE UTF8_LCASE FROM {db}.p", "id <- p.id", "s <- TRANSFORMATION p.s"),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", WRITES, ids=lambda case: case.name)
def test_columns(driver: Driver, db: str, case: Write) -> None:
    events = driver.events_of(f"INSERT INTO {db}.q {'BY NAME ' if case.by_name else ''}{case.query.format(db=db)}")
    committed = the(Committed, events)
    assert {each.table for each in committed.inputs} == {TableName(catalog="spark_catalog", database=db, table="p")}
    assert edges(driver.lineage(committed)) == case.columns
    assert not of(Gap, events)


def test_a_recursive_query_reads_its_tables_and_nothing_else(driver: Driver, db: str) -> None:
    """The reference to itself isn't a source. Its columns aren't followed, which is a Gap."""
    if (MAJOR, MINOR) < (4, 1):  # Spark 4.0 has no recursion
        return
    events = driver.events_of(
        f"INSERT INTO {db}.q WITH RECURSIVE r AS "
        f"(SELECT id, s FROM {db}.p UNION ALL SELECT id + 1, s FROM r WHERE id < 3) SELECT * FROM r"
    )
    (read,) = the(Committed, events).inputs
    assert read.table == TableName(catalog="spark_catalog", database=db, table="p")
    assert [gap.detail for gap in of(Gap, events)] == ["columns can't be followed through UnionLoop"]


def test_types_that_are_new(driver: Driver, db: str) -> None:
    events = driver.events_of(
        f"CREATE TABLE {db}.v (v VARIANT, c STRING COLLATE UTF8_LCASE, a ARRAY<STRING COLLATE UNICODE>) USING parquet"
    )
    made = the(CreateTable, events)
    assert made.table is not None
    assert [column.type for column in made.table.columns] == [
        '"variant"',
        '"string collate UTF8_LCASE"',
        '{"type":"array","elementType":"string collate UNICODE","containsNull":true}',
    ]
    committed = the(Committed, driver.events_of(f"INSERT INTO {db}.v SELECT parse_json('1'), s, array(s) FROM {db}.p"))
    sink = driver.lineage(committed).outputs[0]
    assert sink.columns == made.table.columns


def test_a_variable_is_nobodys_lineage(driver: Driver, db: str) -> None:
    assert not driver.events_of("SET VAR n = 7", f"SET VAR n = (SELECT max(id) FROM {db}.p)")


def test_a_statement_that_a_statement_runs(driver: Driver, db: str) -> None:
    events = driver.events_of(f"EXECUTE IMMEDIATE 'INSERT INTO {db}.q SELECT id, s FROM {db}.p WHERE id = ?' USING 1")
    assert edges(driver.lineage(the(Committed, events))) == {*PLAIN_COLUMNS, "~FILTER p.id"}


def test_a_script_is_reported_statement_by_statement(driver: Driver, db: str) -> None:
    script = f"""
        BEGIN
          DECLARE x INT DEFAULT 0;
          DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO {db}.q VALUES (0, 'handled'); END;
          WHILE x < 2 DO
            INSERT INTO {db}.q SELECT x, s FROM {db}.p;
            SET x = x + 1;
          END WHILE;
          INSERT INTO {db}.q SELECT raise_error('x'), s FROM {db}.p;
        END"""
    events = driver.events_of(script)
    assert [each.kind for each in events if isinstance(each, Committed | StatementFailed)] == [
        "Committed",
        "Committed",
        "StatementFailed",
        "Committed",
    ]


def test_a_view_that_follows_its_tables(driver: Driver, db: str) -> None:
    driver.run(f"CREATE TABLE {db}.grows USING parquet AS SELECT 1 AS id")
    made = the(
        CreateView, driver.events_of(f"CREATE VIEW {db}.follows WITH SCHEMA EVOLUTION AS SELECT * FROM {db}.grows")
    )
    assert [column.name for column in made.view.columns] == ["id"]
    driver.run(f"ALTER TABLE {db}.grows ADD COLUMN s STRING")
    events = driver.events_of(f"INSERT INTO {db}.q SELECT * FROM {db}.follows")
    assert edges(driver.lineage(the(Committed, events))) == {"id <- grows.id", "s <- grows.s"}


# Statements that analysis refuses


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("statement", "written", "read"),
    [
        ("INSERT INTO {db}.q SELECT nothing FROM {db}.p", "q", "p"),
        ("INSERT INTO {db}.nowhere SELECT id FROM {db}.p", None, "p"),
        ("INSERT INTO {db}.q SELECT id FROM {db}.p", None, None),
        ("CREATE TABLE {db}.z USING parquet AS SELECT nothing FROM {db}.p", None, "p"),
    ],
)
def test_a_write_that_analysis_refuses_is_reported_once(
    driver: Driver, db: str, statement: str, written: str | None, read: str | None
) -> None:
    """With what was resolved by then, as far as the error shows it."""
    events = driver.events_of_failure(statement.format(db=db))
    failed = the(StatementFailed, events)
    assert len(events) == 1
    assert failed.error.condition is not None
    names = {name: (TableName(catalog="spark_catalog", database=db, table=name),) for name in ("p", "q")}
    assert tuple(each.table for each in failed.outputs) == names.get(written or "", ())
    assert tuple(each.table for each in failed.inputs) == names.get(read or "", ())


def test_a_query_that_analysis_refuses_is_nothing(driver: Driver, db: str) -> None:
    assert not driver.events_of_failure(f"SELECT nothing FROM {db}.p")


@pytest.mark.since(4, 3)
@pytest.mark.parametrize(
    ("said", "comments"),
    [
        ("id IS 'one', s IS 'two'", {("id",): "one", ("s",): "two"}),
        ("id IS NULL, s IS 'two'", {("id",): None, ("s",): "two"}),
    ],
)
def test_comments_of_several_columns_at_once(
    driver: Driver, db: str, said: str, comments: dict[tuple[str, ...], str | None]
) -> None:
    """A command of its own; of one column the test of tables in a catalog looks."""
    driver.run(f"CREATE TABLE {(table := f'{db}.{driver.name()}')} (id INT COMMENT 'old', s STRING) USING parquet")
    events = driver.events_of(f"COMMENT ON TABLE {table} COLUMN ({said})")
    changes = {each.path: each.comment for each in the(AlterTable, events).changes if isinstance(each, RecommentColumn)}
    described = driver.spark.sql(f"DESCRIBE {table}").collect()
    assert changes == {(row.col_name,): row.comment for row in described} == comments
    assert not of(Gap, events)


def test_no_value_comes_through_any_message_of_spark_4() -> None:
    """Half of the conditions are new in Spark 4, and more of them quote names and plans."""
    found = mask_all_messages()
    assert found.leaks == []
    assert found.lost == []
    assert len(found.hidden) < 20
    assert found.count > 6_000
