"""What was committed aside and is published later: held back by `spark.wap.id`, on a branch, or rolled back.

Truth: Iceberg's own metadata files, and the rows that the tables have.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.consumers.reconcile.comparison import reconciled_event
from headwater.consumers.reconcile.files import LocalLogFiles
from headwater.consumers.reconcile.iceberg import read_log
from headwater.events import Committed, Event, Gap, Input, Output
from headwater.events.jobs import CommitKind, OverwriteScope, RangeStart, ReadMode
from headwater.lineage.client import Lineage
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from headwater.versions import align, check, contained
from tests.kit.formats.iceberg_truth import Metadata, metadata_at
from tests.kit.spark.driver import ICEBERG, Driver, driver_fixture, of, the

pytestmark = [pytest.mark.long, pytest.mark.needs("iceberg")]

WAP = "TBLPROPERTIES ('write.wap.enabled' = 'true')"


driver = driver_fixture(ICEBERG)


class Place:
    """A database in which `a` feeds `t`: a session holds the rows of `a`'s first snapshot back."""

    def __init__(self, driver: Driver, store: Path) -> None:
        self.driver = driver
        self.db = driver.database("ice")
        self.a, self.t, self.u = (f"ice.{self.db}.{name}" for name in "atu")
        self._store = str(store)
        self.tell(
            f"CREATE TABLE {self.a} (id INT) USING iceberg",
            f"INSERT INTO {self.a} VALUES (1)",
            f"CREATE TABLE {self.t} (id INT, p INT) USING iceberg PARTITIONED BY (p) {WAP}",
            f"INSERT INTO {self.t} VALUES (0, 0)",
        )

    def tell(self, *statements: Any) -> list[Event]:
        """Run statements, and store what was captured of them."""
        events = self.driver.events_of(*statements)
        with open_store(self._store) as opened:
            for event in events:
                opened.merge(map_event(event))
        return events

    def hold_back(self, *statements: str, name: str = "w1") -> list[Event]:
        return self.tell(f"SET spark.wap.id = {name}", *statements, "RESET spark.wap.id")

    def call(self, procedure: str) -> list[Event]:
        return self.tell(f"CALL ice.system.{procedure}")

    def truth(self, table: str = "t") -> Metadata:
        return metadata_at(self.driver.warehouse / "ice" / self.db / table)

    def held(self) -> int:
        """The snapshot that was held back last."""
        return [n for n, each in self.truth().snapshots.items() if "wap.id" in each["summary"]][-1]

    @property
    def store(self) -> str:
        return self._store

    def ids(self, table: str, snapshot: int | None) -> list[int]:
        """What a table got of `a`, by its rows at a snapshot."""
        condition = "p = 1" if table == self.t else "true"
        return [
            row.id for row in self.driver.rows(f"SELECT id FROM {table} VERSION AS OF {snapshot} WHERE {condition}")
        ]


@pytest.fixture
def place(driver: Driver, tmp_path: Path) -> Place:
    return Place(driver, tmp_path / "store.db")


def picked_of(events: Sequence[Event]) -> tuple[Input, Output]:
    """The only input and output of the commit, of which the output was made from the input."""
    committed = the(Committed, events)
    (read,), (made,) = committed.inputs, committed.outputs
    assert made.made_from == (0,)
    return read, made


def is_picked(events: Sequence[Event], truth: Metadata, source: int, *, main: bool, branch: str | None = None) -> None:
    """What is recorded is what the summary of the newest snapshot says, and what is read from the table's log later."""
    newest = truth.snapshots[truth.ids[-1]]
    assert newest["summary"]["source-snapshot-id"] == str(source)
    read, made = picked_of(events)
    assert (made.snapshot, made.parent) == (newest["snapshot-id"], newest.get("parent-snapshot-id"))
    assert (made.commit_kind, made.main, made.branch) == (CommitKind.CHERRY_PICK, True, None)
    parent = truth.snapshots[source]["parent-snapshot-id"]
    assert (read.snapshot, read.mode, read.since) == (source, ReadMode.CHANGES, RangeStart(snapshot=parent))
    assert (read.main, read.branch) == (main, branch)
    assert (read.dataset, read.table, read.generation) == (made.dataset, made.table, truth.generation)
    assert not of(Gap, events)
    assert made.dataset is not None
    log = read_log(LocalLogFiles(Path(made.dataset.name)))
    assert log is not None
    [commit] = [each for each in log.commits if each.snapshot == made.snapshot]
    again = reconciled_event(made.dataset, log, commit)
    assert [each.model_copy(update={"table": made.table, "rows": made.rows}) for each in again.outputs] == [made]
    assert [each.model_copy(update={"table": read.table}) for each in again.inputs] == [read]


@pytest.mark.parametrize("way", ["publish_changes('{db}.t', 'w1')", "cherrypick_snapshot('{db}.t', {held})"])
def test_what_was_held_back_is_made_from_its_own_commit(place: Place, way: str) -> None:
    place.hold_back(f"INSERT INTO {place.t} SELECT id, 1 FROM {place.a}")
    held = place.held()
    assert place.truth().current != held
    place.tell(f"INSERT INTO {place.t} VALUES (3, 3)")
    events = place.call(way.format(db=place.db, held=held))
    assert place.truth().snapshots[place.truth().ids[-1]]["summary"]["published-wap-id"] == "w1"
    is_picked(events, place.truth(), held, main=False)


