"""Hudi's tables beside writes: which state was read, what DDL and procedures did to a timeline, and what is reported
where the hook in Hudi can't see it. Truth is in the timelines."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headwater.events import (
    AlterTable,
    Committed,
    CreateTable,
    CreateTag,
    DropTable,
    DropTag,
    Format,
    Gap,
    StatementFailed,
    TableName,
    Truncate,
)
from headwater.events.catalog import ModificationCause, ModificationEffect
from headwater.events.changes import AddColumn, DropPartition, RecommentColumn, RenameTable
from headwater.events.health import GapReason
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode
from tests.kit.formats.hudi_place import Place, Step, hudi_driver_fixture, make_templates
from tests.kit.spark.driver import Driver, edges, of, the

pytestmark = [pytest.mark.needs("hudi"), pytest.mark.long]
K, X = CommitKind, OverwriteScope
OWN_CALLBACK = "hoodie.write.commit.callback."


driver = hudi_driver_fixture


@pytest.fixture(scope="module")
def templates(driver: Driver) -> Path:
    return make_templates(driver)


@pytest.fixture
def place(driver: Driver, templates: Path) -> Place:
    """With copies of all tables."""
    place = Place(driver, driver.database())
    for table in ("t", "s", "m"):
        place.copy(templates, table)
    return place


@pytest.fixture
def unhooked(driver: Driver) -> Generator[None, None, None]:
    """As with capture.hooks=off, in the same driver."""
    capture: Any = driver.capture
    java = capture._listener._java
    java.call("HudiHook", "uninstall")
    yield
    java.call("HudiHook", "install")


@dataclass(frozen=True)
class Read:
    """One input: a table, which of its commits, and where a range begins."""

    table: str
    place: int
    since: int | None = None
    changes: bool = False


@dataclass(frozen=True)
class Case:
    name: str
    when: Step
    read: tuple[Read, ...]
    given: tuple[Step, ...] = ()


def load(table: str, **options: str) -> Step:
    def step(spark: Any, place: Place) -> None:
        own = {key.replace("__", "."): str(place.fill(text)) for key, text in options.items()}
        write(spark.read.format("hudi").options(**own).load(str(place.home / table)), place)

    return step


def select(query: str) -> Step:
    return lambda spark, place: write(spark.sql(place.fill(query)), place)


def write(rows: Any, place: Place) -> None:
    rows.select("id").write.parquet(str(place.home / "files"))


def analysed_early(spark: Any, place: Place) -> None:
    rows = spark.table(f"{place.db}.s")
    spark.sql(f"INSERT INTO {place.db}.s VALUES (9, 'e', 1)")
    write(rows, place)


def another_session(spark: Any, place: Place) -> None:
    """It doesn't know of what was committed since it looked."""
    other = spark.newSession()
    other.table(f"{place.db}.s").count()
    spark.sql(f"INSERT INTO {place.db}.s VALUES (9, 'e', 1)")
    write(other.table(f"{place.db}.s"), place)


def at_once(spark: Any, place: Place) -> None:
    """What is committed right after a read hasn't been read."""
    write(spark.table(f"{place.db}.s"), place)
    spark.sql(f"INSERT INTO {place.db}.s VALUES (9, 'e', 1)")


