"""The rules of branches, whatever the table's format: on a table that is kept in this process."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import PluginError
from headwater.versions.branches import (
    BranchError,
    BranchManager,
    ExpiryRisk,
    MainMovedError,
    MoveKind,
    NeededSnapshot,
    format_branches,
    manager,
)
from tests.kit.versions.memory_branches import MemoryBranches


@pytest.fixture
def memory() -> MemoryBranches:
    return MemoryBranches()


@pytest.fixture
def branches(memory: MemoryBranches, monkeypatch: pytest.MonkeyPatch) -> BranchManager:
    monkeypatch.setattr(manager, "branches_of", lambda *_: memory)
    monkeypatch.setattr(manager, "driver_report", lambda _: None)
    return BranchManager(Any, "lake.db.t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.b", "a dot stands between a branch and its tag"),
        ("main", "is there in each table"),
        ("Main", "is there in each table"),
        ("12", "a number means a snapshot"),
        ("", "give it a name"),
        (" fix", "give it a name"),
    ],
)
def test_a_name_that_version_as_of_could_not_tell_is_refused(branches: BranchManager, name: str, why: str) -> None:
    with pytest.raises(BranchError, match=why):
        branches.create(name, "eod")
    assert branches.list() == ()


def test_a_branch_begins_at_a_tag_of_main_and_nowhere_else(branches: BranchManager) -> None:
    with pytest.raises(BranchError, match="there is no tag late"):
        branches.create("fix", "late")
    made = branches.create("fix", "eod")
    assert (made.tag, made.tagged_snapshot, branches.name_of("fix")) == ("eod", 3, "lake.db.t.branch_fix")
    assert branches.main == "main"


@pytest.mark.parametrize("name", ["fix", "FIX"])
def test_a_name_that_is_there_is_refused_in_any_case_of_letters(branches: BranchManager, name: str) -> None:
    """Spark's own catalog doesn't tell upper case from lower case, and with Delta a branch is a table there."""
    branches.create("fix", "eod")
    with pytest.raises(BranchError, match="has a branch 'fix' already"):
        branches.create(name, "eod")


def test_a_branch_that_is_not_there_is_named_with_those_that_are(branches: BranchManager) -> None:
    with pytest.raises(BranchError, match="has no branch 'fix': it has none but main"):
        branches.merge("fix")
    branches.create("other", "eod")
    with pytest.raises(BranchError, match="has no branch 'fix': its branches are other"):
        branches.delete("fix")


def test_main_is_moved_only_from_the_snapshot_that_was_named(branches: BranchManager, memory: MemoryBranches) -> None:
    branches.create("fix", "eod")
    with pytest.raises(MainMovedError, match="is at 5, and not at 4"):
        branches.merge("fix", main=4)
    assert memory.head == 5
    assert branches.merge("fix", main=5).lost_snapshots == (5, 4)
    assert (memory.head, memory.forgotten) == (7, [])


def test_replacing_main_also_forgets_what_main_alone_had(branches: BranchManager, memory: MemoryBranches) -> None:
    branches.create("fix", "eod")
    branches.replace_main("fix")
    assert [move.lost_snapshots for move in memory.forgotten] == [(5, 4)]


def test_a_dry_run_changes_nothing_and_says_the_same(branches: BranchManager, memory: MemoryBranches) -> None:
    assert branches.create("fix", "eod", dry_run=True).tagged_snapshot == 3
    assert branches.list() == ()
    with pytest.raises(BranchError, match="no tag"):
        branches.create("fix", "late", dry_run=True)
    branches.create("fix", "eod")
    planned = branches.replace_main("fix", dry_run=True)
    branches.delete("fix", dry_run=True)
    assert (planned.kind, memory.head, memory.forgotten, len(branches.list())) == (MoveKind.REPLACE, 5, [], 1)


def test_what_an_expiry_would_take_is_asked_of_the_format(branches: BranchManager) -> None:
    branches.create("fix", "eod")
    found = branches.check_expiry(datetime(2030, 1, 1, tzinfo=timezone.utc))
    assert [(risk.branch, risk.consequence) for risk in found] == [("fix", "older than 2030")]
    needed = [NeededSnapshot(4, "a job reads on from there"), NeededSnapshot(5, "another begins there")]
    found = branches.check_expiry(datetime(2030, 1, 1, tzinfo=timezone.utc), needed)
    assert found[1:] == (ExpiryRisk("main", 4, "a job reads on from there"),)


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ("hudi", "Hudi has no branches"),
        ("parquet", "its format has no versions"),
        ("jdbc", "its format has no versions"),
        ("", "it is a view"),
    ],
)
def test_a_format_without_branches_is_refused_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, provider: str, why: str
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(format_branches, "load_table", lambda *_, **__: SimpleNamespace(provider=provider))
    with pytest.raises(BranchError, match=f"lake.db.t can't have branches: {why}"):
        format_branches.branches_of(SimpleNamespace(_jvm=None), "lake.db.t")  # type: ignore[arg-type]


def test_a_session_without_a_jvm_is_refused() -> None:
    with pytest.raises(BranchError, match="classic Spark session"):
        format_branches.branches_of(SimpleNamespace(), "lake.db.t")  # type: ignore[arg-type]


def test_a_format_of_another_distribution_brings_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is broken says so, instead of passing for a format without versions."""
    pytest.importorskip("pyspark")
    loaded = SimpleNamespace(provider="memory")
    monkeypatch.setattr(format_branches, "load_table", lambda *_, **__: loaded)
    session: Any = SimpleNamespace(_jvm=None)
    plugins: dict[str, Any] = {"memory": lambda: None}
    monkeypatch.setattr(format_branches, "load_all", lambda _: plugins)
    with pytest.raises(PluginError, match="has to be a class of FormatBranches"):
        format_branches.branches_of(session, "lake.db.t")
    plugins["memory"] = PluginError("memory can't be imported")
    with pytest.raises(PluginError, match="can't be imported"):
        format_branches.branches_of(session, "lake.db.t")

    class Named(MemoryBranches):
        def __init__(self, *_: Any) -> None:
            super().__init__()

    plugins["memory"] = Named
    assert isinstance(format_branches.branches_of(session, "lake.db.t"), Named)
