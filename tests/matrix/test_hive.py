"""Tables of a Hive metastore (Derby, in the driver): what is recorded of reading, writing, loading and describing them.

The truth is by hand: which statement puts which rows where. Locations are what the metastore says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from headwater.events import Committed, CreateTable, CreateView, DatasetId, Event, Format, Gap, Input, TableName
from headwater.events.identity.catalogs import Catalog, session_catalog
from headwater.events.jobs import CommitKind as K
from headwater.events.jobs import OverwriteScope as X
from headwater.listeners.capture.driver_listener import exclude_from_capture
from headwater.listeners.installation.factories import read_environment
from tests.kit.cases.catalog_lines import lines
from tests.kit.spark.driver import HOST, PLAIN, Driver, Extensions, driver_fixture, edges, of, the

pytestmark = [pytest.mark.sample(4)]

HIVE = Extensions(
    (),
    {
        **PLAIN.conf,
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={warehouse}/metastore_db;create=true",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.sql.extensions": "",
    },
)
S = "CREATE TABLE s (id INT, v STRING) STORED AS TEXTFILE"
T = "CREATE TABLE t (id INT, v STRING) STORED AS TEXTFILE"
O = "CREATE TABLE o (id INT, v STRING) STORED AS ORC"  # noqa: E741 - ORC
Q = "CREATE TABLE q (id INT, v STRING) STORED AS PARQUET"
P = "CREATE TABLE p (id INT, v STRING) PARTITIONED BY (d STRING, h INT) STORED AS TEXTFILE"
PQ = "CREATE TABLE pq (id INT, v STRING) PARTITIONED BY (d STRING) STORED AS PARQUET"
ROWS = "INSERT INTO s VALUES (1, 'a'), (2, 'b')"


driver = driver_fixture(HIVE)


@dataclass(frozen=True)
class Place:
    driver: Driver
    db: str

    def dataset(self, table: str) -> DatasetId:
        path = self.driver.warehouse / "spark" / f"{self.db}.db" / table
        return DatasetId(namespace=f"file://{HOST}", name=str(path))

    def table(self, name: str) -> TableName:
        return TableName(catalog="spark_catalog", database=self.db, table=name)


@pytest.fixture
def place(driver: Driver) -> Place:
    db = driver.database()
    driver.run(f"USE {db}")
    return Place(driver, db)


@dataclass(frozen=True)
class Write:
    given: tuple[str, ...]
    statement: str
    table: str
    kind: K
    replaced: X
    columns: set[str]
    inputs: tuple[str, ...] = ("s",)
    rows: int | None = 2
    format: Format = Format.HIVE


BOTH = {"id <- s.id", "v <- s.v"}
WRITES: dict[str, Write] = {
    "into text": Write((S, ROWS, T), "INSERT INTO t SELECT * FROM s", "t", K.APPEND, X.NOTHING, BOTH),
    "over text": Write((S, ROWS, T), "INSERT OVERWRITE t SELECT id, v FROM s", "t", K.OVERWRITE, X.ALL, BOTH),
    "into orc": Write((S, ROWS, O), "INSERT INTO o SELECT * FROM s", "o", K.APPEND, X.NOTHING, BOTH),
    "into parquet": Write((S, ROWS, Q), "INSERT INTO q SELECT * FROM s", "q", K.APPEND, X.NOTHING, BOTH),
    "over parquet": Write((S, ROWS, Q), "INSERT OVERWRITE q SELECT * FROM s", "q", K.OVERWRITE, X.ALL, BOTH),
    "into a partition": Write(
        (S, ROWS, P), "INSERT INTO p PARTITION (d='x', h=1) SELECT * FROM s", "p", K.APPEND, X.NOTHING, BOTH
    ),
    "over a partition": Write(
        (S, ROWS, P), "INSERT OVERWRITE p PARTITION (d='x', h=1) SELECT * FROM s", "p", K.OVERWRITE, X.PART, BOTH
    ),
    "into partitions as they come": Write(
        (S, ROWS, P),
        "INSERT INTO p PARTITION (d, h) SELECT id, v, v, id FROM s",
        "p",
        K.APPEND,
        X.NOTHING,
        {*BOTH, "d <- s.v", "h <- s.id"},
    ),
    "over partitions, one of them given": Write(
        (S, ROWS, P),
        "INSERT OVERWRITE p PARTITION (d='x', h) SELECT id, v, id FROM s",
        "p",
        K.OVERWRITE,
        X.PART,
        {*BOTH, "h <- s.id"},
    ),
    "parquet over a partition": Write(
        (S, ROWS, PQ), "INSERT OVERWRITE pq PARTITION (d='x') SELECT * FROM s", "pq", K.OVERWRITE, X.PART, BOTH
    ),
    "parquet over partitions as they come": Write(
        (S, ROWS, PQ),
        "INSERT OVERWRITE pq PARTITION (d) SELECT id, v, v FROM s",
        "pq",
        K.OVERWRITE,
        X.PART,
        {*BOTH, "d <- s.v"},
    ),
    "out of a partition": Write(
        (P, "INSERT INTO p PARTITION (d='x', h=1) VALUES (1, 'a')", T),
        "INSERT INTO t SELECT h, d FROM p WHERE d = 'x'",
        "t",
        K.APPEND,
        X.NOTHING,
        {"id <- p.h", "v <- p.d", "~FILTER p.d"},
        ("p",),
        1,
    ),
    "out of parquet": Write(
        (Q, "INSERT INTO q VALUES (1, 'a')", T),
        "INSERT INTO t SELECT * FROM q",
        "t",
        K.APPEND,
        X.NOTHING,
        {"id <- q.id", "v <- q.v"},
        ("q",),
        1,
    ),
    "out of a view": Write(
        (S, ROWS, "CREATE VIEW w AS SELECT id AS k, upper(v) AS u FROM s WHERE id > 0", T),
        "INSERT INTO t SELECT k, u FROM w",
        "t",
        K.APPEND,
        X.NOTHING,
        {"id <- s.id", "v <- TRANSFORMATION s.v", "~FILTER s.id"},
    ),
    "through a shuffle": Write(
        (S, ROWS, T),
        "INSERT INTO t SELECT id, max(v) FROM s GROUP BY id",
        "t",
        K.APPEND,
        X.NOTHING,
        {"id <- s.id", "v <- AGGREGATION s.v", "~GROUP_BY s.id"},
    ),
    "as select, text": Write(
        (S, ROWS), "CREATE TABLE c STORED AS TEXTFILE AS SELECT * FROM s", "c", K.CREATE, X.ALL, BOTH
    ),
    "as select, orc": Write((S, ROWS), "CREATE TABLE c STORED AS ORC AS SELECT * FROM s", "c", K.CREATE, X.ALL, BOTH),
}


def test_derbys_home_is_the_jvms(place: Place) -> None:
    """A metastore by a relative name is there, and not where the driver was started: two were one, or one was two."""
    context = place.driver.spark.sparkContext
    configuration = {key: value for key, value in context.getConf().getAll() if "ConnectionURL" not in key}
    environment = read_environment(context, configuration, {})
    metastore = session_catalog("spark_catalog", {}, replace(environment, metastore_database=None))
    assert isinstance(metastore, Catalog)
    assert metastore.id.location == f"derby://{HOST}{place.driver.warehouse}/metastore_db"


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", WRITES)
def test_write(place: Place, name: str) -> None:
    case = WRITES[name]
    place.driver.run(*case.given)

    events = place.driver.events_of(case.statement)

    committed = the(Committed, events)
    (output,) = committed.outputs
    assert (output.dataset, output.table) == (place.dataset(case.table), place.table(case.table))
    assert (output.commit_kind, output.replaced, output.rows) == (case.kind, case.replaced, case.rows)
    assert (output.snapshot, output.format) == (None, case.format)
    assert [(each.dataset, each.table) for each in committed.inputs] == [
        (place.dataset(each), place.table(each)) for each in case.inputs
    ]
    assert output.made_from == tuple(range(len(case.inputs)))
    assert edges(place.driver.lineage(committed)) == case.columns
    assert not of(Gap, events)


def test_a_directory_that_rows_are_written_into(place: Place) -> None:
    directory = place.driver.warehouse / place.driver.name()
    place.driver.run(S, ROWS)

    events = place.driver.events_of(f"INSERT OVERWRITE DIRECTORY '{directory}' STORED AS TEXTFILE SELECT * FROM s")

    assert list(directory.iterdir())
    (output,) = the(Committed, events).outputs
    assert output.dataset == DatasetId(namespace=f"file://{HOST}", name=str(directory))
    assert (output.commit_kind, output.replaced, output.format) == (K.OVERWRITE, X.ALL, Format.HIVE)
    assert inputs(events) == [place.dataset("s")]
    assert not of(Gap, events)


def inputs(events: list[Event]) -> list[DatasetId | None]:
    found: tuple[Input, ...] = the(Committed, events).inputs
    return [each.dataset for each in found]


@pytest.mark.long
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("statement", "kind", "replaced"),
    [
        ("LOAD DATA INPATH '{}' INTO TABLE t", K.APPEND, X.NOTHING),
        ("LOAD DATA LOCAL INPATH '{}' OVERWRITE INTO TABLE t", K.OVERWRITE, X.ALL),
        ("LOAD DATA LOCAL INPATH '{}' OVERWRITE INTO TABLE p PARTITION (d='x', h=1)", K.OVERWRITE, X.PART),
    ],
)
def test_files_that_are_loaded(place: Place, statement: str, kind: K, replaced: X) -> None:
    file = place.driver.warehouse / place.driver.name() / "rows.txt"
    file.parent.mkdir()
    file.write_text("1\x01a\n")
    place.driver.run(T, P)

    events = place.driver.events_of(statement.format(file))

    name = "p" if " p " in statement else "t"
    assert place.driver.rows(f"SELECT id, v FROM {name}") == [(1, "a")]
    (output,) = the(Committed, events).outputs
    assert (output.dataset, output.table) == (place.dataset(name), place.table(name))
    assert (output.commit_kind, output.replaced, output.made_from) == (kind, replaced, (0,))
    assert inputs(events) == [DatasetId(namespace=f"file://{HOST}", name=str(file))]
    assert not of(Gap, events)


DDL: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "create": ((), T, ("+ t (id int, v string; hive; MANAGED; option.serialization.format=1)",)),
    "create, partitioned": (
        (),
        PQ,
        ("+ pq (id int, v string, d string; by d; hive; MANAGED; option.serialization.format=1)",),
    ),
    "if not exists, there": ((T,), "CREATE TABLE IF NOT EXISTS t (id INT) STORED AS ORC", ()),
    "if not exists, new": (
        (),
        "CREATE TABLE IF NOT EXISTS t (id INT) STORED AS ORC",
        ("+ t (id int; hive; MANAGED; option.serialization.format=1) if not exists",),
    ),
    "like": ((T,), "CREATE TABLE l LIKE t", ("+ l (id int, v string; hive; MANAGED; option.serialization.format=1)",)),
    "add a column": ((T,), "ALTER TABLE t ADD COLUMNS (n INT)", ("t: add n int",)),
    "add a partition": ((P,), "ALTER TABLE p ADD PARTITION (d='x', h=1)", ("p: + d=x/h=1",)),
    "drop a partition": (
        (P, "ALTER TABLE p ADD PARTITION (d='x', h=1)"),
        "ALTER TABLE p DROP PARTITION (d='x', h=1)",
        ("p: - d=x/h=1",),
    ),
    "rename": ((T,), "ALTER TABLE t RENAME TO u", ("t: to u moved",)),
    "drop": ((T,), "DROP TABLE t", ("- t known",)),
    "drop if exists, not there": ((), "DROP TABLE IF EXISTS t", ()),
    "truncate": ((T,), "TRUNCATE TABLE t", ("truncate t",)),
    "database": ((), "CREATE DATABASE {db}_more COMMENT 'c'", ("+ database {db}_more ('c'; at {db}_more.db)",)),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", DDL)
def test_ddl(place: Place, name: str) -> None:
    given, statement, expected = DDL[name]
    place.driver.run(*given)
    events = place.driver.events_of(statement.replace("{db}", place.db))
    assert tuple(lines(events)) == tuple(each.replace("{db}", place.db) for each in expected)
    assert not of(Gap, events)


def test_the_metastore_is_asked_once_about_a_statement(place: Place) -> None:
    """Its client answers one at a time: each question of ours is one that the job's own wait for."""
    inside: Any = place.driver.spark
    calls = inside._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics.METRIC_HIVE_CLIENT_CALLS()
    place.driver.run(P, P.replace("TABLE p", "TABLE other"))

    def asked(statement: str) -> int:
        before: int = calls.getCount()
        place.driver.events_of(statement)
        return int(calls.getCount()) - before

    for statement in (
        "ALTER TABLE {} ADD COLUMNS (n INT)",
        "ALTER TABLE {} ADD PARTITION (d='x', h=1)",
        "ALTER TABLE {0} RENAME TO {0}_moved",
    ):
        exclude_from_capture(inside.sparkContext)
        try:
            own = asked(statement.format("other"))
        finally:
            inside.sparkContext.clearJobTags()
        assert own > 0
        assert asked(statement.format("p")) - own <= 1, statement


