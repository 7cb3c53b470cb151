"""What aligned jobs make of the histories of tables, on histories written by hand: roll-backs, tables that are made
again, and what isn't read a second time."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.versions.aligned.formats.iceberg import IcebergTable
from headwater.versions.aligned.formats.paimon import PaimonTable, runs_without_changes
from headwater.versions.aligned.formats.protocol import (
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    session_settings,
)
from headwater.versions.cuts import TableSnapshot
from tests.kit.versions.delta_story import NOTHING, DeltaStory, add

ADDS, CHANGES, KEEPS = CommitEffect.ADDS, CommitEffect.CHANGES, CommitEffect.KEEPS


def effects(commits: list[SourceCommit] | None) -> dict[int, CommitEffect] | None:
    return None if commits is None else {each.snapshot: each.effect for each in commits}


# Iceberg


@dataclass
class IcebergStory:
    """A table of Iceberg: snapshots with their parents, by number."""

    id: str = "one"
    parents: dict[int, int | None] = field(default_factory=dict)
    operations: dict[int, str] = field(default_factory=dict)
    properties: dict[int, dict[str, str]] = field(default_factory=dict)
    now: int | None = None
    branches: dict[str, int] = field(default_factory=dict)
    walked: list[int] = field(default_factory=list)
    can_refresh: bool = True

    def add(self, number: int, operation: str = "append", **properties: str) -> None:
        self.parents[number], self.operations[number], self.now = self.now, operation, number
        self.properties[number] = properties

    def uuid(self) -> str:
        return self.id

    def refresh(self) -> None:
        if not self.can_refresh:
            raise ValueError("Table UUID does not match")

    def snapshot(self, ref: int | str) -> Any:
        number = self.branches.get(ref, -1) if isinstance(ref, str) else ref
        if number not in self.parents:
            return None
        return SimpleNamespace(
            snapshotId=lambda: number,
            parentId=lambda: self._walk(number),
            timestampMillis=lambda: list(self.parents).index(number),
            operation=lambda: self.operations[number],
            summary=lambda: self.properties[number],
        )

    def currentSnapshot(self) -> Any:  # noqa: N802 - Iceberg's name
        return None if self.now is None else self.snapshot(self.now)

    def _walk(self, number: int) -> int | None:
        self.walked.append(number)
        return self.parents[number]


def iceberg(story: IcebergStory, name: str = "lake.t", branch: str | None = "main") -> IcebergTable:
    conf = SimpleNamespace(get=lambda _, default: default)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app"), conf=conf)
    found = IcebergTable(spark, name)
    look(found, story, branch=branch)
    return found


def look(
    table: IcebergTable, story: IcebergStory, again: IcebergStory | None = None, branch: str | None = "main"
) -> None:
    loaded: Any = SimpleNamespace(
        table=SimpleNamespace(table=lambda: story, branch=lambda: branch),
        reload=lambda: SimpleNamespace(table=SimpleNamespace(table=lambda: again)),
    )
    table.look(loaded)


@pytest.fixture
def story() -> IcebergStory:
    found = IcebergStory()
    for number, operation in ((10, "append"), (7, "append"), (30, "replace"), (4, "delete")):
        found.add(number, operation)
    return found


def test_icebergs_history_is_read_once(story: IcebergStory) -> None:
    """It finds a barrier that walks again through what the one before has seen."""
    table = iceberg(story)
    at = TableSnapshot(10, "one")
    assert effects(table.commits_after(at)) == {7: ADDS, 30: KEEPS, 4: CHANGES}
    story.walked.clear()
    story.add(5)
    look(table, story)
    assert effects(table.commits_after(TableSnapshot(7, "one"))) == {30: KEEPS, 4: CHANGES, 5: ADDS}
    assert story.walked == [5]
    assert effects(table.commits_after(at)) == {7: ADDS, 30: KEEPS, 4: CHANGES, 5: ADDS}


def test_a_roll_back_of_iceberg_is_noticed_though_its_history_is_known(story: IcebergStory) -> None:
    """It finds a history from memory that goes on as if nothing had happened."""
    table = iceberg(story)
    table.commits_after(TableSnapshot(10, "one"))
    story.now = 7
    look(table, story)
    assert effects(table.commits_after(TableSnapshot(10, "one"))) == {7: ADDS}
    assert table.commits_after(TableSnapshot(4, "one")) is None
    story.add(8)
    look(table, story)
    assert effects(table.commits_after(TableSnapshot(10, "one"))) == {7: ADDS, 8: ADDS}
    assert table.commits_after(TableSnapshot(30, "one")) is None


def test_an_expired_snapshot_of_iceberg_isnt_known_from_memory(story: IcebergStory) -> None:
    table = iceberg(story)
    table.commits_after(TableSnapshot(10, "one"))
    del story.parents[10]
    look(table, story)
    assert table.commits_after(TableSnapshot(10, "one")) is None


def test_a_table_of_iceberg_that_was_made_again_is_noticed(story: IcebergStory) -> None:
    """Its catalog can't refresh what it has of the table before; snapshots of both have the same numbers here."""
    table = iceberg(story)
    table.commits_after(TableSnapshot(10, "one"))
    story.can_refresh, other = False, IcebergStory(id="two")
    for number in (10, 7):
        other.add(number)
    look(table, story, again=other)
    with pytest.raises(UnalignableTableError, match="dropped and made again"):
        table.commits_after(TableSnapshot(10, "one"))
    assert effects(table.commits_after(TableSnapshot(10, "two"))) == {7: ADDS}