INCREMENTAL = {"hoodie__datasource__query__type": "incremental"}
BEGIN, END = "hoodie__datasource__read__begin__instanttime", "hoodie__datasource__read__end__instanttime"
READS = [
    Case("a table", select("SELECT * FROM {db}.s"), (Read("s", 1),)),
    Case("a path", load("s"), (Read("s", 1),)),
    Case("merged on read", select("SELECT * FROM {db}.m"), (Read("m", 1),)),
    Case("an older state", select("SELECT * FROM {db}.s TIMESTAMP AS OF '{s0}'"), (Read("s", 0),)),
    Case("an older state of a path", load("s", as__of__instant="{s0}"), (Read("s", 0),)),
    Case(
        "two states at once",
        select("SELECT a.id FROM {db}.s TIMESTAMP AS OF '{s0}' a JOIN {db}.s b ON a.id = b.id"),
        (Read("s", 0), Read("s", 1)),
    ),
    Case("changes", load("s", **INCREMENTAL, **{BEGIN: "{s0c}"}), (Read("s", 1, 0, changes=True),)),
    Case(
        "changes up to an instant",
        load("s", **INCREMENTAL, **{BEGIN: "000", END: "{s0c}"}),
        (Read("s", 0, None, changes=True),),
    ),
    Case(
        "changes by a function",
        select("SELECT * FROM hudi_table_changes('{db}.s', 'latest_state', 'earliest')"),
        (Read("s", 1, None, changes=True),),
    ),
    Case("a view", select("SELECT * FROM {db}.v"), (Read("s", 1),), ("CREATE VIEW {db}.v AS SELECT id FROM {db}.s",)),
    Case("only counted", select("SELECT count(*) AS id FROM {db}.s"), (Read("s", 1),)),
    Case("analysed early, run late", analysed_early, (Read("s", 2),)),
    Case("another session's", another_session, (Read("s", 1),)),
    Case("written right after", at_once, (Read("s", 1),)),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", READS, ids=lambda case: case.name.replace(" ", "_"))
def test_what_was_read(case: Case, place: Place) -> None:
    place.run(*case.given)

    events = place.events_of(case.when)

    assert not of(Gap, events)
    (committed,) = [e for e in of(Committed, events) if e.outputs[0].format is not Format.HUDI]
    found = [(place.name(i.dataset), i.snapshot, i.since and i.since.snapshot, i.mode) for i in committed.inputs]
    assert sorted(found, key=str) == sorted((_wanted(each, place) for each in case.read), key=str)


def _wanted(read: Read, place: Place) -> tuple[object, ...]:
    commits = place.commits(read.table)
    since = None if read.since is None else commits[read.since].number
    return read.table, commits[read.place].number, since, ReadMode.CHANGES if read.changes else ReadMode.STATE


def test_an_empty_table_gives_nothing(place: Place) -> None:
    place.run("CREATE TABLE {db}.e (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")

    events = place.events_of("INSERT INTO {db}.s SELECT id, 'x', 1L FROM {db}.e UNION ALL SELECT 7, 'y', 1L")

    assert the(Committed, events).inputs == ()
    assert not of(Gap, events)


def test_what_is_not_compacted_is_left_out_by_some_queries(place: Place) -> None:
    events = place.events_of(load("m", hoodie__datasource__query__type="read_optimized"))

    (read,) = the(Committed, events).inputs
    assert (read.snapshot, read.dataset) == (None, place.dataset("m"))
    assert the(Gap, events).reason is GapReason.NOT_EXACT


def test_columns_that_hudi_keeps_are_nobodys_lineage(place: Place) -> None:
    events = place.events_of(
        lambda spark, _: spark.sql(f"SELECT * FROM {place.db}.s").write.parquet(str(place.home / "files")),
    )

    lineage = place.driver.lineage(the(Committed, events))
    assert edges(lineage) == {"id <- s.id", "v <- s.v", "ts <- s.ts"}
    assert [column.name for column in lineage.inputs[0].columns] == ["id", "v", "ts"]


MERGE = (
    "MERGE INTO {db}.m AS t USING {db}.s AS s ON t.id = s.id "
    "WHEN MATCHED AND s.v > 'a' THEN UPDATE SET t.v = upper(s.v), t.ts = s.ts "
    "WHEN NOT MATCHED THEN INSERT (id, v, ts) VALUES (s.id, s.v, s.ts)"
)
COLUMNS = {
    "INSERT INTO {db}.m SELECT id, concat(v, '!'), ts FROM {db}.s WHERE ts > 0": {
        "id <- s.id",
        "v <- TRANSFORMATION s.v",
        "ts <- s.ts",
        "~FILTER s.ts",
    },
    MERGE: {
        "id <- s.id",
        "v <- s.v",
        "v <- TRANSFORMATION s.v",
        "ts <- s.ts",
        "~JOIN s.id",
        "~JOIN m.id",
        "~FILTER s.v",
    },
    "UPDATE {db}.m SET v = concat(v, id) WHERE ts = 1": {
        "v <- TRANSFORMATION m.id",
        "v <- TRANSFORMATION m.v",
        "~FILTER m.ts",
    },
    "DELETE FROM {db}.m WHERE id = 2": {"~FILTER m.id"},
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("statement", COLUMNS, ids=lambda text: text.split()[0])
def test_columns_of_writes(statement: str, place: Place) -> None:
    events = place.events_of(statement)

    assert edges(place.driver.lineage(the(Committed, events))) == COLUMNS[statement]


def test_a_table_is_made_and_dropped(place: Place) -> None:
    make = "CREATE TABLE {db}.n (id INT, v STRING, p STRING) USING hudi PARTITIONED BY (p)"
    made = the(CreateTable, place.events_of(make))

    assert made.identifier == TableName(catalog="spark_catalog", database=place.db, table="n")
    assert (made.dataset, made.format, made.effect) == (place.dataset("n"), Format.HUDI, ModificationEffect.APPLIED)
    assert [column.name for column in made.table.columns] == ["id", "v", "p"]
    assert [each.columns for each in made.table.partitioning] == [(("p",),)]
    assert not place.events_of(make.replace("TABLE", "TABLE IF NOT EXISTS"))
    assert the(DropTable, place.events_of("DROP TABLE {db}.n")).dataset == place.dataset("n")
    assert not place.events_of("DROP TABLE IF EXISTS {db}.n")


def test_a_table_like_another(place: Place) -> None:
    made = the(CreateTable, place.events_of("CREATE TABLE {db}.n LIKE {db}.s USING hudi"))

    assert [column.name for column in made.table.columns] == ["id", "v", "ts"]
    assert made.dataset == place.dataset("n")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("ALTER TABLE {db}.s ADD COLUMNS (more INT)", AddColumn(path=("more",), type='"integer"')),
        ("ALTER TABLE {db}.s CHANGE COLUMN v v STRING COMMENT 'said'", RecommentColumn(path=("v",), comment="said")),
    ],
    ids=["added", "commented"],
)
def test_a_table_is_altered_by_an_instant(statement: str, change: object, place: Place) -> None:
    altered = the(AlterTable, place.events_of(statement))

    before, done = place.commits("s")[-2:]
    assert (altered.produced, altered.parent) == (done.number, before.number)
    assert altered.changes == (change,)
    assert done.operation() == "ALTER_SCHEMA"
    assert altered.new_table is not None
    assert "_hoodie_commit_time" not in [column.name for column in altered.new_table.columns]


