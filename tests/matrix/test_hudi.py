"""Hudi's tables: what is recorded of every way to write and read them. Instants are counted by hand in each case, and
found again in the table's own timeline."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headwater.events import Committed, Format, Gap, Input, Output
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode
from headwater.listeners.capture.command_registry import all_commands
from tests.kit.formats.hudi_place import Place, Step, hudi_driver_fixture, make_templates
from tests.kit.formats.hudi_racer import WRITERS, make_tables, race, wrongs
from tests.kit.spark.driver import Driver, of, the
from tests.kit.spark.java_lint import complaints_of_javac

pytestmark = [pytest.mark.needs("hudi"), pytest.mark.sample(3, keep=("test_javac_agrees",))]
K, X = CommitKind, OverwriteScope
ROUNDS, LONG_ROUNDS = 2, 25
KEYED = {
    "hoodie.table.name": "w",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


driver = hudi_driver_fixture


@pytest.fixture(scope="module")
def templates(driver: Driver) -> Path:
    return make_templates(driver)


@dataclass(frozen=True)
class Made:
    """An instant that a case makes: which of the table's commits it is, Hudi's own words for it, and what is
    reported."""

    table: str
    place: int
    action: str
    operation: str
    kind: CommitKind
    replaced: OverwriteScope
    rows: int | None = None


@dataclass(frozen=True)
class Case:
    name: str
    when: Step
    made: tuple[Made, ...] = ()
    read: tuple[tuple[str, int], ...] = ()
    """Tables, and which of their commits."""
    given: tuple[Step, ...] = ()
    tables: tuple[str, ...] = ("t", "s")


def save(query: str, mode: str, table: str = "w", **options: str) -> Step:
    """Into a path, with options whose dots are underlines."""

    def step(spark: Any, place: Place) -> object:
        filled = place.fill(query)
        assert isinstance(filled, str)
        own = {f"hoodie.{key.replace('__', '.')}": text for key, text in options.items()}
        writer = spark.sql(filled).write.format("hudi").mode(mode).options(**{**KEYED, **own})
        return writer.save(str(place.home / table))

    return step


def load(table: str = "t", **options: str) -> Step:
    """From a path into files."""

    def step(spark: Any, place: Place) -> object:
        own = {key.replace("__", "."): str(place.fill(text)) for key, text in options.items()}
        found = spark.read.format("hudi").options(**own).load(str(place.home / table))
        return found.drop("_hoodie_file_name").write.parquet(str(place.home / "files"))

    return step


def select(query: str) -> Step:
    def step(spark: Any, place: Place) -> object:
        return spark.sql(place.fill(query)).write.parquet(str(place.home / "files"))

    return step


def saved_as(query: str, mode: str) -> Step:
    def step(spark: Any, place: Place) -> object:
        return spark.sql(place.fill(query)).write.format("hudi").mode(mode).saveAsTable(f"{place.db}.n")

    return step


def inserted_into(spark: Any, place: Place) -> object:
    return spark.sql(f"SELECT * FROM {place.db}.s").write.insertInto(f"{place.db}.s2")


ROWS = "SELECT id, v, ts FROM {db}.s"
PARTITIONED = "SELECT id + 10 AS id, v, ts, 'x' AS p FROM {db}.s"
BY_P = {"datasource__write__partitionpath__field": "p", "datasource__write__hive_style_partitioning": "true"}
MERGE = (
    "MERGE INTO {db}.%s AS t USING (SELECT *, 'x' AS p FROM {db}.s) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET t.v = s.v, t.ts = s.ts "
    "WHEN NOT MATCHED THEN INSERT (id, v, ts%s) VALUES (s.id, s.v, s.ts%s)"
)

WRITES = [
    Case(
        "values",
        "INSERT INTO {db}.t VALUES (9, 'z', 1, 'x')",
        (Made("t", 1, "commit", "INSERT", K.APPEND, X.NOTHING, 1),),
    ),
    Case(
        "another table's rows",
        "INSERT INTO {db}.t SELECT id + 10, v, ts, 'x' FROM {db}.s",
        (Made("t", 1, "commit", "INSERT", K.APPEND, X.NOTHING, 2),),
        (("s", 1),),
    ),
    Case(
        "its own rows",
        "INSERT INTO {db}.t SELECT id + 10, v, ts, p FROM {db}.t",
        (Made("t", 1, "commit", "INSERT", K.APPEND, X.NOTHING, 2),),
        (("t", 0),),
    ),
    Case(
        "into a partition",
        "INSERT INTO {db}.t PARTITION (p = 'z') SELECT id + 10, v, ts FROM {db}.s",
        (Made("t", 1, "commit", "INSERT", K.APPEND, X.NOTHING, 2),),
        (("s", 1),),
    ),
    Case(
        "overwritten",
        "INSERT OVERWRITE {db}.t SELECT id, v, ts, 'x' FROM {db}.s",
        (Made("t", 1, "replacecommit", "INSERT_OVERWRITE_TABLE", K.OVERWRITE, X.ALL, 2),),
        (("s", 1),),
    ),
    Case(
        "a partition overwritten",
        "INSERT OVERWRITE {db}.t PARTITION (p = 'x') SELECT id, v, ts FROM {db}.s",
        (Made("t", 1, "replacecommit", "INSERT_OVERWRITE", K.OVERWRITE, X.PART, 2),),
        (("s", 1),),
    ),
    Case(
        "merged",
        MERGE % ("t", ", p", ", 'x'"),
        (Made("t", 1, "commit", "UPSERT", K.MERGE, X.PART),),
        (("t", 0), ("s", 1)),
    ),
    Case(
        "updated",
        "UPDATE {db}.t SET v = 'q' WHERE id = 1",
        (Made("t", 1, "commit", "UPSERT_PREPPED", K.UPDATE, X.PART),),
        (("t", 0),),
    ),
    Case(
        "deleted",
        "DELETE FROM {db}.t WHERE id = 1",
        (Made("t", 1, "commit", "DELETE_PREPPED", K.DELETE, X.PART),),
        (("t", 0),),
    ),
    Case(
        "nothing deleted: Hudi commits that too",
        "DELETE FROM {db}.t WHERE id = 99",
        (Made("t", 1, "commit", "DELETE_PREPPED", K.DELETE, X.NOTHING),),
        (("t", 0),),
    ),
    Case(
        "made by a query",
        "CREATE TABLE {db}.n USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT id, v FROM {db}.s",
        (Made("n", 0, "commit", "BULK_INSERT", K.CREATE, X.ALL, 2),),
        (("s", 1),),
    ),
    Case(
        "saved as a table",
        saved_as(ROWS, "overwrite"),
        (Made("n", 0, "replacecommit", "INSERT_OVERWRITE_TABLE", K.CREATE, X.ALL, 2),),
        (("s", 1),),
    ),
    Case(
        "inserted by name",
        inserted_into,
        (Made("s2", 0, "commit", "INSERT", K.APPEND, X.NOTHING, 2),),
        (("s", 1),),
        given=("CREATE TABLE {db}.s2 (id INT, v STRING, ts LONG) USING hudi TBLPROPERTIES (primaryKey = 'id')",),
    ),
    Case(
        "a path upserted",
        save(PARTITIONED.replace("id + 10", "id"), "append", "t", table__name="t", **BY_P),
        (Made("t", 1, "commit", "UPSERT", K.MERGE, X.PART),),
        (("s", 1),),
    ),
    Case(
        "a new path",
        save(ROWS, "append", datasource__write__operation="bulk_insert"),
        (Made("w", 0, "commit", "BULK_INSERT", K.APPEND, X.NOTHING, 2),),
        (("s", 1),),
    ),
    Case(
        "a path made anew",
        save("SELECT * FROM one", "overwrite", "s", table__name="s", datasource__write__operation="insert"),
        (Made("s", 0, "commit", "INSERT", K.OVERWRITE, X.ALL, 1),),
        (),
        given=("CREATE OR REPLACE TEMP VIEW one AS SELECT 7 AS id, 'n' AS v, 1L AS ts",),
    ),
    Case(
        "partitions of a path overwritten",
        save(PARTITIONED, "append", "t", table__name="t", datasource__write__operation="insert_overwrite", **BY_P),
        (Made("t", 1, "replacecommit", "INSERT_OVERWRITE", K.OVERWRITE, X.PART, 2),),
        (("s", 1),),
    ),
    Case(
        "rows of a path deleted",
        save(
            PARTITIONED.replace("id + 10", "id"),
            "append",
            "t",
            table__name="t",
            datasource__write__operation="delete",
            **BY_P,
        ),
        (Made("t", 1, "commit", "DELETE", K.DELETE, X.PART),),
        (("s", 1),),
    ),
    Case(
        "with the metadata table: its commits are nobody's",
        save(ROWS, "append", datasource__write__operation="insert", metadata__enable="true"),
        (Made("w", 0, "commit", "INSERT", K.APPEND, X.NOTHING, 2),),
        (("s", 1),),
    ),
    Case(
        "merge on read: rows",
        "INSERT INTO {db}.m SELECT id + 10, v, ts FROM {db}.s",
        (Made("m", 2, "deltacommit", "INSERT", K.APPEND, X.NOTHING, 2),),
        (("s", 1),),
        tables=("m", "s"),
    ),
    Case(
        "merge on read: merged",
        MERGE % ("m", "", ""),
        (Made("m", 2, "deltacommit", "UPSERT", K.MERGE, X.PART),),
        (("m", 1), ("s", 1)),
        tables=("m", "s"),
    ),
    Case(
        "merge on read: updated",
        "UPDATE {db}.m SET v = 'q' WHERE id = 2",
        (Made("m", 2, "deltacommit", "UPSERT_PREPPED", K.UPDATE, X.PART),),
        (("m", 1),),
        tables=("m",),
    ),
    Case(
        "merge on read: deleted",
        "DELETE FROM {db}.m WHERE id = 2",
        (Made("m", 2, "deltacommit", "DELETE_PREPPED", K.DELETE, X.PART),),
        (("m", 1),),
        tables=("m",),
    ),
    Case(
        "a compaction within the write",
        save(
            "SELECT id, v, ts FROM {db}.s",
            "append",
            "m",
            table__name="m",
            compact__inline="true",
            compact__inline__max__delta__commits="1",
        ),
        (
            Made("m", 2, "deltacommit", "UPSERT", K.MERGE, X.PART),
            Made("m", 3, "commit", "COMPACT", K.COMPACT, X.NOTHING),
        ),
        (("s", 1),),
        tables=("m", "s"),
    ),
    Case(
        "a clustering within the write",
        save(
            PARTITIONED,
            "append",
            "t",
            table__name="t",
            datasource__write__operation="insert",
            clustering__inline="true",
            clustering__inline__max__commits="1",
            **BY_P,
        ),
        (
            Made("t", 1, "commit", "INSERT", K.APPEND, X.NOTHING, 2),
            Made("t", 2, "replacecommit", "CLUSTER", K.COMPACT, X.NOTHING),
        ),
        (("s", 1),),
    ),
    Case(
        "compacted",
        "CALL run_compaction(op => 'scheduleandexecute', table => '{db}.m', "
        "options => 'hoodie.compact.inline.max.delta.commits=1')",
        (Made("m", 2, "commit", "COMPACT", K.COMPACT, X.NOTHING),),
        tables=("m",),
    ),
    Case(
        "clustered",
        "CALL run_clustering(table => '{db}.s')",
        (Made("s", 2, "replacecommit", "CLUSTER", K.COMPACT, X.NOTHING),),
        tables=("s",),
    ),
    Case(
        "a partition dropped",
        "ALTER TABLE {db}.t DROP PARTITION (p = 'x')",
        (Made("t", 1, "replacecommit", "DELETE_PARTITION", K.DELETE, X.PART),),
        tables=("t",),
    ),
    Case(
        "a partition dropped by a procedure",
        "CALL drop_partition(table => '{db}.t', partition => 'p=x')",
        (Made("t", 1, "replacecommit", "DELETE_PARTITION", K.DELETE, X.PART),),
        tables=("t",),
    ),
    Case(
        "a partition truncated",
        "TRUNCATE TABLE {db}.t PARTITION (p = 'y')",
        (Made("t", 1, "replacecommit", "DELETE_PARTITION", K.TRUNCATE, X.PART),),
        tables=("t",),
    ),
]


@pytest.fixture
def place(driver: Driver) -> Place:
    return Place(driver, driver.database())


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", WRITES, ids=lambda case: case.name.replace(" ", "_"))
def test_what_was_written(case: Case, place: Place, templates: Path) -> None:
    for table in case.tables:
        place.copy(templates, table)
    place.run(*case.given)
    wanted_reads = [(table, place.commits(table)[n].number) for table, n in case.read]

    events = place.events_of(case.when)

    committed = the(Committed, events)
    assert not of(Gap, events)
    assert [_output(each, place) for each in committed.outputs] == [_wanted(each, place) for each in case.made]
    assert sorted(_read(each, place) for each in committed.inputs) == sorted(wanted_reads)
    for made, output in zip(case.made, committed.outputs, strict=True):
        done = place.commits(made.table)[made.place]
        assert (done.action, done.operation()) == (made.action, made.operation)
        assert output.made_from == (() if made.kind is K.COMPACT else tuple(range(len(committed.inputs))))


def _output(output: Output, place: Place) -> tuple[object, ...]:
    assert output.format is Format.HUDI
    name = place.name(output.dataset)
    return name, output.snapshot, output.parent, output.commit_kind, output.replaced, output.rows


def _wanted(made: Made, place: Place) -> tuple[object, ...]:
    commits = place.commits(made.table)
    parent = commits[made.place - 1].number if made.place else None
    return made.table, commits[made.place].number, parent, made.kind, made.replaced, made.rows


def _read(each: Input, place: Place) -> tuple[str, int | None]:
    assert each.format is Format.HUDI
    assert each.mode is ReadMode.STATE
    return place.name(each.dataset), each.snapshot


def test_writers_at_once(place: Place) -> None:
    make_tables(place)

    events = race(place, ROUNDS)

    assert len(events) == 2 * WRITERS * ROUNDS
    assert not wrongs(place, events)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_writers_at_once_for_long(place: Place) -> None:
    make_tables(place)

    events = race(place, LONG_ROUNDS)

    assert len(events) == 2 * WRITERS * LONG_ROUNDS
    assert not wrongs(place, events)


def test_every_command_of_the_jar_is_known(driver: Driver) -> None:
    """Each class of Hudi's that Spark may run as a command is reported, or ignored for a reason."""
    found = commands_of_the_jar(driver)
    assert "MergeIntoHoodieTableCommand" in found
    assert not [name for name in found if name not in all_commands()]


def commands_of_the_jar(driver: Driver) -> list[str]:
    inside: Any = driver.spark
    loader = inside._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    command = loader.loadClass("org.apache.spark.sql.catalyst.plans.logical.Command")
    where = loader.loadClass("org.apache.hudi.HoodieFileIndex").getProtectionDomain().getCodeSource().getLocation()
    with zipfile.ZipFile(str(where.getPath())) as archive:
        names = [name[:-6].replace("/", ".") for name in archive.namelist() if name.endswith(".class")]
    likely = [
        name
        for name in names
        if "$" not in name
        and re.match(r"org\.apache\.spark\.sql\.(hudi\.command\.\w+Command|.*\.plans\.logical\.\w+)$", name)
    ]
    kinds = [loader.loadClass(name) for name in likely]
    concrete = [kind for kind in kinds if command.isAssignableFrom(kind) and not kind.getModifiers() & 0x600]
    return [str(kind.getSimpleName()) for kind in concrete]


@pytest.mark.smoke
def test_javac_agrees(driver: Driver, tmp_path: Path) -> None:
    assert not complaints_of_javac(driver.spark.sparkContext, tmp_path)