def test_a_source_that_is_a_branch_of_iceberg_has_its_history(story: IcebergStory) -> None:
    """It finds a branch that is looked at on main. Iceberg takes a version behind the table's own name only."""
    story.branches["test"] = 30
    story.now, main = 30, story.now
    story.add(8)
    story.branches["test"], story.now = 8, main
    table = iceberg(story, "lake.db.t.branch_test", "test")
    assert (table.newest(), iceberg(story).newest()) == (8, 4)
    assert effects(table.commits_after(TableSnapshot(10, "one"))) == {7: ADDS, 30: KEEPS, 8: ADDS}
    assert table.commits_after(TableSnapshot(4, "one")) is None
    with pytest.raises(UnalignableTableError, match="use an aligned query"):
        table.stream_options(30)
    assert table.read_name == "lake.db.t"
    assert iceberg(story, "lake.db.t.branch_main").read_name == "lake.db.t"
    assert iceberg(story, "lake.db.branch_test", None).read_name == "lake.db.branch_test"


def test_marks_of_iceberg_are_looked_for_as_far_as_needed() -> None:
    story = IcebergStory()
    story.add(1)
    story.add(2, **{"headwater.barrier": "mine/1", "spark.app.id": "app"})
    story.add(3, **{"spark.app.id": "app"})
    table = iceberg(story)
    assert table.find_mark("mine/1", 1).snapshot == 2
    assert (table.find_mark("mine/2", 1).snapshot, table.find_mark("mine/2", 1).is_certain) == (None, True)
    assert table.find_mark("his/2", 99).is_certain is False
    assert table.find_mark("his/2", None).is_certain is True
    assert "snapshot 3 doesn't carry" in (table.fault_of_write("mine/2", 2) or "")
    assert table.fault_of_write("mine/1", 1) is None
    assert table.fault_of_write("mine/2", 3) is None
    story.walked.clear()
    assert (table.find_mark("mine/2", None).snapshot, table.find_mark("mine/2", None).is_certain) == (None, True)
    assert 2 not in story.walked, "there is none before an earlier barrier"
    story.add(4, **{"headwater.barrier": "mine/1"})
    assert "more than one commit" in (table.fault_of_write("mine/1", 1) or "")


# Delta


@pytest.fixture
def delta() -> DeltaStory:
    found = DeltaStory()
    found.log = {
        0: [{"metaData": {}}, {"commitInfo": {"operation": "CREATE TABLE"}}],
        1: [add(), {"txn": {"appId": "a/1", "version": 4}}],
        2: [add(dataChange=False), {"remove": {"path": "f", "dataChange": False}}],
        3: [add(), {"remove": {"path": "f"}}, {"commitInfo": {"operation": "DELETE"}}],
    }
    return found.now()


def test_deltas_log_is_read_once(delta: DeltaStory) -> None:
    """It finds a barrier that reads again what the one before has read."""
    assert effects(delta.commits_after(TableSnapshot(0, "one"))) == {1: ADDS, 2: KEEPS, 3: CHANGES}
    delta.log[4] = [add()]
    delta.now().reads.clear()
    assert effects(delta.commits_after(TableSnapshot(1, "one"))) == {2: KEEPS, 3: CHANGES, 4: ADDS}
    assert delta.reads == [4]
    assert delta.commits_after(TableSnapshot(4, "one")) == []


def test_a_table_of_delta_that_was_made_again_has_another_history(delta: DeltaStory) -> None:
    """It finds commits of a dropped table that are taken for those of the new one with their numbers."""
    delta.commits_after(TableSnapshot(0, "one"))
    delta.log = {number: [add()] for number in range(4)}
    delta.now("two")
    assert effects(delta.commits_after(TableSnapshot(0, "two"))) == {1: ADDS, 2: ADDS, 3: ADDS}
    with pytest.raises(UnalignableTableError, match="dropped and made again"):
        delta.commits_after(TableSnapshot(0, "one"))
    with pytest.raises(UnalignableTableError, match="dropped and made again"):
        delta.state(TableSnapshot(0, "one"))


