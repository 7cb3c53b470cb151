"""`with job(…)` without a driver, and with a tracker in place of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from headwater.errors import ConfigurationError
from headwater.events.jobs import JobStatus, LineageRetention, SparkDetails, StartPosition
from headwater.listeners import job
from headwater.listeners.jobs import ApplicationFacts, ApplicationRuns, BlockRun, RunEnd, blocks
from headwater.listeners.jobs.job_run_tracker import JobRunTracker
from headwater.listeners.settings import Settings


class Notes:
    """A tracker that notes who comes and goes."""

    def __init__(self) -> None:
        facts = ApplicationFacts(id="a", name="orders", spark=SparkDetails(version="3.5.7"))
        self._jobs = ApplicationRuns(facts, Settings(), lambda event: event)
        self.notes: list[str] = []
        self.endings: list[RunEnd] = []

    def enter(
        self,
        name: str,
        namespace: str | None,
        tags: Mapping[str, str],
        on_end: LineageRetention | None = None,
        starts_at: tuple[StartPosition, ...] = (),
    ) -> BlockRun:
        self.notes.append(f"+{name}")
        return self._jobs.open_block(name, namespace, tags, on_end=on_end, starts_at=starts_at)

    def leave(self, block: BlockRun, ending: RunEnd) -> None:
        self.notes.append(f"-{block.job.name} {ending.status}")


class Broken(Notes):
    def enter(
        self,
        name: str,
        namespace: str | None,
        tags: Mapping[str, str],
        on_end: LineageRetention | None = None,
        starts_at: tuple[StartPosition, ...] = (),
    ) -> BlockRun:
        super().enter(name, namespace, tags)
        raise ConnectionError("the JVM is gone")

    def leave(self, block: BlockRun, ending: RunEnd) -> None:
        raise AssertionError("it was never entered")


class BrokenLater(Notes):
    def leave(self, block: BlockRun, ending: RunEnd) -> None:
        super().leave(block, ending)
        raise ConnectionError("the JVM is gone")


def served(notes: Notes) -> Iterator[Notes]:
    tracker = cast("JobRunTracker", notes)
    blocks.attach(tracker)
    yield notes
    blocks.detach(tracker)


@pytest.fixture
def tracker() -> Iterator[Notes]:
    yield from served(Notes())


def test_without_headwater_nothing_happens() -> None:
    with job("orders", tags={"a": "b"}) as entry:
        assert entry.run is None
    with pytest.raises(ValueError, match="mine"), job("orders"):
        raise ValueError("mine")


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_job_has_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="a job can't be called"):
        job(name)


def test_what_becomes_of_lineage_is_one_of_three_words() -> None:
    with pytest.raises(ConfigurationError, match=r"on_end is none of keep, .*: did you mean delete-all\?"):
        job("orders", on_end="delete-al")  # type: ignore[arg-type]  # this is the test


def test_blocks_are_entered_and_left(tracker: Notes) -> None:
    with job("outer") as outer, job("inner") as inner:
        assert outer.run is not None
        assert inner.run not in {None, outer.run}
    with pytest.raises(SystemExit), job("left"):
        raise SystemExit(3)
    assert tracker.notes == ["+outer", "+inner", "-inner FINISHED", "-outer FINISHED", "+left", "-left FAILED"]


def test_one_block_can_be_entered_again_even_inside_itself(tracker: Notes) -> None:
    block = job("orders")
    with block as first, block as second:
        assert first.run != second.run
    with block:
        pass
    assert tracker.notes == ["+orders", "+orders", *["-orders FINISHED"] * 2, "+orders", "-orders FINISHED"]


def test_each_call_of_a_decorated_function_is_a_run(tracker: Notes) -> None:
    @job("orders")
    def load(count: int, *, double: bool = False) -> int:
        """Loads."""
        if count == 0:
            raise ValueError("nothing to load")
        return count * (2 if double else 1)

    assert load(2, double=True) == 4
    with pytest.raises(ValueError, match="nothing to load"):
        load(0)
    assert (load.__name__, load.__doc__) == ("load", "Loads.")
    assert tracker.notes == ["+orders", "-orders FINISHED", "+orders", "-orders FAILED"]


def test_what_comes_back_before_its_work_is_done_cannot_be_decorated() -> None:
    async def soon() -> None: ...

    def some() -> Iterator[int]:
        yield 1

    with pytest.raises(ConfigurationError, match=r"soon comes back .* write a with-block"):
        job("orders")(soon)
    with pytest.raises(ConfigurationError, match="some comes back"):
        job("orders")(some)


@pytest.mark.parametrize("kind", [Broken, BrokenLater])
def test_what_goes_wrong_is_not_the_users_business(kind: type[Notes]) -> None:
    for notes in served(kind()):
        with job("orders"):
            done = "the job goes on"
        with pytest.raises(ValueError, match="mine"), job("orders"):
            raise ValueError("mine")
        assert done
        assert len(notes.notes) >= 2


def test_a_context_made_inside_of_blocks_begins_them() -> None:
    notes = Notes()
    with job("outer"), job("inner"):
        other = threading.Thread(target=lambda: job("elsewhere").__enter__())
        other.start()
        other.join()
        blocks.attach(cast("JobRunTracker", notes))
        blocks.restart_open_blocks(cast("JobRunTracker", notes))
    blocks.detach(cast("JobRunTracker", notes))
    assert notes.notes == ["+outer", "+inner", f"-inner {JobStatus.FINISHED}", f"-outer {JobStatus.FINISHED}"]


def test_a_block_goes_on_in_the_next_context(tracker: Notes) -> None:
    after = Notes()
    with job("orders"):
        blocks.detach(cast("JobRunTracker", tracker))
        blocks.attach(cast("JobRunTracker", after))
        blocks.restart_open_blocks(cast("JobRunTracker", after))
    blocks.detach(cast("JobRunTracker", after))
    assert tracker.notes == ["+orders", "-orders ENDED"]
    assert after.notes == ["+orders", "-orders FINISHED"]
