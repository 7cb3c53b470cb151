"""What every format of `headwater.branch_formats` must do, as a test class: subclass it, and give it a table.

    class TestAcme(FormatBranchesContract):
        @pytest.fixture
        def table(self, spark): return AcmeTable(spark, "lake.db.t")

It needs `pytest`. Branches, roll-backs and the switch of a correction stand on the same methods, so one suite has them
all. More cases will be added within a major version.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timezone

import pytest

from headwater.versions.branches import Branch, BranchError, FormatBranches, MainMovedError


class TableUnderTest(ABC):
    """A table with a column `id`, and what others do with it. It has the rows 1 and 2, each by a commit, then the tag,
    and then row 3."""

    tag: str
    """The tag behind row 2."""

    @abstractmethod
    def open(self) -> FormatBranches:
        """Return the table's branches, as a new process would see them."""

    @abstractmethod
    def add(self, number: int, branch: Branch | None = None) -> None:
        """Append a row to main or to a branch, by one commit."""

    @abstractmethod
    def overwrite(self, number: int) -> None:
        """Let main have this row alone, by one commit."""

    @abstractmethod
    def ids(self, branch: Branch | None = None) -> list[int]:
        """Return the rows of main or of a branch, sorted."""

    @abstractmethod
    def expire(self) -> None:
        """Let the format's own expiry take all that it may of main, whatever its age."""


class FormatBranchesContract:
    """For formats of tables that have branches."""

    @pytest.fixture
    def table(self) -> TableUnderTest:
        raise AssertionError("a suite says how its table is made")

    def test_a_branch_begins_at_its_tag_and_is_independent_of_main(self, table: TableUnderTest) -> None:
        formats = table.open()
        made = _make_branch(formats, table)
        assert (made.name, made.tag, table.ids(made), list(formats.branches())) == ("fix", table.tag, [1, 2], [made])
        assert made.tagged_snapshot == formats.tagged_snapshot(table.tag)
        table.add(9, made)
        table.add(4)
        assert (table.ids(made), table.ids()) == ([1, 2, 9], [1, 2, 3, 4])
        formats.look()
        assert len(formats.own_snapshots(formats.branches()[0])) == 1
        formats.delete(formats.branches()[0])
        assert (list(table.open().branches()), table.ids()) == ([], [1, 2, 3, 4])
        with pytest.raises(BranchError):
            formats.tagged_snapshot("never")

    def test_main_takes_a_branchs_rows_by_one_commit_that_is_found_by_its_mark(self, table: TableUnderTest) -> None:
        branch = _make_branch(table.open(), table)
        table.add(9, branch)
        formats = table.open()
        planned = formats.plan_move(formats.branches()[0])
        assert planned.previous == formats.main_head()
        assert len(planned.lost_snapshots) == 1
        moved = formats.move_main(planned, "a mark")
        after = table.open()
        assert (table.ids(), table.ids(branch)) == ([1, 2, 9], [1, 2, 9])
        assert moved.snapshot == after.main_head() == after.marked_snapshot(planned.previous, "a mark")
        assert after.marked_snapshot(planned.previous, "another mark") is None
        table.add(10, branch)
        table.add(4)
        assert (table.ids(), table.ids(branch)) == ([1, 2, 4, 9], [1, 2, 9, 10])

    def test_no_commit_of_others_is_lost_by_a_move_or_a_roll_back(self, table: TableUnderTest) -> None:
        branch = _make_branch(table.open(), table)
        table.add(9, branch)
        formats = table.open()
        planned, before = formats.plan_move(formats.branches()[0]), formats.main_head()
        table.add(4)
        with pytest.raises(MainMovedError):
            formats.move_main(planned, "a mark")
        with pytest.raises(MainMovedError):
            formats.roll_back(formats.tagged_snapshot(table.tag), before, "a mark")
        assert table.ids() == [1, 2, 3, 4]
        assert table.open().marked_snapshot(before, "a mark") is None

    def test_a_roll_back_gives_a_table_its_rows_of_before_and_is_undone_by_another(self, table: TableUnderTest) -> None:
        formats = table.open()
        to, head = formats.tagged_snapshot(table.tag), _head(formats)
        done = formats.roll_back(to, head, "a mark")
        after = table.open()
        assert (table.ids(), done.to, done.previous) == ([1, 2], to, head)
        assert done.snapshot == after.main_head() == after.marked_snapshot(head, "a mark")
        undone = after.roll_back(head, done.snapshot, "another mark")
        assert (table.ids(), table.open().marked_snapshot(done.snapshot, "another mark")) == (
            [1, 2, 3],
            undone.snapshot,
        )
        table.add(4)
        assert table.ids() == [1, 2, 3, 4]

    def test_what_main_got_back_stays_when_former_snapshots_expire(self, table: TableUnderTest) -> None:
        """The overwrite has removed what the roll-back needs, and an expiry may delete what was removed."""
        before = _head(table.open())
        table.overwrite(50)
        removed = _head(table.open())
        done = table.open().roll_back(before, removed)
        table.expire()
        assert table.ids() == [1, 2, 3]
        formats = table.open()
        if (problem := formats.unreadable(removed)) is not None:
            with pytest.raises(BranchError, match=str(removed)):
                formats.roll_back(removed, done.snapshot)
            assert problem
            assert table.ids() == [1, 2, 3]
        table.add(4)
        table.expire()
        assert table.ids() == [1, 2, 3, 4]

    def test_what_main_took_of_a_branch_stays_when_former_snapshots_expire(self, table: TableUnderTest) -> None:
        branch = _make_branch(table.open(), table)
        table.add(9, branch)
        table.overwrite(50)
        formats = table.open()
        formats.move_main(formats.plan_move(formats.branches()[0]))
        formats.delete(branch)
        table.expire()
        assert table.ids() == [1, 2, 9]

    def test_a_snapshot_that_is_not_there_is_refused_and_nothing_is_done(self, table: TableUnderTest) -> None:
        formats = table.open()
        head = _head(formats)
        assert formats.unreadable(head) is None
        assert formats.unreadable(head + 1_000)
        with pytest.raises(BranchError, match=str(head + 1_000)):
            formats.roll_back(head + 1_000, head)
        assert (table.ids(), table.open().main_head()) == ([1, 2, 3], head)

    def test_a_mirror_of_a_correction_is_made_emptied_set_back_and_removed(self, table: TableUnderTest) -> None:
        formats = table.open()
        begun, head = formats.tagged_snapshot(table.tag), _head(formats)
        formats.create_mirror(Branch("mirror", None, begun, _now(), begun))
        formats.look()
        mirror = formats.branches()[0]
        assert (table.ids(mirror), mirror.head is None) == ([1, 2], False)
        table.add(9, mirror)
        formats.look()
        assert mirror.head is not None
        formats.reset(mirror, mirror.head)
        assert table.ids(mirror) == [1, 2]
        formats.empty(mirror)
        assert (table.ids(mirror), table.ids()) == ([], [1, 2, 3])
        formats.look()
        formats.delete_mirror(formats.branches()[0])
        after = table.open()
        assert (list(after.branches()), after.main_head(), table.ids()) == ([], head, [1, 2, 3])


def _make_branch(formats: FormatBranches, table: TableUnderTest) -> Branch:
    begun = formats.tagged_snapshot(table.tag)
    formats.create(Branch("fix", table.tag, begun, _now(), begun))
    formats.look()
    return formats.branches()[0]


def _head(formats: FormatBranches) -> int:
    head = formats.main_head()
    assert head is not None
    return head


def _now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)
