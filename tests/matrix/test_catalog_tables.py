"""DDL of tables in Spark's own catalog: what is recorded of each statement, beside the statement.

Of every table that is reported, Spark is asked as well: the old one before the statement, the new one after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headwater.events import AlterTable, Committed, CreateTable, DatasetId, DropTable, Event, Gap
from tests.kit.cases.catalog_lines import REDACTED, Shown, agrees, lines, shown, with_nobody_looking
from tests.kit.spark.driver import HOST, PLAIN, Driver, of, shared_driver_fixture, smoking, the

pytestmark = pytest.mark.xdist_group("spark-plain")

A = "CREATE TABLE a (id INT, s STRING) USING parquet"
"""A plain table; P is partitioned, N has a struct and a default."""
P = "CREATE TABLE p (id INT, s STRING, d DATE, r STRING) USING parquet PARTITIONED BY (d, r)"


@dataclass(frozen=True)
class Case:
    id: str
    statement: str
    truth: tuple[str, ...]
    before: tuple[str, ...] = ()


def case(id_: str, statement: str, *truth: str, before: tuple[str, ...] = ()) -> Case:
    return Case(id_, statement, truth, before)


CREATE = [
    case("parquet", "CREATE TABLE t (id INT) USING parquet", "+ t (id int; parquet; MANAGED)"),
    case("orc", "CREATE TABLE t (id INT) USING orc", "+ t (id int; orc; MANAGED)"),
    case("csv", "CREATE TABLE t (id INT) USING csv", "+ t (id int; csv; MANAGED)"),
    case("json", "CREATE TABLE t (id INT) USING json", "+ t (id int; json; MANAGED)"),
    case("text", "CREATE TABLE t (line STRING) USING text", "+ t (line string; text; MANAGED)"),
    case("external", "CREATE TABLE t (id INT) USING orc LOCATION '{w}/{db}_t'", "+ t (id int; orc; EXTERNAL)"),
    case(
        "options",
        "CREATE TABLE t (id INT) USING csv OPTIONS (sep '|', password 'hunter2')",
        "+ t (id int; csv; MANAGED; option.password={secret}; option.sep=|)",
    ),
    case(
        "all that a table has",
        "CREATE TABLE t (id INT COMMENT 'the key', s STRING, d DATE) USING parquet PARTITIONED BY (d) "
        "COMMENT 'a table' TBLPROPERTIES (k='v', l='w')",
        "+ t (id int 'the key', s string, d date; by d; parquet; MANAGED; k=v; l=w; 'a table')",
    ),
    case(
        "partition columns come last",
        "CREATE TABLE t (d DATE, id INT, r STRING) USING parquet PARTITIONED BY (r, d)",
        "+ t (id int, r string, d date; by r, d; parquet; MANAGED)",
    ),
    case(
        "buckets",
        "CREATE TABLE t (id INT, s STRING) USING parquet CLUSTERED BY (id) SORTED BY (s) INTO 4 BUCKETS",
        "+ t (id int, s string; by bucket(4, id); sorted by s; parquet; MANAGED)",
    ),
    case(
        "nested types",
        "CREATE TABLE t (st STRUCT<x: INT, y: STRING>, a ARRAY<STRUCT<q: INT>>, m MAP<STRING, DECIMAL(10,2)>) "
        "USING parquet",
        "+ t (st struct<x:int,y:string>, a array<struct<q:int>>, m map<string,decimal(10,2)>; parquet; MANAGED)",
    ),
    case(
        "char and varchar",
        "CREATE TABLE t (c CHAR(3), v VARCHAR(9)) USING parquet",
        "+ t (c char(3), v varchar(9); parquet; MANAGED)",
    ),
    case(
        "defaults",
        "CREATE TABLE t (id INT, s STRING DEFAULT 'x', n INT DEFAULT 1 + 1) USING parquet",
        "+ t (id int, s string ='x', n int =1 + 1; parquet; MANAGED)",
    ),
    case("names", "CREATE TABLE `t` (`a b` INT, `ü.x` INT) USING parquet", "+ t (a b int, ü.x int; parquet; MANAGED)"),
    case(
        "not null isn't kept by Spark's own catalog",
        "CREATE TABLE t (id INT NOT NULL) USING parquet",
        "+ t (id int; parquet; MANAGED)",
    ),
    case(
        "if not exists, new",
        "CREATE TABLE IF NOT EXISTS t (id INT) USING orc",
        "+ t (id int; orc; MANAGED) if not exists",
    ),
    case("if not exists, there", "CREATE TABLE IF NOT EXISTS a (x INT) USING orc", before=(A,)),
    case("like", "CREATE TABLE t LIKE a", "+ t (id int, s string; parquet; MANAGED)", before=(A,)),
    case(
        "like, in another format",
        "CREATE TABLE t LIKE p USING orc LOCATION '{w}/{db}_like' TBLPROPERTIES (k='v')",
        "+ t (id int, s string, d date, r string; by d, r; orc; EXTERNAL; k=v)",
        before=(P,),
    ),
    case("like, there", "CREATE TABLE IF NOT EXISTS a LIKE p", before=(A, P)),
    case(
        "as select",
        "CREATE TABLE t USING parquet AS SELECT id + 1 AS n, s FROM a",
        "+ t (n int, s string; parquet; MANAGED) as select",
        before=(A,),
    ),
    case(
        "as select, partitioned",
        "CREATE TABLE t USING orc PARTITIONED BY (s) COMMENT 'made' AS SELECT s, id FROM a",
        "+ t (id int, s string; by s; orc; MANAGED; 'made') as select",
        before=(A,),
    ),
    case(
        "as select, external",
        "CREATE TABLE t USING json LOCATION '{w}/{db}_ctas' AS SELECT 1 AS one",
        "+ t (one int; json; EXTERNAL) as select",
    ),
    case("as select, there", "CREATE TABLE IF NOT EXISTS a USING parquet AS SELECT 1 AS one", before=(A,)),
]

ALTER = [
    case(
        "add",
        "ALTER TABLE a ADD COLUMNS (n INT COMMENT 'new', m STRING)",
        "a: add n int 'new', add m string",
        before=(A,),
    ),
    case(
        "add to a partitioned one",
        "ALTER TABLE p ADD COLUMNS (n INT)",
        "p: add n int after s",
        before=(P,),
    ),
    case("add a struct", "ALTER TABLE a ADD COLUMNS (st STRUCT<x: INT>)", "a: add st struct<x:int>", before=(A,)),
    case("add a char", "ALTER TABLE a ADD COLUMNS (c CHAR(3))", "a: add c char(3)", before=(A,)),
    case("add a default", "ALTER TABLE a ADD COLUMNS (n INT DEFAULT 42)", "a: add n int =42", before=(A,)),
    case(
        "comment on a column", "ALTER TABLE a ALTER COLUMN id COMMENT 'the key'", "a: comment id 'the key'", before=(A,)
    ),
    case("set a default", "ALTER TABLE a ALTER COLUMN s SET DEFAULT 'x'", "a: default s 'x'", before=(A,)),
    case(
        "drop a default",
        "ALTER TABLE t ALTER COLUMN s DROP DEFAULT",
        "t: default s None",
        before=("CREATE TABLE t (s STRING DEFAULT 'x') USING parquet",),
    ),
    case("set properties", "ALTER TABLE a SET TBLPROPERTIES (k='v', l='w')", "a: set k=v, set l=w", before=(A,)),
    case("a secret", "ALTER TABLE a SET TBLPROPERTIES (api_token='t0p')", "a: set api_token={secret}", before=(A,)),
    case("the comment", "ALTER TABLE a SET TBLPROPERTIES (comment='c')", "a: comment 'c'", before=(A,)),
    case("comment on", "COMMENT ON TABLE a IS 'said'", "a: comment 'said'", before=(A,)),
    case(
        "unset properties",
        "ALTER TABLE a UNSET TBLPROPERTIES (k)",
        "a: unset k",
        before=(A, "ALTER TABLE a SET TBLPROPERTIES (k='v')"),
    ),
    case("unset what isn't there", "ALTER TABLE a UNSET TBLPROPERTIES IF EXISTS (nothing)", before=(A,)),
    case("move", "ALTER TABLE a SET LOCATION '{w}/{db}_elsewhere'", "a: at {db}_elsewhere known", before=(A,)),
    case("rename", "ALTER TABLE a RENAME TO b", "a: to b moved", before=(A,)),
    case(
        "rename what is external",
        "ALTER TABLE t RENAME TO u",
        "t: to u",
        before=("CREATE TABLE t (id INT) USING orc LOCATION '{w}/{db}_ext'",),
    ),
    case("options of the serde", "ALTER TABLE a SET SERDEPROPERTIES ('x'='y')", "a: set option.x=y", before=(A,)),
]

ONE = "ALTER TABLE p ADD PARTITION (d='2024-01-01', r='x')"
PARTITIONS = [
    case("add", ONE, "p: + d=2024-01-01/r=x", before=(P,)),
    case(
        "add two, one elsewhere",
        "ALTER TABLE p ADD PARTITION (d='2024-01-01', r='x') PARTITION (d='2024-01-02', r='y') LOCATION '{w}/{db}_y'",
        "p: + d=2024-01-01/r=x, + d=2024-01-02/r=y at {db}_y",
        before=(P,),
    ),
    case(
        "add if not exists: nobody knows",
        "ALTER TABLE p ADD IF NOT EXISTS PARTITION (d='2024-01-01', r='x')",
        "? p: + d=2024-01-01/r=x",
        before=(P, ONE),
    ),
    case("drop", "ALTER TABLE p DROP PARTITION (d='2024-01-01', r='x')", "p: - d=2024-01-01/r=x", before=(P, ONE)),
    case(
        "drop if exists: nobody knows",
        "ALTER TABLE p DROP IF EXISTS PARTITION (d='2024-01-01', r='nothing')",
        "? p: - d=2024-01-01/r=nothing",
        before=(P,),
    ),
    case(
        "rename",
        "ALTER TABLE p PARTITION (d='2024-01-01', r='x') RENAME TO PARTITION (d='2024-01-01', r='y')",
        "p: d=2024-01-01/r=x to d=2024-01-01/r=y",
        before=(P, ONE),
    ),
    case(
        "move",
        "ALTER TABLE p PARTITION (d='2024-01-01', r='x') SET LOCATION '{w}/{db}_moved'",
        "p: d=2024-01-01/r=x at {db}_moved",
        before=(P, ONE),
    ),
    case(
        "repair", "MSCK REPAIR TABLE p", "p: partitions added as they are found in the table's directory", before=(P,)
    ),
    case(
        "repair by dropping",
        "MSCK REPAIR TABLE p DROP PARTITIONS",
        "p: partitions dropped as they are found in the table's directory",
        before=(P,),
    ),
    case(
        "synchronise",
        "MSCK REPAIR TABLE p SYNC PARTITIONS",
        "p: partitions added and dropped as they are found in the table's directory",
        before=(P,),
    ),
    case(
        "recover",
        "ALTER TABLE p RECOVER PARTITIONS",
        "p: partitions added as they are found in the table's directory",
        before=(P,),
    ),
    case("truncate", "TRUNCATE TABLE a", "truncate a", before=(A,)),
    case("truncate a part", "TRUNCATE TABLE p PARTITION (r='x')", "truncate p r=x", before=(P, ONE)),
]

DROP = [
    case("drop", "DROP TABLE a", "- a known", before=(A,)),
    case("drop if exists, there", "DROP TABLE IF EXISTS a", "- a if exists known", before=(A,)),
    case("drop if exists, not there", "DROP TABLE IF EXISTS nothing"),
    case("drop and purge", "DROP TABLE a PURGE", "- a purge known", before=(A,)),
    case("drop twice", "DROP TABLE IF EXISTS a", before=(A, "DROP TABLE a")),
]


driver = shared_driver_fixture(PLAIN)


def id_of(case: Case) -> str:
    return case.id


class Ran:
    """A case that was run in a database of its own."""

    def __init__(self, driver: Driver, case_: Case) -> None:
        self.driver = driver
        self.db = driver.database()
        driver.run(f"USE {self.db}", *map(self._filled, case_.before))
        self.truth = [self._filled(line) for line in case_.truth]
        self.before = self._shown()
        self.events = driver.events_of(self._filled(case_.statement))
        self.after = self._shown()
        driver.run("USE default")

    def _filled(self, text: str) -> str:
        known = {"{w}": str(self.driver.warehouse), "{db}": self.db, "{secret}": REDACTED}
        for word, meaning in known.items():
            text = text.replace(word, meaning)
        return text

    def _shown(self) -> dict[str, Shown]:
        names = [row.tableName for row in self.driver.rows(f"SHOW TABLES IN {self.db}")]
        found = {name: shown(self.driver, f"{self.db}.{name}") for name in names}
        return {name: each for name, each in found.items() if each is not None}

    def at(self, name: str) -> DatasetId:
        """Where the catalog keeps a managed table of this database."""
        return DatasetId(namespace=f"file://{HOST}", name=f"{self.driver.warehouse}/spark/{self.db}.db/{name}")


def check(ran: Ran) -> list[Event]:
    assert lines(ran.events) == ran.truth
    assert not of(Gap, ran.events)
    if not ran.truth:
        assert not of(Committed, ran.events)
    return ran.events


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", smoking(CREATE, id_of, "all that a table has", "like", "options"), ids=id_of)
def test_create(driver: Driver, case: Case) -> None:
    ran = Ran(driver, case)
    for created in of(CreateTable, check(ran)):
        agrees(created.table, ran.after[created.identifier.table])
        external = "LOCATION" in case.statement
        assert created.dataset is not None
        assert (created.dataset == ran.at(created.identifier.table)) is not external
        assert created.identifier.database == ran.db


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", smoking([*ALTER, *PARTITIONS], id_of, "add a struct", "rename"), ids=id_of)
def test_alter(driver: Driver, case: Case) -> None:
    ran = Ran(driver, case)
    for altered in of(AlterTable, check(ran)):
        assert altered.table is not None
        assert altered.new_table is not None
        agrees(altered.table, ran.before[altered.identifier.table])
        renamed = {change.table.table for change in altered.changes if change.change == "RenameTable"}
        agrees(altered.new_table, ran.after[renamed.pop() if renamed else altered.identifier.table])


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", smoking(DROP, id_of, "drop", "drop twice"), ids=id_of)
def test_drop(driver: Driver, case: Case) -> None:
    ran = Ran(driver, case)
    for dropped in of(DropTable, check(ran)):
        assert dropped.table is not None
        agrees(dropped.table, ran.before[dropped.identifier.table])
        assert dropped.dataset == ran.at(dropped.identifier.table)


def test_a_table_that_a_data_frame_is_saved_as(driver: Driver) -> None:
    """What is overwritten is dropped first, and made anew; what is added to is neither."""
    table = f"{driver.database()}.t"

    def saved(mode: str) -> list[str]:
        events = driver.events_of(lambda spark: spark.range(3).write.mode(mode).saveAsTable(table))
        assert not of(Gap, events)
        outputs = [output for committed in of(Committed, events) for output in committed.outputs]
        return [*lines(events), *(f"{output.commit_kind} {output.replaced} {output.rows}" for output in outputs)]

    made = "+ t (id bigint; parquet; MANAGED) as select"
    assert saved("append") == [made, "CREATE ALL 3"]
    assert saved("append") == ["APPEND NOTHING 3"]
    assert saved("overwrite") == [f"{made} replaced", "CREATE ALL 3"]
    assert saved("ignore") == []
    driver.run(f"DROP TABLE {table}")
    assert saved("overwrite") == [made, "CREATE ALL 3"]
    assert saved("overwrite") == [f"{made} replaced", "CREATE ALL 3"]


def test_what_moved_has_a_new_place_and_the_old_one(driver: Driver) -> None:
    ran = Ran(driver, case("", "ALTER TABLE a RENAME TO b", before=(A,)))
    altered = the(AlterTable, ran.events)
    (change,) = altered.changes
    assert change.change == "RenameTable"
    assert (altered.dataset, change.dataset) == (ran.at("a"), ran.at("b"))
    again = the(DropTable, driver.events_of(f"DROP TABLE {ran.db}.b"))
    assert again.dataset == ran.at("b")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE a (id INT) USING parquet",
        "CREATE TABLE t (id INT, ID INT) USING parquet",
        "CREATE TABLE t LIKE nothing",
        "CREATE TABLE t USING parquet AS SELECT raise_error('no') AS x",
        "ALTER TABLE a ADD COLUMNS (id INT)",
        "ALTER TABLE nothing SET TBLPROPERTIES (k='v')",
        "ALTER TABLE a RENAME TO p",
        "ALTER TABLE p ADD PARTITION (d='2024-01-01', r='x')",
        "ALTER TABLE p DROP PARTITION (d='1999-01-01', r='x')",
        "DROP TABLE nothing",
        "TRUNCATE TABLE p PARTITION (nothing='x')",
    ],
)
def test_what_failed_changed_nothing(driver: Driver, statement: str) -> None:
    db = driver.database()
    driver.run(f"USE {db}", A, P, ONE)
    events = driver.events_of_failure(statement)
    driver.run("USE default")
    assert lines(events) == []
    assert not of(Gap, events)


def test_a_table_that_this_driver_never_saw(driver: Driver) -> None:
    """Its old description isn't known, and isn't made up."""
    db = driver.database()
    with_nobody_looking(driver, f"CREATE TABLE {db}.a (id INT) USING parquet")
    altered = the(AlterTable, driver.events_of(f"ALTER TABLE {db}.a ADD COLUMNS (n INT)"))
    assert altered.table is None
    assert altered.new_table is not None
    assert [column.name for column in altered.new_table.columns] == ["id", "n"]