def test_what_was_on_main_once_and_is_picked_again(place: Place) -> None:
    first = place.truth().current
    place.tell(f"INSERT INTO {place.t} VALUES (1, 1)", f"INSERT INTO {place.t} VALUES (2, 2)")
    last = place.truth().current
    assert last is not None
    place.call(f"rollback_to_snapshot('{place.db}.t', {first})")
    is_picked(place.call(f"cherrypick_snapshot('{place.db}.t', {last})"), place.truth(), last, main=True)


def test_partitions_that_were_replaced_on_a_branch(place: Place) -> None:
    """Iceberg picks an overwrite only where it replaced partitions that nobody changed meanwhile."""
    place.tell(f"ALTER TABLE {place.t} CREATE BRANCH b")
    place.driver.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        place.tell(f"INSERT OVERWRITE {place.t}.branch_b SELECT id, 1 FROM {place.a}")
    finally:
        place.driver.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    there = place.truth().head("b")
    place.tell(f"INSERT INTO {place.t} VALUES (3, 3)")
    events = place.call(f"cherrypick_snapshot('{place.db}.t', {there})")
    is_picked(events, place.truth(), there, main=False, branch="b")
    assert picked_of(events)[1].replaced is OverwriteScope.PART


def test_the_first_snapshot_of_a_table_is_a_state(place: Place) -> None:
    """It has no parent after which its changes begin: what it added is all that it has."""
    place.tell(f"CREATE TABLE {place.u} (id INT) USING iceberg {WAP}")
    place.hold_back(f"INSERT INTO {place.u} SELECT id FROM {place.a}")
    (held,) = place.truth("u").ids
    place.tell(f"INSERT INTO {place.u} VALUES (3)")
    read, _ = picked_of(place.call(f"publish_changes('{place.db}.u', 'w1')"))
    assert (read.snapshot, read.mode, read.since) == (held, ReadMode.STATE, None)


def feed_u_twice(place: Place) -> tuple[int, int]:
    """`u` has what `a` has, and once more after `a` has grown."""
    place.tell(f"CREATE TABLE {place.u} USING iceberg AS SELECT * FROM {place.a}")
    place.tell(f"INSERT INTO {place.a} VALUES (2)", f"INSERT OVERWRITE {place.u} SELECT * FROM {place.a}")
    first, second = place.truth("u").ids
    return first, second


PUBLISH = {
    "picked": ("INSERT INTO {t} VALUES (3, 3)", "CALL ice.system.publish_changes('{db}.t', 'w1')"),
    "right ahead": ("CALL ice.system.publish_changes('{db}.t', 'w1')",),
    "by its number": ("INSERT INTO {t} VALUES (3, 3)", "CALL ice.system.cherrypick_snapshot('{db}.t', {held})"),
    "compacted before": (
        "INSERT INTO {t} VALUES (3, 3)",
        "CALL ice.system.rewrite_manifests('{db}.t')",
        "CALL ice.system.publish_changes('{db}.t', 'w1')",
    ),
}


@pytest.mark.parametrize("way", PUBLISH)
def test_which_versions_belong_to_what_was_published(place: Place, way: str) -> None:
    """Before it is published, `t` has nothing of `a`; then it has the first snapshot, as its rows do."""
    place.hold_back(f"INSERT INTO {place.t} SELECT id, 1 FROM {place.a}")
    held = place.held()
    first, second = feed_u_twice(place)
    with Lineage.open(place.store) as lineage:
        assert not contained(lineage, place.t).rows
        assert place.ids(place.t, place.truth().current) == []
        place.tell(*(each.format(t=place.t, db=place.db, held=held) for each in PUBLISH[way]))
        published = place.truth().current
        assert (published == held) == (way == "right ahead")
        assert place.ids(place.t, published) == place.ids(place.u, first) != place.ids(place.u, second)
        assert check(lineage, [place.t, f"{place.u}@{first}"]).is_consistent is True
        assert check(lineage, [place.t, f"{place.u}@{second}"]).is_consistent is False
        assert [each.table.snapshot for each in align(lineage, [place.t, place.u]).rows] == [published, first]
        assert not contained(lineage, place.t).limits


def test_which_versions_belong_to_a_branch_that_was_merged(place: Place) -> None:
    place.tell(f"ALTER TABLE {place.t} CREATE BRANCH b", f"INSERT INTO {place.t}.branch_b SELECT id, 1 FROM {place.a}")
    first, second = feed_u_twice(place)
    with Lineage.open(place.store) as lineage:
        assert not contained(lineage, place.t).rows
        events = place.call(f"fast_forward('{place.db}.t', 'main', 'b')")
        (output,) = the(Committed, events).outputs
        assert (output.snapshot, output.commit_kind) == (place.truth().head("b"), CommitKind.FAST_FORWARD)
        assert place.ids(place.t, place.truth().current) == place.ids(place.u, first)
        assert check(lineage, [place.t, f"{place.u}@{first}"]).is_consistent is True
        assert check(lineage, [place.t, f"{place.u}@{second}"]).is_consistent is False