def test_a_write_alters_the_schema(place: Place) -> None:
    def write_more(spark: Any, place: Place) -> None:
        rows = spark.sql("SELECT 8 AS id, 'w' AS v, 1L AS ts, nullif(2, 3) AS more")
        options = {"hoodie.table.name": "s", "hoodie.datasource.write.recordkey.field": "id"}
        rows.write.format("hudi").options(**options).mode("append").save(str(place.home / "s"))

    events = place.events_of(write_more)

    altered, committed = the(AlterTable, events), the(Committed, events)
    assert altered.cause is ModificationCause.WRITE
    assert altered.changes == (AddColumn(path=("more",), type='"integer"'),)
    assert altered.produced == committed.outputs[0].snapshot == place.commits("s")[-1].number


def test_a_renamed_table_moves(place: Place) -> None:
    place.run("CREATE TABLE {db}.n (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")

    (change,) = the(AlterTable, place.events_of("ALTER TABLE {db}.n RENAME TO {db}.o")).changes

    assert isinstance(change, RenameTable)
    assert (change.table.table, change.dataset) == ("o", place.dataset("o"))


def test_a_dropped_partition_is_both_told_and_committed(place: Place) -> None:
    events = place.events_of("ALTER TABLE {db}.t DROP PARTITION (p = 'x')")

    altered, committed = the(AlterTable, events), the(Committed, events)
    assert isinstance(altered.changes[0], DropPartition)
    assert altered.produced == committed.outputs[0].snapshot == place.commits("t")[-1].number


def test_a_truncated_table_begins_anew(place: Place) -> None:
    """Hudi makes the timeline anew: there is no instant."""
    events = place.events_of("TRUNCATE TABLE {db}.s")

    assert the(Truncate, events).dataset == place.dataset("s")
    assert not of(Committed, events)
    assert place.commits("s") == []


def test_savepoints_are_tags(place: Place) -> None:
    first = place.commits("s")[0].number

    made = the(CreateTag, place.events_of("CALL create_savepoint(table => '{db}.s', commit_time => '{s0}')"))
    dropped = the(DropTag, place.events_of("CALL delete_savepoint('{db}.s', '{s0}')"))

    assert (made.tag, made.snapshot, made.dataset) == (str(first), first, place.dataset("s"))
    assert (dropped.tag, dropped.dataset) == (str(first), place.dataset("s"))
    assert dropped.identifier == TableName(catalog="spark_catalog", database=place.db, table="s")


def test_a_commit_is_taken_back(place: Place) -> None:
    first = place.commits("s")[0].number

    events = place.events_of("CALL rollback_to_instant(table => '{db}.s', instant_time => '{s1}')")

    (output,) = the(Committed, events).outputs
    assert (output.snapshot, output.commit_kind, output.made_from) == (first, K.ROLLBACK, ())
    assert [done.number for done in place.commits("s")] == [first]


def test_a_table_goes_back_to_a_savepoint(place: Place) -> None:
    first = place.commits("s")[0].number
    place.run("CALL create_savepoint(table => '{db}.s', commit_time => '{s0}')")

    events = place.events_of(f"CALL rollback_to_savepoint(table => '{{db}}.s', instant_time => '{first}')")

    (output,) = the(Committed, events).outputs
    assert (output.snapshot, output.commit_kind) == (first, K.RESTORE)
    assert [done.number for done in place.commits("s")] == [first]


