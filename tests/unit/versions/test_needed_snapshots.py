"""What corrections and aligned jobs still need of a table: an expiry that isn't told takes it away from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.lineage.questions.names import UnknownNameError
from headwater.lineage.store import Store
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.correction import CorrectionPlan, plan_correction
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState
from headwater.versions.cuts import Cut, TableSnapshot
from headwater.versions.needed_snapshots import needed_snapshots
from headwater.versions.step_journal import StepKind
from tests.kit.lineage.scripted_producer import at
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import add_times, counted, order_warehouse


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def plan(store: Store) -> CorrectionPlan:
    story = order_warehouse()
    add_times(story, 20)
    with store.engine.begin() as connection:
        put(connection, counted(story.events))
        return plan_correction(connection, "orders@4", now=at(story.minute))


def test_a_correction_needs_where_mirrors_begin_and_what_is_wrong_until_it_is_over(
    store: Store, plan: CorrectionPlan
) -> None:
    """Also of a table downstream, and by another name that the store has for it; not of one that isn't corrected."""
    journal = CorrectionJournal.create(store, plan, [(StepKind.MIRROR, table.table, {}) for table in plan.corrected])
    for planned in plan.corrected:
        needs = {need.snapshot: need.consequence for need in needed_snapshots(store, planned.table)}
        wanted = {*planned.snapshots, planned.starts_at, planned.last_right} - {None}
        assert set(needs) == wanted, planned.table
        assert all(journal.name in text for text in needs.values())
    source = plan.tables[0]
    assert source.starts_at is not None
    assert needed_snapshots(store, source.table.rpartition(".")[2]) == needed_snapshots(store, source.table) != ()
    assert (
        "a mirror begins there"
        in {n.snapshot: n.consequence for n in needed_snapshots(store, source.table)}[source.starts_at]
    )
    with pytest.raises(UnknownNameError, match="nobody_knows"):
        needed_snapshots(store, "lake.db.nobody_knows")
    epoch = journal.take_over()
    journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.ABORTING)
    assert needed_snapshots(store, source.table) != ()
    journal.move(epoch, [CorrectionState.ABORTING], CorrectionState.ABORTED)
    assert needed_snapshots(store, source.table) == ()


def test_an_aligned_job_goes_on_behind_what_it_has_committed(store: Store) -> None:
    """Fails if only the newest cut counts: the slowest job reads on from the oldest. A job that is at its first barrier
    needs that one; a group of other tables needs nothing."""
    claims = GroupClaims(store, "shop")
    claims.enter(["lake.db.a", "lake.db.b"])
    assert needed_snapshots(store, "lake.db.a") == ()
    for number in (1, 2, 3, 4):
        claims.claim(number, Cut({"lake.db.a": TableSnapshot(10 + number), "lake.db.b": TableSnapshot(number)}), "any")
    for job, done, running in (("slow", 2, 3), ("quick", 4, None), ("new", None, 3), ("not begun", None, None)):
        claims.move(job, claims.take_over(job, f"/checkpoints/{job}"), done=done, running=running)
    needs = {need.snapshot: need.consequence for need in needed_snapshots(store, "lake.db.a")}
    assert {snapshot: text.count("aligned job") for snapshot, text in needs.items()} == {12: 1, 13: 1, 14: 1}
    assert "the aligned job slow of the group shop goes on behind it, data version 2" in needs[12]
    assert "the aligned job new" in needs[13]
    assert "it is in the newest data version of the group shop, 4" in needs[14]
    other = GroupClaims(store, "other")
    other.enter(["lake.db.c"])
    assert needed_snapshots(store, "lake.db.c") == ()
