"""What is read of Iceberg tables and at which snapshot, their branches and tags, layout, and procedures."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import (
    AlterTable,
    BranchMerged,
    Committed,
    CreateBranch,
    CreateTable,
    CreateTag,
    CreateView,
    DropBranch,
    DropTable,
    DropTag,
    DropView,
    Event,
    Format,
    Gap,
    Input,
    JobName,
    StatementFailed,
    TableName,
)
from headwater.events.catalog import CatalogModification, ModificationEffect
from headwater.events.changes import (
    AddPartitionField,
    DropPartitionField,
    ReplacePartitionField,
    SetOrdering,
    SetPrimaryKey,
    SetProperty,
    TableChange,
)
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode
from headwater.events.tables import SortField, Transform
from headwater.lineage.bulk import merge_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.columns import upstream_columns
from headwater.lineage.questions.tables import upstream_tables
from headwater.lineage.store import open_store
from headwater.listeners.capture.jvm import JavaClasses
from tests.kit.formats.iceberg_truth import Metadata, metadata_at
from tests.kit.spark.driver import ICEBERG, Driver, Extensions, driver_fixture, of, the
from tests.kit.spark.versions import MAJOR, MINOR

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.sample(8), pytest.mark.needs("iceberg")]


VIEWS = Extensions(
    ICEBERG.packages,
    {
        **ICEBERG.conf,
        "spark.sql.catalog.mem": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.mem.catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
        "spark.sql.catalog.mem.warehouse": "{warehouse}/mem",
        "spark.sql.catalog.nowhere": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.nowhere.catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
    },
)
"""A catalog that is kept by path has no views; one that is kept in memory has. One of them points nowhere."""


class History:
    """t(id, s): three appends on main (0, 1, 2), a branch b with one more (3), and a tag g on the first."""

    def __init__(self, driver: Driver, name: str | None = None) -> None:
        self.driver = driver
        self.db = name or driver.database("ice")
        self.table = f"ice.{self.db}.t"
        self.home = driver.warehouse / "ice" / self.db
        driver.run(
            f"CREATE TABLE {self.table} USING iceberg PARTITIONED BY (s) AS SELECT 1 AS id, 'a' AS s",
            f"INSERT INTO {self.table} VALUES (2, 'b')",
            f"INSERT INTO {self.table} VALUES (3, 'b')",
            f"ALTER TABLE {self.table} CREATE BRANCH b",
            f"INSERT INTO {self.table}.branch_b VALUES (4, 'c')",
        )
        driver.run(f"ALTER TABLE {self.table} CREATE TAG g AS OF VERSION {self.ids[0]}")
        self.made = self.ids

    @property
    def truth(self) -> Metadata:
        return metadata_at(self.home / "t")

    @property
    def ids(self) -> list[int]:
        return self.truth.ids

    def fill(self, text: str) -> str:
        times = [each["timestamp-ms"] for each in self.truth.snapshots.values()]
        after = [datetime.fromtimestamp((each + 1) / 1000, timezone.utc).isoformat() for each in times]
        return text.format(t=self.table, db=self.db, s=self.ids, ms=times, after=after, home=self.home / "t")


driver = driver_fixture(VIEWS, "CREATE DATABASE ice.shared", "CREATE TABLE ice.shared.out (id INT) USING iceberg")


@pytest.fixture(scope="module")
def read_only(driver: Driver) -> History:
    return History(driver)


@dataclass(frozen=True)
class Read:
    """A query, and the snapshots (by their number in the table's history) that it reads."""

    name: str
    query: str
    snapshots: tuple[int, ...]
    branch: str | None = None
    tag: str | None = None
    since: int | None = None
    changes: bool = False


@dataclass(frozen=True)
class Options:
    """The same through the reader's options."""

    name: str
    options: Mapping[str, str]
    snapshots: tuple[int, ...]
    branch: str | None = None
    tag: str | None = None
    since: int | None = None
    changes: bool = False


READS = (
    Read("newest", "SELECT id FROM {t}", (2,)),
    Read("filtered", "SELECT id FROM {t} WHERE s = 'b'", (2,)),
    Read("counted from metadata", "SELECT cast(count(*) AS INT) FROM {t}", (2,)),
    Read("counted", "SELECT cast(count(*) AS INT) FROM {t} WHERE id > 1", (2,)),
    Read("version", "SELECT id FROM {t} VERSION AS OF {s[1]}", (1,)),
    Read("version, from metadata", "SELECT cast(max(id) AS INT) FROM {t} VERSION AS OF {s[0]}", (0,)),
    Read("tag as a version", "SELECT id FROM {t} VERSION AS OF 'g'", (0,)),
    Read("branch as a version", "SELECT id FROM {t} VERSION AS OF 'b'", (3,), branch="b"),
    Read("branch", "SELECT id FROM {t}.branch_b", (3,), branch="b"),
    Read("branch, from metadata", "SELECT cast(count(*) AS INT) FROM {t}.branch_b", (3,), branch="b"),
    Read("tag", "SELECT id FROM {t}.tag_g", (0,), tag="g"),
    Read("snapshot in the name", "SELECT id FROM {t}.`snapshot_id_{s[1]}`", (1,)),
    Read("time in the name", "SELECT id FROM {t}.`at_timestamp_{ms[1]}`", (1,)),
    Read("two versions", "SELECT a.id FROM {t} VERSION AS OF {s[0]} a JOIN {t} b ON a.id = b.id", (0, 2)),
    Read("itself twice", "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id", (2,)),
    Read("in a subquery", "SELECT 1 FROM range(1) WHERE EXISTS (SELECT * FROM {t} VERSION AS OF {s[1]})", (1,)),
    Read("in a cte used twice", "WITH c AS (SELECT id FROM {t}) SELECT a.id FROM c a JOIN c b ON a.id = b.id", (2,)),
    Read("nothing of it", "SELECT id FROM {t} WHERE false", ()),
    Read("changes", "SELECT id FROM {t}.changes", (2,), changes=True),
)
_OWN_TIME_TRAVEL = (
    Options("snapshot-id", {"snapshot-id": "{s[1]}"}, (1,)),
    Options("as-of-timestamp", {"as-of-timestamp": "{ms[1]}"}, (1,)),
    Options("tag", {"tag": "g"}, (0,), tag="g"),
)
OPTIONS = (
    Options("versionAsOf", {"versionAsOf": "{s[1]}"}, (1,)),
    # Iceberg for Spark 4 has left time travel to Spark's own option.
    *(_OWN_TIME_TRAVEL if MAJOR < 4 else ()),
    Options("branch", {"branch": "b"}, (3,), branch="b"),
    Options("from a snapshot", {"start-snapshot-id": "{s[0]}"}, (2,), since=0, changes=True),
    Options(
        "between snapshots",
        {"start-snapshot-id": "{s[0]}", "end-snapshot-id": "{s[1]}"},
        (1,),
        since=0,
        changes=True,
    ),
)


@pytest.mark.sample(8)
@pytest.mark.parametrize("read", READS, ids=lambda read: read.name)
def test_read(driver: Driver, read_only: History, read: Read) -> None:
    events = driver.events_of(f"INSERT INTO ice.shared.out {read_only.fill(read.query)}")
    _check_inputs(read, events, read_only)


@pytest.mark.sample(3)
@pytest.mark.parametrize("read", OPTIONS, ids=lambda read: read.name)
def test_read_with_options(driver: Driver, read_only: History, read: Options) -> None:
    def run(spark: SparkSession) -> None:
        options = {key: read_only.fill(text) for key, text in read.options.items()}
        rows = spark.read.format("iceberg").options(**options).load(read_only.table)
        rows.select("id").writeTo("ice.shared.out").append()

    _check_inputs(read, driver.events_of(run), read_only)


def _check_inputs(read: Read | Options, events: list[Event], history: History) -> None:
    inputs = [each for each in the(Committed, events).inputs if each.dataset is not None]
    assert [each.snapshot for each in inputs] == [history.made[number] for number in read.snapshots]
    for each in inputs:
        assert each.table == TableName(catalog="ice", database=history.db, table="t")
        assert (each.generation, each.branch, each.main) == (history.truth.generation, read.branch, read.branch is None)
        assert each.tag == read.tag
        assert each.mode is (ReadMode.CHANGES if read.changes else ReadMode.STATE)
        since = None if each.since is None else each.since.snapshot
        assert since == (None if read.since is None else history.made[read.since])
    assert not of(Gap, events)


def test_a_changelog_view_is_seen_through(driver: Driver, read_only: History) -> None:
    driver.spark.sql(
        f"CALL ice.system.create_changelog_view(table => '{read_only.db}.t', changelog_view => 'seen', "
        f"options => map('start-snapshot-id', '{read_only.made[0]}', 'end-snapshot-id', '{read_only.made[1]}'))"
    ).collect()
    found = _only_input(driver.events_of("INSERT INTO ice.shared.out SELECT id FROM seen"))
    assert (found.mode, found.snapshot) == (ReadMode.CHANGES, read_only.made[1])
    assert found.since is not None
    assert found.since.snapshot == read_only.made[0]


def test_a_table_about_a_table_is_known_by_its_name(driver: Driver, read_only: History) -> None:
    events = driver.events_of(
        f"INSERT INTO ice.shared.out SELECT cast(count(*) AS INT) FROM {read_only.table}.snapshots"
    )
    found = _only_input(events)
    assert found.table == TableName(catalog="ice", database=f"{read_only.db}.t", table="snapshots")
    assert (found.dataset, found.snapshot) == (None, None)
    assert not of(Gap, events)


def test_an_empty_table_has_no_snapshot_to_read(driver: Driver) -> None:
    db = driver.database("ice")
    driver.run(f"CREATE TABLE ice.{db}.e (id INT) USING iceberg")
    events = driver.events_of(f"INSERT INTO ice.shared.out SELECT id FROM ice.{db}.e")
    assert _only_input(events).snapshot is None
    assert not of(Gap, events)


@pytest.mark.smoke
def test_a_cached_frame_was_read_when_it_was_cached(driver: Driver) -> None:
    history = History(driver)
    frame: Any = driver.spark.table(history.table).select("id").cache()
    frame.count()
    other = driver.spark.newSession()
    path = str(history.home / "t")
    other.sql("SELECT 9 AS id, 'z' AS s").write.format("iceberg").mode("append").save(path)
    events = driver.events_of(lambda _: frame.writeTo("ice.shared.out").append())
    frame.unpersist()
    assert history.truth.current not in history.made
    assert _only_input(events).snapshot == history.made[2]


@pytest.mark.smoke
def test_a_cache_of_what_another_session_has_written_since(driver: Driver) -> None:
    """Spark plans such a cache anew. From Spark 4.1 on its tables are pinned, and nothing of the plan that is cached
    has the statement's ids or says what was asked: the snapshot that it is pinned at says which relation it is."""
    history = History(driver)
    frame: Any = driver.spark.table(history.table).select("id").cache()
    frame.count()
    driver.spark.newSession().sql(f"INSERT INTO {history.table} VALUES (9, 'z')")
    frame.createOrReplaceTempView(f"{history.db}_cached")
    path = driver.warehouse / driver.name()

    events = driver.events_of(
        f"INSERT OVERWRITE DIRECTORY '{path}' USING json SELECT id FROM {history.db}_cached",
    )

    frame.unpersist()
    rows = sum(len(each.read_text().splitlines()) for each in path.glob("part-*"))
    assert _only_input(events).snapshot == {3: history.made[2], 4: history.truth.current}[rows]


def test_a_table_that_was_loaded_long_ago_is_read_as_it_was(driver: Driver) -> None:
    """The session keeps tables, and may not see what is committed by the path: told is what it saw."""
    history = History(driver)
    path = str(history.home / "t")
    driver.spark.sql("SELECT 9 AS id, 'z' AS s").write.format("iceberg").mode("append").save(path)
    rows = driver.spark.table(history.table).count()
    events = driver.events_of(f"INSERT INTO ice.shared.out SELECT id FROM {history.table}")
    expected = {3: history.made[2], 4: history.truth.current}[rows]
    assert _only_input(events).snapshot == expected


def _only_input(events: list[Event]) -> Input:
    (found,) = the(Committed, events).inputs
    return found


# Branches and tags


def ref(history: History, name: str) -> dict[str, Any] | None:
    return history.truth.refs.get(name)


def test_branches_are_made_moved_and_dropped(driver: Driver) -> None:
    h = History(driver)
    alter = f"ALTER TABLE {h.table}"
    made = the(CreateBranch, driver.events_of(f"{alter} CREATE BRANCH n"))
    assert (made.branch, made.snapshot, made.replaced, made.generation) == ("n", h.made[2], False, h.truth.generation)
    assert made.identifier == TableName(catalog="ice", database=h.db, table="t")
    assert not driver.events_of(f"{alter} CREATE BRANCH IF NOT EXISTS n")
    lenient = the(CreateBranch, driver.events_of(f"{alter} CREATE BRANCH IF NOT EXISTS n2"))
    assert (lenient.ignore_if_exists, lenient.effect.value) == (True, "APPLIED")
    moved = the(CreateBranch, driver.events_of(f"{alter} REPLACE BRANCH n AS OF VERSION {h.made[0]}"))
    assert (moved.snapshot, moved.replaced) == (h.made[0], True)
    assert not driver.events_of(f"{alter} CREATE OR REPLACE BRANCH n AS OF VERSION {h.made[0]}")
    kept = the(
        CreateBranch,
        driver.events_of(f"{alter} CREATE BRANCH r RETAIN 5 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS"),
    )
    assert kept.retention == "max-ref-age-ms=432000000, min-snapshots-to-keep=3, max-snapshot-age-ms=172800000"
    assert the(DropBranch, driver.events_of(f"{alter} DROP BRANCH n")).branch == "n"
    assert not driver.events_of(f"{alter} DROP BRANCH IF EXISTS n")
    assert set(h.truth.refs) == {"main", "b", "g", "n2", "r"}


def test_tags_are_made_moved_and_dropped(driver: Driver) -> None:
    h = History(driver)
    alter = f"ALTER TABLE {h.table}"
    made = the(CreateTag, driver.events_of(f"{alter} CREATE TAG n"))
    assert (made.tag, made.snapshot, made.retention) == ("n", h.made[2], None)
    assert not driver.events_of(f"{alter} CREATE TAG IF NOT EXISTS n")
    moved = the(CreateTag, driver.events_of(f"{alter} CREATE OR REPLACE TAG n AS OF VERSION {h.made[1]} RETAIN 7 DAYS"))
    assert (moved.snapshot, moved.replaced, moved.retention) == (h.made[1], True, "max-ref-age-ms=604800000")
    fresh = the(CreateTag, driver.events_of(f"{alter} CREATE OR REPLACE TAG n3 AS OF VERSION {h.made[1]}"))
    assert not fresh.replaced
    assert the(DropTag, driver.events_of(f"{alter} DROP TAG IF EXISTS n")).ignore_if_not_exists
    assert not driver.events_of(f"{alter} DROP TAG IF EXISTS n")
    assert set(h.truth.refs) == {"main", "b", "g", "n3"}


def test_a_ref_that_cant_be_dropped_changes_nothing(driver: Driver) -> None:
    h = History(driver)
    assert not of(CatalogModification, driver.events_of_failure(f"ALTER TABLE {h.table} DROP BRANCH none"))


def test_a_ref_of_a_table_named_without_its_catalog(driver: Driver) -> None:
    h = History(driver)
    driver.run(f"USE ice.{h.db}")
    try:
        made = the(CreateTag, driver.events_of("ALTER TABLE t CREATE TAG short"))
    finally:
        driver.run("USE spark_catalog.default")
    assert made.identifier == TableName(catalog="ice", database=h.db, table="t")
    assert made.generation == h.truth.generation


# Layout


@dataclass(frozen=True)
class Layout:
    statement: str
    changes: tuple[TableChange, ...]
    before: tuple[str, ...] = ()


def by(name: str, column: str, *arguments: str, called: str | None = None) -> Transform:
    return Transform(name=name, columns=((column,),), arguments=arguments, field_name=called)


S = Transform(columns=(("s",),))
LAYOUTS = (
    Layout("ADD PARTITION FIELD bucket(8, id)", (AddPartitionField(transform=by("bucket", "id", "8")),)),
    Layout(
        "ADD PARTITION FIELD bucket(8, id) AS shard",
        (AddPartitionField(transform=by("bucket", "id", "8", called="shard")),),
    ),
    Layout("ADD PARTITION FIELD truncate(2, s)", (AddPartitionField(transform=by("truncate", "s", "2")),)),
    Layout("DROP PARTITION FIELD s", (DropPartitionField(transform=S),)),
    Layout(
        "DROP PARTITION FIELD shard",
        (DropPartitionField(transform=by("bucket", "id", "8", called="shard")),),
        ("ADD PARTITION FIELD bucket(8, id) AS shard",),
    ),
    Layout(
        "REPLACE PARTITION FIELD s WITH truncate(1, s)",
        (ReplacePartitionField(transform=S, new_transform=by("truncate", "s", "1")),),
    ),
    Layout(
        "WRITE ORDERED BY id DESC NULLS LAST",
        (
            SetOrdering(ordering=(SortField(by=by("identity", "id"), descending=True, nulls_first=False),)),
            SetProperty(key="write.distribution-mode", value="range"),
        ),
    ),
    Layout("WRITE DISTRIBUTED BY PARTITION", (SetProperty(key="write.distribution-mode", value="hash"),)),
    Layout(
        "SET IDENTIFIER FIELDS n",
        (SetPrimaryKey(columns=(("n",),)),),
    ),
    Layout(
        "DROP IDENTIFIER FIELDS n",
        (SetPrimaryKey(columns=()),),
        ("SET IDENTIFIER FIELDS n",),
    ),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.statement)
def test_layout(driver: Driver, layout: Layout) -> None:
    db = driver.database("ice")
    table = f"ice.{db}.t"
    driver.run(
        f"CREATE TABLE {table} (id INT, n INT NOT NULL, s STRING) USING iceberg PARTITIONED BY (s)",
        *(f"ALTER TABLE {table} {each}" for each in layout.before),
    )
    altered = the(AlterTable, driver.events_of(f"ALTER TABLE {table} {layout.statement}"))
    truth = metadata_at(driver.warehouse / "ice" / db / "t").content
    assert altered.changes == layout.changes
    assert (altered.identifier.table, str(altered.generation)) == ("t", truth["table-uuid"])
    assert altered.schema_id == truth["current-schema-id"]
    assert altered.table is not None
    assert altered.new_table is not None
    assert len(altered.new_table.partitioning) == len(_fields(truth))
    assert len(altered.new_table.ordering) == len(_order(truth))
    assert (altered.new_table.primary_key == (("n",),)) == bool(_schema(truth).get("identifier-field-ids"))


def _fields(truth: dict[str, Any]) -> list[Any]:
    specs = {each["spec-id"]: each["fields"] for each in truth["partition-specs"]}
    found: list[Any] = specs[truth["default-spec-id"]]
    return found


def _order(truth: dict[str, Any]) -> list[Any]:
    orders = {each["order-id"]: each["fields"] for each in truth["sort-orders"]}
    found: list[Any] = orders[truth["default-sort-order-id"]]
    return found


def _schema(truth: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {each["schema-id"]: each for each in truth["schemas"]}[truth["current-schema-id"]]
    return found


# Views


def test_views_of_a_catalog_of_icebergs(driver: Driver) -> None:
    db = driver.database("mem")
    view = TableName(catalog="mem", database=db, table="v")
    driver.run(f"CREATE TABLE mem.{db}.t (id INT, s STRING) USING iceberg")
    events = driver.events_of(f"CREATE VIEW mem.{db}.v (x COMMENT 'why') AS SELECT id FROM mem.{db}.t WHERE s = 'a'")
    made = the(CreateView, events)
    assert (made.identifier, made.replaced) == (view, False)
    assert made.dataset is not None
    assert made.dataset.name == f"{db}.v"
    assert [(column.name, column.comment) for column in made.view.columns] == [("x", "why")]
    assert [source.table for source in made.view.sources] == [TableName(catalog="mem", database=db, table="t")]
    assert {(edge.source, edge.target) for edge in made.view.lineage} == {(("id",), ("x",)), (("s",), None)}
    assert the(CreateView, driver.events_of(f"CREATE OR REPLACE VIEW mem.{db}.v AS SELECT s FROM mem.{db}.t")).replaced
    assert not driver.events_of(f"CREATE VIEW IF NOT EXISTS mem.{db}.v AS SELECT s FROM mem.{db}.t")
    over = the(
        CreateView, driver.events_of(f"CREATE VIEW mem.{db}.w AS SELECT s FROM mem.{db}.v JOIN mem.{db}.t USING (s)")
    )
    assert [(each.dataset == made.dataset, each.table) for each in over.view.sources] == [
        (True, view),
        (False, TableName(catalog="mem", database=db, table="t")),
    ]
    read = driver.events_of(f"INSERT INTO ice.shared.out SELECT cast(s AS INT) FROM mem.{db}.v")
    assert _only_input(read).table == TableName(catalog="mem", database=db, table="t")
    assert the(DropView, driver.events_of(f"DROP VIEW mem.{db}.v")).identifier == view
    unsure = the(DropView, driver.events_of(f"DROP VIEW IF EXISTS mem.{db}.v"))
    assert (unsure.effect, unsure.ignore_if_not_exists) == (ModificationEffect.UNKNOWN, True)


def test_a_view_of_a_catalog_that_points_nowhere_is_missed_aloud(driver: Driver, tmp_path: Path) -> None:
    """Such a view has no identity: another catalog of the name could have another one. So a Gap stands for it, and who
    is defined on it says what isn't followed, instead of a graph without either."""
    db = driver.database("nowhere", "mem", "ice")
    driver.run(f"CREATE TABLE ice.{db}.t (id INT) USING iceberg")

    events = driver.events_of(
        f"CREATE VIEW nowhere.{db}.v AS SELECT id FROM ice.{db}.t",
        f"CREATE VIEW mem.{db}.w AS SELECT id AS x FROM nowhere.{db}.v",
    )

    first, second = of(CreateView, events)
    assert (first.dataset, second.dataset is None) == (None, False)
    assert [gap.detail.split(": ")[0] for gap in of(Gap, events)] == [f"no answer has the view nowhere.{db}.v"]
    with open_store(f"sqlite:///{tmp_path}/lineage.db") as store, store.engine.begin() as connection:
        merge_rows(connection, [row for event in events for row in map_event(event)])
        for answer in (upstream_tables(connection, f"mem.{db}.w"), upstream_columns(connection, f"mem.{db}.w.x")):
            assert answer.rows == ()
            found = [(limit.why, limit.detail) for limit in answer.limits]
            assert found == [(LimitReason.OPAQUE, f"nowhere.{db}.v is known by its name only, and isn't followed")]


# RDDs


def test_an_rdd_below_a_frame_shows_its_table(driver: Driver) -> None:
    """The table and its branch are what tasks get; the snapshot is nowhere in it, and that is a Gap. A table about a
    table shows nothing, nor does Iceberg for Spark 4.1, whose tasks don't get the branch: it needn't have been main."""
    h = History(driver)
    path = driver.warehouse / driver.name()
    table = TableName(catalog="ice", database=h.db, table="t")

    main = driver.events_of(lambda spark: spark.table(h.table).rdd.map(str).saveAsTextFile(f"{path}.main"))
    branch = driver.events_of(
        lambda spark: spark.createDataFrame(spark.table(f"{h.table}.branch_b").rdd).write.json(f"{path}.branch")
    )
    about = driver.events_of(
        lambda spark: spark.table(f"{h.table}.snapshots").rdd.map(str).saveAsTextFile(f"{path}.about")
    )

    if (MAJOR, MINOR) >= (4, 1):
        assert [each.dataset for each in (*the(Committed, main).inputs, *the(Committed, branch).inputs)] == [None, None]
        return
    for events, name in ((main, None), (branch, "b")):
        read, rest = the(Committed, events).inputs
        assert (read.table, read.generation, read.snapshot) == (table, h.truth.generation, None)
        assert (read.branch, read.main, read.format) == (name, name is None, Format.ICEBERG)
        assert (rest.dataset, rest.opaque is None) == (None, False)
        (gap,) = of(Gap, events)
        assert gap.detail == "an RDD of this table doesn't show of which snapshot its files are"
    assert [each.dataset for each in the(Committed, about).inputs] == [None]


# Procedures


@dataclass(frozen=True)
class Called:
    """A call, and what it makes of the table: the kind, and where the snapshot is found in its metadata afterwards."""

    name: str
    call: str
    kind: CommitKind | None = None
    snapshot: Callable[[History], int | None] = field(default=lambda h: h.ids[-1])
    replaced: OverwriteScope = OverwriteScope.UNKNOWN
    rows: int | None = None
    branch: str | None = None
    before: tuple[str, ...] = ()
    also: tuple[type[Event], ...] = ()


def current(h: History) -> int | None:
    return h.truth.current


MIN = "options => map('min-input-files', '2')"
ON_READ = "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
AHEAD = ("CALL ice.system.rollback_to_snapshot('{db}.t', {s[0]})",)
CALLS = (
    Called("rollback", "rollback_to_snapshot('{db}.t', {s[0]})", CommitKind.ROLLBACK, lambda h: h.made[0]),
    Called(
        "rollback in time",
        "rollback_to_timestamp('{db}.t', TIMESTAMP '{after[1]}')",
        CommitKind.ROLLBACK,
        lambda h: h.made[1],
    ),
    Called(
        "set current",
        "set_current_snapshot('{db}.t', {s[3]})",
        CommitKind.RESTORE,
        lambda h: h.made[3],
    ),
    Called("set current by a ref", "set_current_snapshot(table => '{db}.t', ref => 'b')", CommitKind.RESTORE, current),
    Called("set what is current", "set_current_snapshot('{db}.t', {s[2]})"),
    Called(
        "cherry-pick",
        "cherrypick_snapshot('{db}.t', {s[2]})",
        CommitKind.CHERRY_PICK,
        replaced=OverwriteScope.NOTHING,
        rows=1,
        before=AHEAD,
    ),
    Called(
        "cherry-pick what is right ahead",
        "cherrypick_snapshot('{db}.t', {s[1]})",
        CommitKind.CHERRY_PICK,
        lambda h: h.made[1],
        before=AHEAD,
    ),
    Called(
        "fast forward",
        "fast_forward('{db}.t', 'main', 'b')",
        CommitKind.FAST_FORWARD,
        lambda h: h.made[3],
        also=(BranchMerged,),
    ),
    Called(
        "fast forward of a branch",
        "fast_forward('{db}.t', 'old', 'main')",
        CommitKind.FAST_FORWARD,
        lambda h: h.made[2],
        branch="old",
        before=("ALTER TABLE {t} CREATE BRANCH old AS OF VERSION {s[0]}",),
        also=(BranchMerged,),
    ),
    Called(
        "compaction",
        f"rewrite_data_files(table => '{{db}}.t', {MIN})",
        CommitKind.COMPACT,
        replaced=OverwriteScope.NOTHING,
        rows=2,
    ),
    Called("nothing to compact", "rewrite_data_files(table => '{db}.t', options => map('min-input-files', '9'))"),
    Called("manifests", "rewrite_manifests('{db}.t')", CommitKind.REPLACE, replaced=OverwriteScope.NOTHING),
    Called(
        "delete files",
        "rewrite_position_delete_files(table => '{db}.t', options => map('rewrite-all', 'true'))",
        CommitKind.COMPACT,
        replaced=OverwriteScope.NOTHING,
        before=(ON_READ, "INSERT INTO {t} VALUES (7, 'z'), (8, 'z')", "DELETE FROM {t} WHERE id = 8"),
    ),
    Called(
        "publish",
        "publish_changes('{db}.t', 'w')",
        CommitKind.CHERRY_PICK,
        before=(
            "ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')",
            "SET spark.wap.id = w",
            "INSERT INTO {t} VALUES (9, 'w')",
            "RESET spark.wap.id",
        ),
    ),
    Called("expiry", "expire_snapshots(table => '{db}.t', older_than => TIMESTAMP '2001-01-01 00:00:00')"),
    Called("orphans", "remove_orphan_files(table => '{db}.t')"),
    Called("ancestors", "ancestors_of('{db}.t')"),
    Called("statistics", "compute_table_stats('{db}.t')"),
    Called(
        "a table elsewhere",
        "rewrite_table_path(table => '{db}.t', source_prefix => '{home}', target_prefix => '/elsewhere')",
    ),
)


@pytest.mark.sample(8)
@pytest.mark.parametrize("called", CALLS, ids=lambda called: called.name)
def test_procedure(driver: Driver, called: Called) -> None:
    h = History(driver)
    driver.run(*map(h.fill, called.before))
    events = driver.events_of(h.fill(f"CALL ice.system.{called.call}"))
    assert not of(Gap, events)
    assert [type(each) for each in of(CatalogModification, events)] == list(called.also)
    if called.kind is None:
        assert not of(Committed, events)
        return
    output = the(Committed, events).outputs[0]
    snapshot = called.snapshot(h)
    assert snapshot is not None
    assert (output.snapshot, output.commit_kind) == (snapshot, called.kind)
    assert snapshot == h.truth.refs[called.branch or "main"]["snapshot-id"]
    assert output.parent == h.truth.snapshots[snapshot].get("parent-snapshot-id")
    assert (output.branch, output.main, output.generation) == (called.branch, called.branch is None, h.truth.generation)
    assert (output.replaced, output.rows) == (called.replaced, called.rows)
    assert output.table == TableName(catalog="ice", database=h.db, table="t")


def test_a_table_is_registered_under_another_name(driver: Driver) -> None:
    db = driver.database("mem")
    driver.run(f"CREATE TABLE mem.{db}.t USING iceberg AS SELECT 1 AS id")
    *_, (file,) = driver.rows(
        f"SELECT file FROM mem.{db}.t.metadata_log_entries ORDER BY timestamp, latest_snapshot_id"
    )
    made = the(CreateTable, driver.events_of(f"CALL mem.system.register_table('{db}.r', '{file}')"))
    assert made.identifier == TableName(catalog="mem", database=db, table="r")
    (table,) = driver.rows(f"DESCRIBE TABLE EXTENDED mem.{db}.r")[-1:]
    assert made.table is not None
    assert [column.name for column in made.table.columns] == ["id"], table


def test_metadata_that_is_too_large_is_not_read(driver: Driver) -> None:
    """What the session has in memory is reported of all the same; where that isn't enough, a Gap says so."""
    name = driver.database("ice")
    table, home = f"ice.{name}.t", driver.warehouse / "ice" / name / "t"
    driver.run(f"CREATE TABLE {table} (id INT) USING iceberg", f"INSERT INTO {table} VALUES (1)")
    with largest_metadata(driver, 0):
        altered = the(AlterTable, driver.events_of(f"ALTER TABLE {table} ADD COLUMN s STRING"))
        events = driver.events_of(f"ALTER TABLE {table} CREATE TAG later")
    truth = metadata_at(home)
    assert (altered.generation, altered.schema_id) == (truth.generation, truth.content["current-schema-id"])
    assert "couldn't be looked up" in the(Gap, events).detail
    assert not of(CreateTag, events)
    assert the(CreateTag, driver.events_of(f"ALTER TABLE {table} CREATE TAG last")).generation == truth.generation


@contextmanager
def largest_metadata(driver: Driver, most: int) -> Generator[None, None, None]:
    """Files of more bytes are too large to be read."""
    context: Any = driver.spark.sparkContext
    limit = JavaClasses(context).load("IcebergMemory").getDeclaredField("most")
    limit.setAccessible(True)
    before = limit.get(None)
    limit.set(None, context._jvm.java.lang.Long.valueOf(str(most)))
    try:
        yield
    finally:
        limit.set(None, context._jvm.java.lang.Long.valueOf(str(before)))


def test_a_table_that_is_in_no_database(driver: Driver) -> None:
    """A catalog that is kept by path has tables at its root, too: their namespace has no parts."""
    name = driver.name()
    table, home = f"ice.{name}", driver.warehouse / "ice" / name
    made = the(CreateTable, driver.events_of(f"CREATE TABLE {table} (id INT) USING iceberg"))
    changed = the(AlterTable, driver.events_of(f"ALTER TABLE {table} ADD COLUMN s STRING"))
    added = the(Committed, driver.events_of(f"INSERT INTO {table} VALUES (1, 'a')"))
    copied = driver.events_of(f"CREATE TABLE {table}_copy USING iceberg AS SELECT id FROM {table}")
    again = the(Committed, driver.events_of(f"INSERT INTO {table} VALUES (2, 'b')"))
    called = the(Committed, driver.events_of(f"CALL ice.system.rewrite_manifests('{name}')"))
    truth = metadata_at(home)
    identifier = TableName(catalog="ice", database="", table=name)
    assert {made.identifier, changed.identifier, added.outputs[0].table, called.outputs[0].table} == {identifier}
    assert added.job == JobName(name=f"app.ice.{name}")
    assert [each.outputs[0].snapshot for each in (added, again, called)] == truth.ids
    assert {each.generation for each in (made, changed, added.outputs[0])} == {truth.generation}
    places = [each.dataset.name if each.dataset else None for each in (made, added.outputs[0])]
    assert places == [str(home), str(home)]
    (given,), (output,) = the(Committed, copied).inputs, the(Committed, copied).outputs
    assert (given.table, given.snapshot) == (identifier, truth.ids[0])
    assert output.dataset == the(CreateTable, copied).dataset
    assert output.dataset is not None
    assert output.dataset.name == f"{home}_copy"
    assert the(DropTable, driver.events_of(f"DROP TABLE {table}")).generation == truth.generation


def test_a_procedure_that_fails_is_reported_once(driver: Driver) -> None:
    h = History(driver)
    events = driver.events_of_failure(f"CALL ice.system.rollback_to_snapshot('{h.db}.t', 1)")
    failed = the(StatementFailed, events)
    assert len(events) == 1
    assert failed.error.type == "org.apache.iceberg.exceptions.ValidationException"
    assert [output.table for output in failed.outputs] == [TableName(catalog="ice", database=h.db, table="t")]


def test_a_procedure_is_of_the_job_and_the_database_of_its_session(driver: Driver) -> None:
    h = History(driver)
    driver.run(f"USE ice.{h.db}", "SET spark.headwater.job.name = nightly")
    try:
        events = driver.events_of(
            f"CALL ice.system.rollback_to_snapshot('t', {h.made[0]})", "USE spark_catalog.default"
        )
    finally:
        driver.run("RESET spark.headwater.job.name", "USE spark_catalog.default")
    committed = the(Committed, events)
    assert committed.job == JobName(name="nightly")
    assert [output.table for output in committed.outputs] == [TableName(catalog="ice", database=h.db, table="t")]


def test_procedures_of_many_threads(driver: Driver) -> None:
    """Each is recorded with what its own thread committed."""
    histories = [History(driver) for _ in range(4)]

    def compacted(h: History) -> None:
        for number in (5, 6):
            driver.spark.sql(f"INSERT INTO {h.table} VALUES ({number}, 'b')")
            driver.spark.sql(h.fill(f"CALL ice.system.rewrite_data_files(table => '{{db}}.t', {MIN})"))

    with ThreadPoolExecutor(len(histories)) as threads:
        events = driver.events_of(lambda _: list(threads.map(compacted, histories)))
    for h in histories:
        mine = [c for c in of(Committed, events) for o in c.outputs if o.table and o.table.database == h.db]
        replaced = [n for n in h.ids if h.truth.snapshots[n]["summary"]["operation"] == "replace"]
        assert len(replaced) == 2
        found = [c.outputs[0].snapshot for c in mine if c.outputs[0].commit_kind is CommitKind.COMPACT]
        assert sorted(map(str, found)) == sorted(map(str, replaced))
    assert not [each.detail for each in of(Gap, events)]