@pytest.mark.sample(1)
@pytest.mark.parametrize("call", ["show_commits(table => '{db}.s')", "run_clean(table => '{db}.s')"])
def test_what_changes_no_rows_is_not_reported(call: str, place: Place) -> None:
    assert not place.events_of(f"CALL {call}")


def test_a_procedure_that_is_not_followed_is_a_gap(place: Place) -> None:
    gap = the(Gap, place.events_of("CALL copy_to_table(table => '{db}.s', new_table => '{db}.n')"))

    assert gap.reason is GapReason.NOT_SUPPORTED


def test_a_failed_statement_says_what_it_would_have_written(place: Place) -> None:
    events = place.driver.events_of_failure(place.fill("UPDATE {db}.s SET v = raise_error('no')"))

    (output,) = the(StatementFailed, events).outputs
    assert output.dataset == place.dataset("s")
    assert not of(Committed, events)


def test_nothing_is_written_into_a_table(place: Place) -> None:
    """The hook is in nobody's properties."""
    place.run("INSERT INTO {db}.s VALUES (8, 'x', 1)", "CREATE TABLE {db}.n USING hudi AS SELECT * FROM {db}.s")

    for table in ("s", "n"):
        files = [each for each in (place.home / table / ".hoodie").rglob("*") if each.is_file()]
        assert files
        assert not [each for each in files if b"eadwater" in each.read_bytes()]
        assert not [each for each in files if b"commit.callback" in each.read_bytes()]


UNHOOKED = {
    "INSERT INTO {db}.s VALUES (8, 'x', 1)": 1,
    "UPDATE {db}.s SET v = 'q' WHERE id = 1": 1,
    "DELETE FROM {db}.s WHERE id = 1": 1,
    "MERGE INTO {db}.s AS t USING {db}.m AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = s.v, t.ts = s.ts": 1,
}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("unhooked")
@pytest.mark.parametrize("statement", UNHOOKED, ids=lambda text: text.split()[0])
def test_without_the_hook_an_instant_is_a_candidate(statement: str, place: Place) -> None:
    events = place.events_of(statement)

    (output,) = the(Committed, events).outputs
    assert (output.snapshot, output.candidates) == (None, (place.commits("s")[-1].number,))
    assert {gap.reason for gap in of(Gap, events)} == {GapReason.NOT_EXACT}


def test_a_users_own_callback_stays_the_one_that_is_called(place: Place) -> None:
    """What is set by a write itself isn't touched; then the hook sees nothing, and that is reported."""
    with _listening() as (url, heard):
        own = {f"{OWN_CALLBACK}on": "true", f"{OWN_CALLBACK}http.url": url}
        events = place.events_of(lambda spark, place: _save(spark, place, own))

    (output,) = the(Committed, events).outputs
    (done,) = place.commits("w")
    assert (output.snapshot, output.candidates) == (None, (done.number,))
    assert the(Gap, events).reason is GapReason.NOT_EXACT
    assert [str(done.number) in text for text in heard] == [True]


def test_a_callback_that_is_named_but_not_wanted_is_not_called(place: Place) -> None:
    with _listening() as (url, heard):
        own = {f"{OWN_CALLBACK}class": "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"}
        events = place.events_of(lambda spark, place: _save(spark, place, {**own, f"{OWN_CALLBACK}http.url": url}))

    assert the(Committed, events).outputs[0].snapshot is None
    assert heard == []


def _save(spark: Any, place: Place, options: dict[str, str]) -> None:
    own = {"hoodie.table.name": "w", "hoodie.datasource.write.recordkey.field": "id", **options}
    spark.table(f"{place.db}.s").write.format("hudi").options(**own).mode("append").save(str(place.home / "w"))


class _listening:  # noqa: N801 - used as a function
    """A server that keeps what it is sent."""

    def __enter__(self) -> tuple[str, list[str]]:
        heard: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                heard.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its parent calls it
                pass

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}/", heard

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_a_commit_without_a_statement(place: Place) -> None:
    """Hudi's own client, called from Python."""

    def commit(spark: Any, place: Place) -> None:
        jvm = spark._jvm
        path, nothing = str(place.home / "s"), jvm.scala.Predef.Map().empty()
        client = jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient(
            spark._jsparkSession, path, nothing, jvm.scala.Option.apply(f"{place.db}.s")
        )
        instant = client.startCommit()
        client.commit(instant, client.upsert(spark.sparkContext._jsc.emptyRDD(), instant))
        client.close()

    events = place.events_of(commit)

    (output,) = the(Committed, events).outputs
    assert (output.snapshot, output.dataset) == (place.commits("s")[-1].number, place.dataset("s"))