def test_a_log_of_delta_that_was_set_back_or_cleaned_is_noticed(delta: DeltaStory) -> None:
    delta.commits_after(TableSnapshot(0, "one"))
    del delta.log[3]
    delta.now()
    assert delta.commits_after(TableSnapshot(3, "one")) is None
    delta.log[3] = [add()]
    delta.now()
    assert effects(delta.commits_after(TableSnapshot(2, "one"))) == {3: ADDS}
    cleaned = DeltaStory()
    cleaned.log = {3: [add()], 4: [add()]}
    cleaned.now()
    assert cleaned.commits_after(TableSnapshot(1, "one")) is None
    assert effects(cleaned.commits_after(TableSnapshot(2, "one"))) == {3: ADDS, 4: ADDS}


def test_what_a_restore_of_delta_took_back_is_no_change(delta: DeltaStory) -> None:
    """It finds a job that stops at a roll-back though it has read nothing of what was rolled back, and one that reads
    rows which were lost. What came before the snapshot that was restored is changed for whoever has read more."""
    restore = {"commitInfo": {"operation": "RESTORE", "operationParameters": {"version": 1, "timestamp": None}}}
    delta.log[4] = [add(), {"remove": {"path": "f"}}, restore]
    delta.log[5] = [add()]
    delta.now()
    assert effects(delta.commits_after(TableSnapshot(0, "one"))) == {1: ADDS, 4: KEEPS, 5: ADDS}
    assert effects(delta.commits_after(TableSnapshot(1, "one"))) == {4: KEEPS, 5: ADDS}
    assert effects(delta.commits_after(TableSnapshot(2, "one"))) == {3: CHANGES, 4: CHANGES, 5: ADDS}
    undo = {"commitInfo": {"operation": "RESTORE", "operationParameters": {"version": 3, "timestamp": None}}}
    delta.log[6] = [add(), {"remove": {"path": "f"}}, undo]
    delta.now()
    assert effects(delta.commits_after(TableSnapshot(1, "one"))) == {2: KEEPS, 3: CHANGES, 6: KEEPS}


def test_marks_of_delta_are_transactions(delta: DeltaStory) -> None:
    assert delta.find_mark("a/1/4", 0).snapshot == 1
    assert delta.find_mark("a/1/4", 1).snapshot is None
    found = [delta.find_mark(each, None).snapshot for each in ("a/1/3", "a/1/4", "a/1/5", "b/1/4")]
    assert [each is not None for each in found] == [True, True, False, False]


# Paimon


