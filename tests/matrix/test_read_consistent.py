"""`SET spark.headwater.read.consistent = true`: SQL that names no snapshot reads what belongs together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import Committed
from headwater.lens import consistent, lens
from tests.kit.cases.consistent import KEY, Tables, explained, reading
from tests.kit.cases.lens import ids
from tests.kit.spark.driver import DELTA, ICEBERG, Driver, shared_driver_fixture, the, together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-iceberg-delta"), pytest.mark.needs("iceberg", "delta")]
NONE = "no consistent versions of"


driver = shared_driver_fixture(together(ICEBERG, DELTA), spark__databricks__delta__snapshotPartitions="1")


@pytest.fixture(params=["iceberg", "delta"])
def tables(request: pytest.FixtureRequest, driver: Driver, tmp_path: Path) -> Tables:
    return Tables(driver, request.param, tmp_path / "store.db")


@pytest.fixture(scope="module", params=["iceberg", "delta"])
def made(request: pytest.FixtureRequest, driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables that no case changes."""
    return Tables(driver, request.param, tmp_path_factory.mktemp("made") / "store.db")


@pytest.fixture
def reader(made: Tables) -> Generator[SparkSession, None, None]:
    with reading(made.driver.spark, made.store) as session:
        yield session
    made.driver.spark.catalog.clearCache()


@pytest.fixture
def spark(tables: Tables) -> Generator[SparkSession, None, None]:
    with reading(tables.driver.spark, tables.store) as session:
        yield session
    tables.driver.spark.catalog.clearCache()


@pytest.mark.smoke
@pytest.mark.sample(1, keep=("iceberg",))
def test_a_session_reads_what_belongs_together(tables: Tables, spark: SparkSession) -> None:
    """Fails if nothing is pinned, pins go to the wrong table, or another session is touched."""
    assert tables.alone(tables.driver.spark) == [2]
    assert tables.alone(spark) == []
    assert tables.alone(spark.newSession()) == [2]
    assert ids(spark.table(tables.b)) == [1, 2], "one table alone is read as it is now"
    tables.copy(tables.c)
    assert tables.alone(spark) == []
    assert ids(spark.sql(f"SELECT b.id FROM {tables.b} b JOIN {tables.c} c USING (id)")) == [1, 2]
    tables.copy(tables.b)
    spark.sql(f"SET {KEY} = false")
    tables.grow(3)
    tables.copy(tables.b)
    assert tables.alone(newest(spark, tables)) == [3]


def newest(spark: SparkSession, tables: Tables) -> SparkSession:
    """A session that has forgotten what its catalog keeps: Iceberg's keeps tables that another session has written."""
    for each in (tables.a, tables.b, tables.c):
        spark.sql(f"REFRESH TABLE {each}")
    return spark


def _union(one: str, other: str) -> str:
    return f"SELECT id FROM {one} UNION SELECT id FROM {other}"


def _permanent_view(spark: SparkSession, tables: Tables) -> str:
    spark.sql(f"CREATE OR REPLACE VIEW spark_catalog.default.both AS {_union(tables.b, tables.c)}")
    return "SELECT * FROM spark_catalog.default.both"


def _short_view(spark: SparkSession, tables: Tables) -> str:
    spark.sql(f"USE {tables.db}")
    spark.sql("CREATE OR REPLACE VIEW spark_catalog.default.short AS WITH x AS (SELECT * FROM b) SELECT * FROM x")
    spark.sql("USE spark_catalog.default")
    return _union("spark_catalog.default.short", tables.c)


def _temporary_view(spark: SparkSession, tables: Tables) -> str:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW bs AS SELECT * FROM {tables.b}")
    return _union("bs", tables.c)


def _short_names(spark: SparkSession, tables: Tables) -> str:
    spark.sql(f"USE {tables.db}")
    return _union("b", "c")


def _cached(spark: SparkSession, tables: Tables) -> str:
    spark.sql(f"CACHE TABLE {tables.b}")
    return _union(tables.b, tables.c)


