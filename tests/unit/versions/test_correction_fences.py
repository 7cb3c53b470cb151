"""Fences of a switch: who stops at them, how long they count, and aligned jobs that go on behind a switch which may be
killed anywhere. Tables are kept in this process; the real formats' jobs are played in the matrix.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.events import clock
from headwater.lineage.store import Store
from headwater.versions.aligned import Cut, GroupClaims, TableSnapshot, fences
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint, JobStart
from headwater.versions.aligned.claims import FencedGroupError
from headwater.versions.correction import CorrectionPlan, JobKind, fencing
from headwater.versions.correction.fencing import standing_jobs
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState
from headwater.versions.correction.moved_jobs import SwitchRefusedError, mirrored_checkpoint
from headwater.versions.correction.switching import Switcher
from headwater.versions.step_journal import StepKind, StepState
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import planned_chain, planned_job
from tests.kit.versions.memory_correction import KilledError
from tests.kit.versions.memory_switch import MemorySwitchTables

GROUP, JOB, ORDERS, PRODUCTS, DETAILS = "shop", "details", "lake.db.orders", "lake.db.products", "lake.db.details"
NEWEST, BEHIND = 3, 4
MOST_POINTS = 200


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


def cut(orders: int) -> Cut:
    return Cut({ORDERS: TableSnapshot(orders, "g"), PRODUCTS: TableSnapshot(7, "g")})


class Shop:
    """An aligned job that has played three data versions, and a correction whose mirrors have all of them."""

    def __init__(self, store: Store, place: Path) -> None:
        self.store, self.claims = store, GroupClaims(store, f"{GROUP} {place.name}")
        self.checkpoint = Checkpoint(str(place / "checkpoint"))
        self.claims.enter([ORDERS, PRODUCTS])
        self.epoch = self.claims.take_over(JOB, self.checkpoint.location)
        tables = {"orders": ORDERS, "products": PRODUCTS}
        self.checkpoint.write_start(JobStart(JOB, self.claims.group, tables, 1, None, "newest", "one"))
        for number in range(1, NEWEST + 1):
            self.claims.claim(number, cut(number), JOB)
            before = cut(number - 1) if number > 1 else None
            self.checkpoint.write(Barrier(number, cut(number), before, is_committed=True))
        self.claims.move(JOB, self.epoch, done=NEWEST, running=None)
        self.tables = MemorySwitchTables([ORDERS, DETAILS])
        self.journal = self._open_correction()

    def took_back(self) -> bool:
        """Take a switch back, unless all tables are switched: then it only goes forward."""
        try:
            self.switcher().go_back()
        except SwitchRefusedError as e:
            assert "are switched, and mirrors may be gone" in str(e)  # noqa: PT017 - other refusals are faults
            return False
        return True

    def _open_correction(self) -> CorrectionJournal:
        plan = self._plan()
        journal = CorrectionJournal.create(
            self.store, plan, [(StepKind.MIRROR, name, {}) for name in (ORDERS, DETAILS)]
        )
        epoch = journal.take_over()
        for step in journal.load().steps:
            running = journal.move_step(epoch, step, StepState.RUNNING)
            journal.move_step(epoch, running, StepState.DONE, {"branch": "correction_1", "expected": 1})
        aligned = {"job": JOB, "group": self.claims.group, "checkpoint": self.checkpoint.location}
        target = {"reads": {ORDERS: 9}, "data versions": {self.claims.group: NEWEST}, "final": True}
        detail = {"writes": [DETAILS], "target": target, "final": True, "aligned": [aligned], "since": 3, "seconds": 1}
        [step] = journal.add(epoch, [(StepKind.RERUN, JOB, detail)])
        journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)
        journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.OPEN)
        return journal

    def _plan(self) -> CorrectionPlan:
        job = planned_job(JOB, [ORDERS, PRODUCTS], [DETAILS])
        job = replace(job, kind=JobKind.ALIGNED, group=self.claims.group, checkpoint=self.checkpoint.location)
        return replace(planned_chain([ORDERS, DETAILS]), jobs=(job,))

    def switch(self) -> None:
        epoch = self.journal.take_over()
        with standing_jobs(self.store, self.journal.name, epoch, patience_seconds=0):
            Switcher(self.store, self.journal.name, self.tables.opening, epoch=epoch).switch()

    def switcher(self) -> Switcher:
        return Switcher(self.store, self.journal.name, self.tables.opening)

    def state(self) -> tuple[Any, ...]:
        """How far the group, the checkpoint and the job are, and what stops it."""
        newest, barrier, [job] = self.claims.newest(), self.checkpoint.newest(), self.claims.jobs()
        assert newest is not None
        assert barrier is not None
        return (
            *((newest.number, newest.cut), (barrier.number, barrier.cut, barrier.before, barrier.is_committed)),
            *((job.done, job.running), self.claims.fence()),
        )


BEFORE = ((NEWEST, cut(NEWEST)), (NEWEST, cut(NEWEST), cut(NEWEST - 1), True), (NEWEST, None), None)
SWITCHED = ((BEHIND, cut(2)), (BEHIND, cut(2), cut(NEWEST), True), (BEHIND, None), None)
"""In memory the switched table is at its snapshot 2."""


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    return Shop(store, tmp_path)


def test_a_job_goes_on_behind_the_switch_from_what_the_mirrors_have(shop: Shop) -> None:
    mirrored = mirrored_checkpoint(shop.checkpoint.location, shop.journal.name)
    mirrored.write(Barrier(NEWEST, cut(9), None, is_committed=True))
    shop.switch()
    assert shop.state() == SWITCHED
    assert mirrored.newest() is None
    assert shop.claims.claim(BEHIND + 1, cut(5), JOB).number == BEHIND + 1
    assert [step.state for step in shop.journal.load().of(StepKind.FENCE)] == [StepState.DONE]


def die_at_writes(shop: Shop, patch: pytest.MonkeyPatch) -> None:
    """Be killed before and after each write of the journal, of a group and of a checkpoint."""
    shop.tables.die_at_writes_of_the_journal(patch)
    for owner, names in ((GroupClaims, ("claim", "move", "set_back")), (Checkpoint, ("write", "remove"))):
        for name in names:
            write = getattr(owner, name)

            def write_or_die(*given: Any, write: Any = write, **more: Any) -> Any:
                shop.tables.kills.pass_one()
                found = write(*given, **more)
                shop.tables.kills.pass_one()
                return found

            patch.setattr(owner, name, write_or_die)
    kills, end = shop.tables.kills, fencing._Fences.end

    def end_unless_dead(own: fencing._Fences) -> None:
        own._ended.set()
        if kills.at is None or kills.count < kills.at:
            end(own)

    patch.setattr(fencing._Fences, "end", end_unless_dead)


@pytest.mark.slow
@pytest.mark.parametrize("is_taken_back", [False, True])
def test_a_switch_that_is_killed_anywhere_moves_its_jobs_once_or_lets_them_be(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken_back: bool
) -> None:
    """While tables are of two minds, the job stands still; and no fence is left at the end."""
    firm = 0
    for point in range(1, MOST_POINTS):
        place = tmp_path / f"{point}"
        place.mkdir()
        shop = Shop(store, place)
        with monkeypatch.context() as patch:
            die_at_writes(shop, patch)
            shop.tables.kills.at = point
            with suppress(KilledError):
                shop.switch()
        is_through, shop.tables.kills.at = shop.tables.kills.count < point, None
        fence = shop.claims.fence()
        is_half_way = shop.switcher().load().state is CorrectionState.SWITCHING
        assert is_half_way == (fence is not None and fence.is_firm), point
        firm += is_half_way
        went_back = is_half_way and is_taken_back and shop.took_back()
        if went_back:
            assert (shop.state(), shop.tables.rows()) == (BEFORE, {"old"}), point
        elif is_half_way:
            shop.switcher().switch()
        elif shop.switcher().load().state is CorrectionState.OPEN:
            shop.switch()
        if not went_back:
            assert (shop.state(), shop.tables.rows()) == (SWITCHED, {"new"}), point
        if is_through:
            break
    assert firm > 20


def test_a_job_that_went_on_is_waited_for_or_stops_the_switch(shop: Shop) -> None:
    """A barrier that is played is ended first: what it reads is from before the switch."""
    shop.claims.move(JOB, shop.epoch, done=NEWEST, running=BEHIND)
    with pytest.raises(SwitchRefusedError, match=r"details of shop .* \(data version 4\) didn't come to the end"):
        shop.switch()
    assert (shop.claims.fence(), shop.tables.rows()) == (None, {"old"})
    waited = threading.Event()

    def end_barrier(text: str) -> None:
        assert "waits until jobs stand between two barriers" in text
        shop.claims.move(JOB, shop.epoch, done=NEWEST, running=None)
        waited.set()

    epoch = shop.journal.take_over()
    with standing_jobs(shop.store, shop.journal.name, epoch, patience_seconds=60, report=end_barrier):
        assert waited.is_set()
        assert "is about to be switched" in str(shop.claims.fence())
    assert shop.claims.fence() is None


def test_nothing_is_switched_if_the_group_went_on_since_the_last_run(shop: Shop) -> None:
    shop.claims.claim(BEHIND, cut(4), JOB)
    with pytest.raises(SwitchRefusedError, match="went on meanwhile, so nothing was switched"):
        shop.switch()
    assert (shop.claims.fence(), shop.switcher().load().state) == (None, CorrectionState.OPEN)
    with pytest.raises(SwitchRefusedError, match="don't stand still, so nothing was switched"):
        shop.switcher().switch()


def test_a_group_claims_nothing_behind_a_fence_until_that_is_void(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead process stops nobody for ever: before the first table its fence ends by itself, and with an abort."""
    journal, epoch = shop.journal, shop.journal.take_over()
    [step] = journal.add(epoch, [(StepKind.FENCE, shop.claims.group, {})])
    assert shop.claims.fence() is None
    journal.move_step(epoch, step, StepState.RUNNING)
    with pytest.raises(FencedGroupError, match=f"since {journal.name} is about to be switched"):
        shop.claims.claim(BEHIND, cut(4), JOB)
    newest = shop.claims.settled_newest()
    assert newest is not None
    assert newest.number == NEWEST
    assert GroupClaims(shop.store, "another").fence() is None
    later = clock.wall_micros() + int(fences.LEASE_SECONDS * 1_000_000)
    with monkeypatch.context() as patch:
        patch.setattr(fences, "wall_micros", lambda: later)
        assert shop.claims.fence() is None
        journal.move(epoch, [CorrectionState.OPEN], CorrectionState.SWITCHING)
        assert f"`headwater correct switch {journal.name}`, or take it back by --back" in str(shop.claims.fence())
    journal.move(epoch, [CorrectionState.SWITCHING], CorrectionState.ABORTING)
    assert shop.claims.claim(BEHIND, cut(4), JOB).number == BEHIND
