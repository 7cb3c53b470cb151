"""Which barriers an aligned job plays on mirrors. Snapshots are numbers: those of mirrors are greater than 100."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.lineage.store import Store
from headwater.versions.aligned import Cut, DataVersion, TableSnapshot
from headwater.versions.aligned.checkpoints import Barrier
from headwater.versions.correction.execution.mirrored_cuts import (
    BarrierPlanner,
    Milestone,
    MirroredSink,
    MirroredSource,
    milestones_of_source,
)
from headwater.versions.correction.execution.tables import CorrectionError, Mirror
from headwater.versions.correction.journal import Correction, CorrectionJournal
from headwater.versions.step_journal import StepKind, StepState
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import planned_chain

ORDERS, PRODUCTS, DETAILS = "lake.db.orders", "lake.db.products", "lake.db.details"
BEGINS = 3
"""The wrong snapshot of the orders."""
MIRROR = Mirror(
    table=ORDERS, branch="fix", name="orders_fix", begins_at=100, begins_at_in_table=BEGINS, expected=BEGINS
)


class Lines:
    """Each snapshot is made from the one before."""

    def is_at_or_before(self, table: str, snapshot: TableSnapshot, later: int) -> bool:
        return snapshot.snapshot <= later

    def at(self, name: str, snapshot: int) -> TableSnapshot:
        return TableSnapshot(snapshot)


def cut(orders: int, products: int, name: str = ORDERS) -> Cut:
    return Cut({name: TableSnapshot(orders), PRODUCTS: TableSnapshot(products)})


def mirrored(orders: int, products: int) -> Cut:
    return cut(orders, products, MIRROR.name)


def planner(milestones: Sequence[Milestone], *sinks: MirroredSink) -> BarrierPlanner:
    source = MirroredSource(ORDERS, MIRROR, tuple(milestones), frozenset({BEGINS, BEGINS + 1}))
    return BarrierPlanner(Lines(), [ORDERS, PRODUCTS], [source], sinks)


def versions(*cuts: Cut) -> list[DataVersion]:
    return [DataVersion(number, each, "job", 0) for number, each in enumerate(cuts, 5)]


STORY = versions(cut(3, 1), cut(4, 1), cut(4, 2), cut(5, 2))
MILESTONES = [(3, 110), (4, 120), (5, 130)]


def test_each_data_version_is_played_with_the_mirrors_snapshots() -> None:
    found = planner(MILESTONES).planned(STORY, None, None)
    assert list(found) == [(5, mirrored(110, 1)), (6, mirrored(120, 1)), (7, mirrored(120, 2)), (8, mirrored(130, 2))]


def test_what_was_played_isnt_played_again() -> None:
    last = Barrier(7, mirrored(120, 2), None, is_committed=True)
    assert list(planner(MILESTONES).planned(STORY, last, None)) == [(8, mirrored(130, 2))]


def test_a_data_version_without_a_milestone_comes_with_the_next_one() -> None:
    """As where the user corrected rows again, so that no earlier state is right."""
    assert list(planner([(5, 140)]).planned(STORY, None, None)) == [(8, mirrored(140, 2))]


def test_what_is_in_no_data_version_is_played_at_the_end_and_never_again() -> None:
    """A switch that was refused leaves such a barrier; then production has data versions of the same rows."""
    plan = planner([*MILESTONES, (6, 150)])
    end = (9, mirrored(150, 2))
    last = Barrier(8, mirrored(130, 2), None, is_committed=True)
    assert list(plan.planned(STORY, last, {MIRROR.name: 150})) == [end]
    last = Barrier(*end, None, is_committed=True)
    assert list(plan.planned(STORY, last, {MIRROR.name: 150})) == []
    later = [*STORY, DataVersion(9, cut(6, 2), "job", 0), DataVersion(10, cut(6, 3), "job", 0)]
    assert list(plan.planned(later, last, None)) == [(10, mirrored(150, 3))]
    behind = [*STORY, DataVersion(9, cut(5, 3), "job", 0), DataVersion(10, cut(6, 3), "job", 0)]
    assert list(plan.planned(behind, last, None)) == [(10, mirrored(150, 3))]


def test_a_table_is_read_itself_where_its_mirror_has_not_begun() -> None:
    found = planner(MILESTONES).planned([DataVersion(4, cut(2, 1), "job", 0), *STORY[:1]], None, None)
    assert list(found) == [(4, cut(2, 1)), (5, mirrored(110, 1))]


def played(*cuts: Cut, details: Sequence[int | None] = ()) -> list[Barrier]:
    """Barriers of production, which found details at these snapshots."""
    found = [Barrier(number, each, None, is_committed=True) for number, each in enumerate(cuts, 3)]
    sinks = [{} if at is None else {f"{DETAILS} 1": at} for at in details]
    return [replace(each, sinks=sink) for each, sink in zip(found, sinks or [{}] * len(found), strict=True)]


def test_the_first_barrier_is_that_which_read_what_is_wrong_or_wrote_behind_the_mirrors_begin() -> None:
    barriers = played(cut(1, 1), cut(2, 1), cut(3, 1), cut(4, 1), details=[6, 7, 8, 9])
    assert planner(MILESTONES).first(barriers).number == 5
    sink = MirroredSink(DETAILS, replace(MIRROR, table=DETAILS, begins_at_in_table=7), begins_empty=False)
    assert planner(MILESTONES, sink).first(barriers).number == 4
    assert planner(MILESTONES, replace(sink, begins_empty=True)).first(barriers).number == 3
    with pytest.raises(CorrectionError, match="no barrier of its checkpoint has read what is wrong"):
        planner(MILESTONES).first(barriers[:2])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


def taken_over(store: Store, *steps: tuple[int, int, int]) -> Correction:
    """Each step took the orders over until a snapshot; the mirror was there before and after it."""
    journal = CorrectionJournal.create(store, planned_chain([ORDERS]), [])
    epoch = journal.take_over()
    for until, before, after in steps:
        detail = {"until": until, "before": before, "after": after}
        [step] = journal.add(epoch, [(StepKind.TAKE_OVER, ORDERS, detail)])
        journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE)
    return journal.load()


def test_each_commit_that_was_taken_over_is_a_milestone_behind_the_users_last_correction(store: Store) -> None:
    assert milestones_of_source(taken_over(store), MIRROR, 101) == ((3, 101),)
    found = taken_over(store, (4, 101, 102), (5, 102, 102), (6, 102, 103))
    assert milestones_of_source(found, MIRROR, 103) == ((3, 101), (4, 102), (5, 102), (6, 103))
    assert milestones_of_source(found, MIRROR, 104) == ((6, 104),)
    found = taken_over(store, (4, 101, 102), (5, 103, 104), (6, 104, 105))
    assert milestones_of_source(found, MIRROR, 105) == ((4, 103), (5, 104), (6, 105))
