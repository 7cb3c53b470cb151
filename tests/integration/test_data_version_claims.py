"""Claims of data versions on real databases: of jobs that want a number at once, one decides, and all follow it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError
from headwater.lineage.replacement import areas
from headwater.lineage.replacement.switching import switch_over_for
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.versions.aligned.claims import DataVersionConflictError, GroupClaims, JobTakenOverError
from headwater.versions.cuts import Cut, TableSnapshot

JOBS = 6
NUMBERS = 25


def cut(snapshot: int) -> Cut:
    return Cut({"lake.db.orders": TableSnapshot(snapshot, "one")})


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with open_store(place) as opened:
        yield opened


@pytest.fixture
def claims(store: Store) -> GroupClaims:
    found = GroupClaims(store, "shop")
    found.enter(["lake.db.orders"])
    return found


def claim_all(store: Store, job: int) -> list[Cut]:
    """Each job wants a cut of its own by every number."""
    claims = GroupClaims(store, "shop")
    claims.enter(["lake.db.orders"])
    return [claims.claim(number, cut(number * 1_000 + job), f"job {job}").cut for number in range(1, NUMBERS + 1)]


def test_jobs_that_claim_at_once_get_the_same_cuts(store: Store) -> None:
    """It finds a claim that isn't one atomic step: two jobs would each believe their own cut."""
    with ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(lambda job: claim_all(store, job), range(JOBS)))
    assert all(each == found[0] for each in found)
    stored = GroupClaims(store, "shop").versions(NUMBERS + 1)
    assert [each.number for each in stored] == list(range(NUMBERS, 0, -1))
    assert [each.cut for each in stored][::-1] == found[0]


def _claim_until_killed(place: str, job: int) -> None:
    with open_store(place) as store:
        claims = GroupClaims(store, "shop")
        for number in range(1, 100_000):
            claims.claim(number, cut(number * 1_000 + job), f"job {job}")


@pytest.mark.slow
def test_a_job_that_is_killed_while_it_claims_leaves_no_hole(place: str, claims: GroupClaims) -> None:
    """It finds a number that is taken before its cut is there: no job could get past it."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_claim_until_killed, args=(place, job)) for job in range(2)]
    for each in processes:
        each.start()
    try:
        for wanted in (20, 60):
            while (newest := claims.newest()) is None or newest.number < wanted:
                assert all(each.exitcode is None for each in processes[-1:])
            victim = processes.pop(0)
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
    finally:
        for each in processes:
            each.kill()
            each.join()
    newest = claims.newest()
    state = claims.state()
    assert newest is not None
    assert state is not None
    assert state.newest == newest.number
    assert [each.number for each in claims.versions(newest.number + 1)] == list(range(newest.number, 0, -1))
    following = claims.claim(newest.number + 1, cut(7), "late")
    assert following.cut == cut(7)


def test_a_number_that_was_skipped_cant_be_claimed(claims: GroupClaims) -> None:
    """It finds a claim that doesn't compare: numbers would have holes, and a cut could go back."""
    with pytest.raises(DataVersionConflictError, match="the store was set back"):
        claims.claim(2, cut(1), "a")
    claims.claim(1, cut(1), "a")
    assert claims.claim(1, cut(2), "b").claimed_by == "a"


def test_a_group_is_of_the_tables_of_its_first_job(claims: GroupClaims) -> None:
    """It finds a group whose later cuts lack a table that a job reads."""
    assert claims.enter(["lake.db.orders"]).tables == ("lake.db.orders",)
    with pytest.raises(ConfigurationError, match=r"of lake.db.orders, and not of lake.db.products"):
        claims.enter(["lake.db.orders", "lake.db.products"])


def test_an_older_process_of_a_job_is_refused(claims: GroupClaims) -> None:
    """It finds two processes of one job that both write."""
    first = claims.take_over("revenue", "/one")
    claims.move("revenue", first, done=None, running=1)
    second = claims.take_over("revenue", "/one")
    with pytest.raises(JobTakenOverError):
        claims.move("revenue", first, done=1, running=None)
    claims.move("revenue", second, done=1, running=None)
    [job] = claims.jobs()
    assert (job.done, job.running, job.epoch) == (1, None, second)


def test_a_store_that_was_set_back_learns_from_checkpoints(claims: GroupClaims) -> None:
    """It finds a job that goes on beside a group that claims its numbers anew."""
    claims.claim(1, cut(1), "a")
    claims.confirm(3, cut(3), "a")
    assert claims.claim(4, cut(4), "b").cut == cut(4)
    with pytest.raises(DataVersionConflictError, match="Start this job") as raised:
        claims.confirm(3, cut(30), "b")
    assert "lake.db.orders@30" in str(raised.value)


def test_a_replay_takes_the_decisions_over(place: str, claims: GroupClaims, tmp_path: Path) -> None:
    """It finds a rebuilt store in which jobs would decide anew: the events don't have the cuts."""
    claims.claim(1, cut(1), "a")
    epoch = claims.take_over("revenue", str(tmp_path))
    options = StoreOptions.at(place)
    try:
        areas.create_area(options, areas.Area.FRESH).close()
        with switch_over_for(options).fence(10) as fence:
            fence.missing_events()
            fence.switch()
        assert claims.version(1) is not None
        claims.move("revenue", epoch, done=1, running=None)
        assert claims.claim(2, cut(2), "b").claimed_by == "b"
    finally:
        for area in areas.Area:
            areas.drop_area(options, area)