@dataclass
class PaimonStory:
    """A table of Paimon: the kind, the user and the index of each snapshot."""

    snapshots: dict[int, tuple[str, str, str | None]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    removing: set[int] = field(default_factory=set)
    properties: dict[str, str] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    """Of snapshots that have those of another one."""

    def snapshotManager(self) -> Any:  # noqa: N802 - Paimon's names
        return SimpleNamespace(
            snapshotExists=self.snapshots.__contains__,
            latestSnapshotId=lambda: max(self.snapshots, default=None),
            snapshot=self._snapshot,
        )

    def schemaManager(self) -> Any:  # noqa: N802
        return SimpleNamespace(schema=lambda _: SimpleNamespace(timeMillis=lambda: 5))

    def store(self) -> Any:
        """The manifests of a snapshot."""

        def read(snapshot: Any) -> list[Any]:
            return [SimpleNamespace(fileName=lambda name=name: name) for name in snapshot.files]

        lists = SimpleNamespace(readDataManifests=read)
        return SimpleNamespace(manifestListFactory=lambda: SimpleNamespace(create=lambda: lists))

    def options(self) -> dict[str, str]:
        return self.properties

    def primaryKeys(self) -> list[str]:  # noqa: N802
        return self.keys

    def _snapshot(self, number: int) -> Any:
        kind, user, index = self.snapshots[number]
        return SimpleNamespace(
            commitKind=lambda: SimpleNamespace(toString=lambda: kind),
            commitUser=lambda: user,
            indexManifest=lambda: index,
            timeMillis=lambda: number,
            files=["base", self.files.get(number, str(number))],
        )


class StoryOfPaimon(PaimonTable):
    """Its files are said by the story."""

    def _removes_files(self, number: int) -> bool:
        return number in self._table.removing


def paimon(story: PaimonStory) -> PaimonTable:
    found = StoryOfPaimon(NOTHING, "t")
    loaded: Any = SimpleNamespace(reload=lambda: SimpleNamespace(table=SimpleNamespace(getTable=lambda: story)))
    found.look(loaded)
    return found


def test_what_paimon_calls_an_append_or_a_compaction_may_change_rows() -> None:
    """It finds rows that replace others, or come with deletions, and are given as additions."""
    kinds = ("APPEND", "APPEND", "COMPACT", "APPEND", "COMPACT")
    story = PaimonStory({number: (kind, "u", None) for number, kind in enumerate(kinds, 1)}, removing={4})
    story.snapshots[5] = ("COMPACT", "u", "deletions")
    first = TableSnapshot(1, "5", "u 1")
    assert effects(paimon(story).commits_after(first)) == {2: ADDS, 3: KEEPS, 4: CHANGES, 5: CHANGES}
    story.keys = ["id"]
    assert effects(paimon(story).commits_after(first)) == {2: CHANGES, 3: KEEPS, 4: CHANGES, 5: CHANGES}


def test_a_table_of_paimon_with_deletions_beside_its_files_carries_no_mark() -> None:
    """It finds an UPDATE whose first commit was made, and passes for both."""
    story = PaimonStory({1: ("APPEND", "u", None)})
    assert paimon(story).can_mark
    story.properties = {"deletion-vectors.enabled": "true"}
    assert not paimon(story).can_mark


def test_a_roll_back_of_paimon_is_noticed_though_its_numbers_come_again() -> None:
    """It finds a cut that takes another snapshot for its own, because that has its number."""
    story = PaimonStory({number: ("APPEND", f"u{number}", None) for number in (1, 2, 3)})
    at = paimon(story).at(2)
    assert at == TableSnapshot(2, "5", "u2 2")
    assert effects(paimon(story).commits_after(at)) == {3: ADDS}
    story.snapshots[2] = ("APPEND", "another", None)
    with pytest.raises(UnalignableTableError, match="was rolled back"):
        paimon(story).commits_after(at)
    del story.snapshots[2], story.snapshots[3]
    assert paimon(story).commits_after(at) is None


def test_what_a_roll_back_of_paimon_took_back_is_no_change() -> None:
    """The snapshot that it made has the files of the one that was rolled back to; another overwrite has its own."""
    kinds = ("APPEND", "APPEND", "APPEND", "OVERWRITE", "APPEND", "OVERWRITE")
    story = PaimonStory({number: (kind, "u", None) for number, kind in enumerate(kinds, 1)}, files={4: "1"})
    first = TableSnapshot(1, "5", "u 1")
    assert effects(paimon(story).commits_after(first)) == {4: KEEPS, 5: ADDS, 6: CHANGES}
    later = TableSnapshot(2, "5", "u 2")
    assert effects(paimon(story).commits_after(later)) == {3: ADDS, 4: CHANGES, 5: ADDS, 6: CHANGES}


def test_rows_of_a_roll_back_of_paimon_are_added_once() -> None:
    """Its snapshot tells again what was added before the one that it went back to; what was lost is between."""
    commits = [
        *(SourceCommit(2, ADDS, "APPEND"), SourceCommit(5, KEEPS, "OVERWRITE", restores=2)),
        *(SourceCommit(6, ADDS, "APPEND"), SourceCommit(7, KEEPS, "COMPACT"), SourceCommit(8, CHANGES, "OVERWRITE")),
    ]
    assert list(runs_without_changes(commits)) == [(2, 2), (6, 7)]


def test_marks_of_paimon_are_users_of_commits() -> None:
    story = PaimonStory(
        {number: ("APPEND", user, None) for number, user in ((4, "m/1_x"), (5, "m/11_y"), (6, "other"))}
    )
    table = paimon(story)
    assert table.find_mark("m/1", 3).snapshot == 4
    assert table.find_mark("m/11", 3).snapshot == 5
    assert (table.find_mark("m/2", 3).snapshot, table.find_mark("m/2", 3).is_certain) == (None, True)
    assert table.find_mark("m/2", 2).is_certain is True, "there is none before an earlier barrier"
    assert table.find_mark("n/2", 2).is_certain is False, "snapshot 3 has expired, and may have been it"
    assert table.find_mark("m/2", 7).is_certain is False, "it was rolled back"
    assert table.fault_of_write("m/1", 3) is None
    story.snapshots[7] = ("APPEND", "m/1_z", None)
    assert "more than one commit" in (table.fault_of_write("m/1", 3) or "")


# all


def test_settings_of_a_session_are_as_before_after_a_write() -> None:
    class Conf(dict[str, str]):
        def set(self, key: str, value: str) -> None:
            self[key] = value

        def unset(self, key: str) -> None:
            del self[key]

    spark: Any = SimpleNamespace(conf=Conf(a="1"))
    seen: list[dict[str, str]] = []

    def write() -> None:
        with session_settings(spark, {"a": "2", "b": "3"}):
            seen.append(dict(spark.conf))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        write()
    assert seen == [{"a": "2", "b": "3"}]
    assert spark.conf == {"a": "1"}