def test_partitions_that_are_found(place: Place) -> None:
    place.driver.run(P, "INSERT INTO p PARTITION (d='x', h=1) VALUES (1, 'a')")
    lost = place.driver.warehouse / "spark" / f"{place.db}.db" / "p" / "d=y" / "h=2"
    lost.mkdir(parents=True)

    events = place.driver.events_of("MSCK REPAIR TABLE p")

    assert len(place.driver.rows("SHOW PARTITIONS p")) == 2
    assert [line.partition(":")[0] for line in lines(events)] == ["p"]
    assert not of(Gap, events)


def test_a_table_that_is_made_with_rows_is_where_the_metastore_put_it(place: Place) -> None:
    place.driver.run(S, ROWS)
    events = place.driver.events_of("CREATE TABLE c STORED AS ORC AS SELECT id FROM s")
    created = the(CreateTable, events)
    assert (created.identifier, created.dataset, created.as_select) == (place.table("c"), place.dataset("c"), True)


def test_a_view_over_tables_of_hive(place: Place) -> None:
    place.driver.run(S, Q)
    created = the(CreateView, place.driver.events_of("CREATE VIEW w AS SELECT s.id, q.v FROM s JOIN q ON s.id = q.id"))
    assert created.dataset == DatasetId(
        namespace=f"derby://{HOST}{place.driver.warehouse}/metastore_db", name=f"{place.db}.w"
    )
    assert sorted(str(each.table) for each in created.view.sources) == [f"spark_catalog.{place.db}.{n}" for n in "qs"]