WAYS: dict[str, Callable[[SparkSession, Tables], str]] = {
    "join": lambda _, t: f"SELECT b.id FROM {t.b} b LEFT JOIN {t.c} c USING (id)",
    "UNION": lambda _, t: _union(t.b, t.c),
    "IN": lambda _, t: f"SELECT id FROM {t.b} WHERE id IN (SELECT id FROM {t.b}) OR id IN (SELECT id FROM {t.c})",
    "scalar subquery": lambda _, t: f"SELECT id FROM {t.b} WHERE id >= (SELECT min(id) FROM {t.c})",
    "CTE": lambda _, t: f"WITH x AS (SELECT * FROM {t.b}), c AS (SELECT * FROM {t.c}) {_union('x', 'c')}",
    "self join": lambda _, t: (
        f"SELECT x.id FROM {t.b} x JOIN {t.b} y USING (id) WHERE EXISTS (SELECT 1 FROM {t.c} c WHERE c.id <= x.id)"
    ),
    "permanent view": _permanent_view,
    "view of short names with a CTE": _short_view,
    "temporary view": _temporary_view,
    "short names": _short_names,
    "cached": _cached,
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_name_tables(made: Tables, reader: SparkSession, way: str) -> None:
    """Fails for a way that isn't seen; each reads id 2 where nothing is pinned."""
    query = WAYS[way](reader, made)
    assert ids(reader.sql(query)) == [1]
    reader.sql(f"SET {KEY} = false")
    assert ids(reader.sql(query)) == [1, 2]


@pytest.mark.long
def test_what_is_written_isnt_pinned_and_what_is_captured_is_what_was_read(tables: Tables, spark: SparkSession) -> None:
    """Fails if an INSERT goes to an old version, reads a new one, or capture names the newest."""
    pins = explained(spark, _union(tables.b, tables.c)).splitlines()
    wanted = {line.split()[0].rpartition(".")[2]: int(line.split()[4]) for line in pins if "VERSION" in line}
    assert set(wanted) == {"b", "c"}
    events = tables.driver.events_of(
        lambda _: spark.sql(f"INSERT INTO {tables.b} SELECT b.id + 10 FROM {tables.b} b JOIN {tables.c} c USING (id)")
    )
    inputs = [(each.dataset, each.snapshot) for each in the(Committed, events).inputs]
    read = {dataset.name.rpartition("/")[2]: snapshot for dataset, snapshot in inputs if dataset is not None}
    assert read == wanted
    assert ids(newest(tables.driver.spark, tables).table(tables.b)) == [1, 2, 11]


@pytest.mark.long
def test_versions_that_the_user_names_stay(tables: Tables, spark: SparkSession) -> None:
    """Fails if time travel of one's own is pinned, or counts as a table to align."""
    old = explained(spark, _union(tables.b, tables.c)).split()[4]
    tables.grow(3)
    tables.copy(tables.b, tables.c)
    tables.grow(4)
    tables.copy(tables.c)
    newest(spark, tables)
    together = f"SELECT * FROM {tables.b} VERSION AS OF {old} UNION SELECT * FROM {tables.c}"
    assert ids(spark.sql(together)) == [1, 2, 3, 4], "with b's newest version c would be read before its own"
    assert ids(spark.sql(f"SELECT * FROM {tables.b} VERSION AS OF {old}")) == [1]


@pytest.mark.long
def test_explain_shows_what_is_pinned_and_how_far_it_is_behind(made: Tables, reader: SparkSession) -> None:
    for mode in ("", "FORMATTED ", "EXTENDED "):
        lines = explained(reader, mode + _union(made.b, made.c)).splitlines()
        assert lines[0].startswith(f"{made.b} VERSION AS OF ")
        assert lines[0].endswith("(1 behind its newest)")
        assert lines[1].endswith("(newest)")
        assert lines[2].startswith("they contain ")
    assert explained(reader, f"SELECT * FROM {made.b}") == ""


@pytest.mark.long
def test_a_table_without_lineage_is_what_otherwise_says(tables: Tables, spark: SparkSession) -> None:
    """Fails if a table is read as it is now, and nobody is told."""
    tables.driver.run(f"CREATE TABLE {tables.d} USING {tables.using} AS SELECT 1 AS id")
    query = f"{_union(tables.b, tables.c)} UNION SELECT id FROM {tables.d}"
    with pytest.raises(Exception, match=rf"{NONE} .*{tables.d}: the store knows no table"):
        spark.sql(query)
    spark.sql(f"SET {KEY}.otherwise = latest")
    assert ids(spark.sql(query)) == [1], "those that can be aligned are"
    assert f"{tables.d} as it is now\nnot consistent: {tables.d}:" in explained(spark, query)
    spark.sql(f"SET {KEY}.otherwise = fail")
    spark.sql(f"SET {KEY}.allowed = {tables.db}.d*")
    assert ids(spark.sql(query)) == [1]


@pytest.mark.long
def test_a_setting_that_cant_be_read_is_named_and_can_be_set_again(made: Tables, reader: SparkSession) -> None:
    """Fails if the SET that would mend it is refused, too: then the session is of no use any more."""
    query = _union(made.b, made.c)
    reader.sql(f"SET {KEY}.otherwise = sometimes")
    with pytest.raises(Exception, match="is none of fail, latest"):
        reader.sql(query)
    reader.sql(f"SET {KEY}.otherwise = fail")
    reader.sql(f"SET {KEY} = perhaps")
    with pytest.raises(Exception, match="is neither true nor false"):
        reader.sql(query)
    reader.sql(f"SET {KEY} = true")
    assert ids(reader.sql(query)) == [1]


@pytest.mark.long
def test_a_statement_waits_for_versions_that_belong_together(tables: Tables, spark: SparkSession) -> None:
    """Fails if it doesn't ask again, or waits for ever."""
    tables.run(f"CREATE TABLE {tables.d} (id INT) USING {tables.using}")
    tables.grow(3)
    tables.copy(tables.d)
    spark.sql(f"SET {KEY}.otherwise = wait 300ms")
    with pytest.raises(Exception, match=rf"{NONE} .* belong together"):
        spark.sql(_union(tables.c, tables.d))
    spark.sql(f"SET {KEY}.otherwise = wait 2m")
    found: list[list[Any]] = []
    waiting = threading.Thread(target=lambda: found.append(ids(spark.sql(_union(tables.c, tables.d)))))
    waiting.start()
    tables.copy(tables.c)
    waiting.join(120)
    assert found == [[1, 2, 3]]


@pytest.mark.long
def test_a_store_that_is_away_costs_no_more_than_its_time(made: Tables, tmp_path: Path) -> None:
    """Fails if a statement hangs, or says nothing."""
    query, base = _union(made.b, made.c), made.driver.spark
    with reading(base, tmp_path / "nowhere.db") as spark:
        with pytest.raises(Exception, match=rf"{NONE} .*nowhere.db"):
            spark.sql(query)
        spark.sql(f"SET {KEY}.otherwise = latest")
        assert ids(spark.sql(query)) == [1, 2]
    with reading(base, "postgresql://127.0.0.1:9/lineage", otherwise="latest") as spark:
        assert ids(spark.sql(query)) == [1, 2]


class Hanging:
    """A finder that doesn't answer until it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def find(self, tables: object) -> consistent.FoundVersions:
        self.closed.wait()
        return consistent.FoundVersions()

    def close(self) -> None:
        self.closed.set()


@pytest.mark.long
def test_a_store_that_doesnt_answer_is_left_after_the_time_that_is_set(made: Tables) -> None:
    """Fails without the limit; more statements hang at a time than there are threads to answer."""
    inside: Any = made.driver.spark
    reads = consistent.ConsistentReads(inside.sparkContext, Hanging)
    reads.start()
    try:
        spark = made.driver.spark.newSession()
        for each in (" = true", ".otherwise = latest", ".timeout = 200ms"):
            spark.sql(f"SET {KEY}{each}")
        began = time.monotonic()
        for _ in range(6):
            assert ids(spark.sql(_union(made.b, made.c))) == [1, 2]
        assert time.monotonic() - began < 60
        spark.sql(f"SET {KEY}.otherwise = fail")
        with pytest.raises(Exception, match=r"hasn't answered within 200 ms"):
            spark.sql(_union(made.b, made.c))
    finally:
        reads.close()


@pytest.mark.long
def test_a_gap_in_the_lineage_is_said(tables: Tables, spark: SparkSession) -> None:
    """Fails if a commit that nobody reported is passed over."""
    tables.driver.run(f"INSERT INTO {tables.c} VALUES (7)")
    query = _union(tables.b, tables.c)
    assert ids(spark.sql(query)) == [1], "what is known belongs together"
    tables.run(f"INSERT INTO {tables.c} VALUES (8)")
    with pytest.raises(Exception, match=rf"{NONE} .*{tables.c}@\d+: its writer is unknown"):
        spark.sql(query)


@pytest.mark.long
def test_a_session_never_goes_back(tables: Tables, spark: SparkSession) -> None:
    """Fails if a third table takes one back that the session has read at a later version."""
    tables.run(f"CREATE TABLE {tables.d} (id INT) USING {tables.using}")
    tables.copy(tables.d)
    tables.grow(3)
    tables.copy(tables.b, tables.c)
    assert ids(spark.sql(_union(tables.b, tables.c))) == [1, 2, 3]
    with pytest.raises(Exception, match=rf"{tables.b} would be read at \S+, and this session has read it at"):
        spark.sql(_union(tables.b, tables.d))
    other = spark.newSession()
    other.sql(f"SET {KEY} = true")
    assert ids(other.sql(_union(tables.b, tables.d))) == [1, 2]


@pytest.mark.long
def test_an_answer_may_be_as_old_as_a_session_says_and_never_takes_it_back(tables: Tables) -> None:
    """Fails if each statement asks the store, if an old answer is taken where none may be, or one that would take a
    session back isn't replaced by a newer one."""
    with reading(tables.driver.spark, tables.store, max_age="1h") as spark:
        assert tables.alone(spark) == []
        query = _union(tables.b, tables.c)
        assert ids(spark.sql(query)) == [1]
        tables.copy(tables.c)
        assert ids(spark.sql(query)) == [1], "the answer of before"
        other = spark.newSession()
        for each in (" = true", ".max.age = 0s"):
            other.sql(f"SET {KEY}{each}")
        assert ids(other.sql(query)) == [1, 2], "which is the newest answer for all sessions now"
        assert ids(spark.sql(query)) == [1, 2]
        tables.grow(3)
        tables.copy(tables.b, tables.c)
        assert ids(spark.sql(_union(tables.c, tables.b))) == [1, 2, 3], "of this order nobody has asked"
        assert ids(spark.sql(query)) == [1, 2, 3], "what is known of it would be a step back"


@pytest.mark.long
def test_tables_that_were_looked_up_one_by_one_are_refused(tables: Tables, spark: SparkSession) -> None:
    """Fails if DataFrames are joined of which each read the newest version at its time."""
    one, other = spark.table(tables.b), spark.table(tables.c)
    with pytest.raises(Exception, match="was looked up before, by itself"):
        one.join(other, "id")
    spark.sql(f"SET {KEY}.otherwise = latest")
    assert ids(one.join(other, "id")) == [1]


@pytest.mark.long
@pytest.mark.smoke
def test_dataframes_of_two_cuts_are_refused(tables: Tables, spark: SparkSession) -> None:
    """Fails if any pinned version passes: each of these DataFrames belongs together, and their rows don't."""
    query = f"SELECT b.id FROM {tables.b} b JOIN {tables.c} c USING (id)"
    before = spark.sql(query)
    before.createOrReplaceTempView("before_it_grew")
    assert ids(before.union(spark.sql(query))) == [1, 1], "both are of one cut"
    tables.copy(tables.c)
    after = newest(spark, tables).sql(query)
    reads: list[Callable[[], object]] = [
        lambda: before.union(after),
        lambda: spark.sql(f"{query} WHERE id IN (TABLE before_it_grew)"),
    ]
    for read in reads:
        with pytest.raises(Exception, match=rf"{NONE} .*{tables.b}.*of two cuts.*by one SQL statement"):
            read()
    spark.sql(f"SET {KEY}.otherwise = latest")
    assert ids(before.union(after)) == [1, 1, 2]


@pytest.mark.long
def test_a_table_that_was_made_anew_is_refused(tables: Tables, spark: SparkSession) -> None:
    """Fails if versions of a table that is gone are read of the one that has its name now."""
    tables.driver.run(f"DROP TABLE {tables.c}", f"CREATE TABLE {tables.c} (id INT) USING {tables.using}")
    tables.driver.run(*(f"INSERT INTO {tables.c} VALUES ({number})" for number in (70, 71, 72)))
    with pytest.raises(Exception, match=rf"{tables.c} is another table than"):
        spark.sql(_union(tables.b, tables.c))


@pytest.mark.long
@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_a_version_that_has_expired_is_named_with_its_table(tables: Tables, spark: SparkSession) -> None:
    """Fails if it is the format's error, which names no table; Delta's versions go with its log alone."""
    b = tables.b.partition(".")[2]
    tables.driver.run(f"CALL ice.system.expire_snapshots('{b}', TIMESTAMP '2999-01-01 00:00:00', 1)")
    newest(spark, tables).sql(f"SET {KEY}.timeout = 60s")
    with pytest.raises(Exception, match=rf"{NONE} .*: {tables.b} at \d+ \(Cannot find snapshot .*{KEY}.otherwise"):
        spark.sql(_union(tables.b, tables.c))
    spark.sql(f"SET {KEY}.otherwise = latest")
    assert ids(spark.sql(_union(tables.b, tables.c))) == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_parts_of_a_table_are_read_as_their_refusal_says(tables: Tables, spark: SparkSession) -> None:
    """Fails if what the error advises doesn't help: each statement reads `b`, whose newest rows are 1 and 2."""
    tables.driver.run(f"ALTER TABLE {tables.b} CREATE BRANCH x")
    newest(spark, tables).sql(f"SET {KEY}.timeout = 60s")
    for part, words in (("snapshots", "it is a metadata table"), ("branch_x", "the store knows no branch 'x'")):
        name = f"{tables.b}.{part}"
        query = f"SELECT id FROM {tables.b} WHERE (SELECT count(*) FROM {name}) > 0"
        with pytest.raises(Exception, match=rf"{NONE} .*{name}: {words} of {tables.b}.*{KEY}.allowed = "):
            spark.sql(query)
        spark.sql(f"SET {KEY}.allowed = {name}")
        assert ids(spark.sql(query)) == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
def test_a_branch_is_read_at_what_goes_with_the_others(tables: Tables, spark: SparkSession) -> None:
    """Fails if a branch is read as it is now, or as main: Iceberg takes no version behind a branch's name. Also in a
    lens, and in what capture reports."""
    branch = f"{tables.b}.branch_fix"
    tables.run(f"ALTER TABLE {tables.b} CREATE BRANCH fix")
    tables.run(tables.copying(branch))
    tables.copy(tables.c)
    tables.grow(3)
    tables.run(tables.copying(branch))
    query = f"SELECT f.id FROM {branch} f FULL JOIN {tables.c} c USING (id)"
    assert ids(tables.driver.spark.sql(query)) == [1, 2, 3]
    pin = next(line for line in explained(newest(spark, tables), query).splitlines() if line.startswith(branch))
    assert pin.endswith("(1 behind its newest)")
    assert ids(spark.sql(query)) == [1, 2]
    events = tables.driver.events_of(lambda _: spark.sql(f"CREATE TABLE {tables.d} USING iceberg AS {query}"))
    read = {each.snapshot for each in the(Committed, events).inputs}
    assert int(pin.split()[4]) in read
    with lens(spark, pins={branch: int(pin.split()[4])}, reads_elsewhere=True):
        assert ids(spark.table(branch)) == [1, 2]
    with (
        lens(spark, pins={branch: 1}, reads_elsewhere=True),
        pytest.raises(Exception, match=r"that can't be read: \S+"),
    ):
        spark.table(branch)
    tables.copy(tables.c)
    assert ids(newest(spark, tables).sql(query)) == [1, 2, 3]


@pytest.mark.long
def test_a_lens_goes_before_it(made: Tables, reader: SparkSession) -> None:
    """Fails if a session that reads consistently can't have a lens, or has none of its own afterwards."""
    with lens(reader, reads_elsewhere=True):
        assert made.alone(reader) == [2]
    assert made.alone(reader) == []


@pytest.mark.long
def test_a_driver_whose_python_is_busy_answers(made: Tables, reader: SparkSession) -> None:
    """Fails if a statement needs the thread that waits for it, or one that computes."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1_000))

    busy = threading.Thread(target=spin)
    busy.start()
    try:
        assert made.alone(reader) == []
    finally:
        stop.set()
        busy.join()


@pytest.mark.long
def test_a_reader_who_polls_sees_nothing_that_doesnt_belong_together(tables: Tables, spark: SparkSession) -> None:
    """Fails if a moment between two commits shows; beside it the same reader sees one in each round."""
    polled, finished = threading.Semaphore(0), threading.Event()

    def write() -> None:
        try:
            for number in (3, 4, 5):
                tables.grow(number)
                tables.copy(tables.b)
                assert polled.acquire(timeout=120)
                tables.copy(tables.c)
        finally:
            finished.set()

    aligned: list[list[int]] = []
    plain: list[list[int]] = []
    writer = threading.Thread(target=write)
    writer.start()
    while not finished.wait(0.1):
        aligned.append(tables.alone(spark))
        plain.append(tables.alone(tables.driver.spark))
        if plain[-1]:
            polled.release()
    writer.join()
    assert not any(aligned)
    assert sum(map(bool, plain)) >= 3
