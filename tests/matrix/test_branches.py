"""Branches on real tables of each format: made from a tag, written, merged, and independent of main."""

from __future__ import annotations

import pytest

from headwater.events import BranchMerged, Committed, CreateBranch, DropBranch
from headwater.versions.branches import MainMovedError
from headwater.versions.branches.format_branches import branches_of
from tests.kit.cases.branch_versions import naming_branches, snapshots_of, tag_branch
from tests.kit.cases.lens import ids
from tests.kit.spark.driver import Driver, shared_driver_fixture, the
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS, BranchedTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)


BUT_DELTA = [pytest.param(form, marks=pytest.mark.long if form == "delta" else ()) for form in FORMATS]
"""Delta's log makes its tests the slowest; those that are samples on the other formats run in slices on it."""


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, driver: Driver) -> BranchedTable:
    return BranchedTable(driver, request.param, driver.database(CATALOGS[request.param]))


@pytest.mark.parametrize("table", BUT_DELTA, indirect=True)
def test_a_branch_is_made_written_and_merged_and_main_and_branch_stay_independent(table: BranchedTable) -> None:
    """The life of a branch on each format, with its events."""
    made = table.branches.create("fix", table.tag)
    assert (made.name, made.tag, table.ids("fix")) == ("fix", table.tag, [1, 2])
    assert table.branches.list() == (made,)
    table.add(9, "fix")
    assert (table.ids(), table.ids("fix")) == ([1, 2, 3], [1, 2, 9])
    moved = table.branches.merge("fix")
    assert (len(moved.lost_snapshots), table.rows()) == (1, [(1, "main"), (2, "main"), (9, "fix")])
    table.add(10, "fix")
    table.add(4)
    assert (table.ids(), table.ids("fix")) == ([1, 2, 4, 9], [1, 2, 9, 10])
    table.branches.delete("fix")
    assert (table.branches.list(), table.ids()) == ((), [1, 2, 4, 9])
    created, merged = the(CreateBranch, table.events), the(BranchMerged, table.events)
    assert (created.branch, created.tag, str(created.identifier)) == ("fix", table.tag, table.name)
    assert created.snapshot == made.tagged_snapshot
    assert (merged.previous_snapshot, merged.snapshot) == (moved.previous, moved.snapshot)
    assert the(DropBranch, table.events).dataset == created.dataset is not None


def test_a_commit_within_the_window_is_kept_and_a_quiet_move_is_one_commit_that_can_be_undone(
    table: BranchedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits when main was looked at and isn't moved yet: formats' own ways lose such rows in silence.
    Then the same moves go through, each once, found again by its mark, and each head of before can be read."""
    table.branches.create("fix", table.tag)
    table.add(9, "fix")
    formats = branches_of(table.driver.spark, table.name)
    branch = next(iter(formats.branches()))
    stale = formats.plan_move(branch)
    with monkeypatch.context() as patch:
        table.commit_in_the_window(patch, formats, 4)
        with pytest.raises(MainMovedError, match=f"and not at {stale.previous} any more"):
            formats.move_main(stale, "first")
    assert (table.ids(), formats.marked_snapshot(stale.previous, "first")) == ([1, 2, 3, 4], None)
    planned = formats.plan_move(branch)
    moved = formats.move_main(planned, "second")
    assert (table.ids(), table.ids_at(planned.previous)) == ([1, 2, 9], [1, 2, 3, 4])
    assert formats.marked_snapshot(planned.previous, "second") == moved.snapshot == formats.main_head()
    assert formats.marked_snapshot(planned.previous, "first") is None
    table.add(5)
    with pytest.raises(MainMovedError, match=f"and not at {moved.snapshot} any more"):
        formats.roll_back(planned.previous or 0, moved.snapshot, "third")
    formats.look()
    now = formats.main_head()
    done = formats.roll_back(planned.previous or 0, now, "third")
    assert (table.ids(), table.ids_at(now)) == ([1, 2, 3, 4], [1, 2, 5, 9])
    assert (done.previous, formats.marked_snapshot(now, "third")) == (now, done.snapshot)
    table.add(6)
    assert table.ids() == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("table", BUT_DELTA, indirect=True)
def test_sql_names_a_snapshot_by_its_branch_where_a_session_wants_that(table: BranchedTable) -> None:
    """`VERSION AS OF 'branch.tag'` and `'branch.snapshot'`: the rows, and the snapshot that capture reports, are those
    of the format's own metadata. In any other session nothing changes."""
    table.branches.create("fix", table.tag)
    table.add(9, "fix")
    if table.format != "delta":
        tag_branch(table, "fix", "checked")
    table.add(10, "fix")
    begun, checked, newest = snapshots_of(table, "fix")[-3:]
    wanted = {f"fix.{begun}": [1, 2], f"fix.{checked}": [1, 2, 9], f"fix.{newest}": [1, 2, 9, 10]}
    if table.format != "delta":
        wanted |= {"fix.eod": [1, 2], "fix.checked": [1, 2, 9], "main.eod": [1, 2]}
    with naming_branches(table.driver.spark) as session:
        read = {each: ids(session.sql(f"SELECT id FROM {table.name} VERSION AS OF '{each}'")) for each in wanted}
        assert read == wanted
        copy = f"CREATE TABLE {table.catalog}.{table.database}.copy USING {table.format} AS SELECT * FROM {table.name}"
        events = table.driver.events_of(lambda _: session.sql(f"{copy} VERSION AS OF 'fix.{checked}'"))
        source = the(Committed, events).inputs[0]
        assert (source.snapshot, source.dataset is not None) == (checked, True)
        with pytest.raises(Exception, match=rf"{table.name} has no branch 'fax': its branches are main, fix"):
            session.sql(f"SELECT * FROM {table.name} VERSION AS OF 'fax.eod'")
        with pytest.raises(Exception, match=r"no tag 'never'|'never' is no version"):
            session.sql(f"SELECT * FROM {table.name} VERSION AS OF 'fix.never'")
    with pytest.raises(Exception, match=rf"fix\.{begun}|versionAsOf needs to be"):
        table.driver.rows(f"SELECT * FROM {table.name} VERSION AS OF 'fix.{begun}'")
