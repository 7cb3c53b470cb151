"""A warehouse of orders and products in which a snapshot of the orders is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from headwater.events import Committed, Event, JobName, JobStarted, JobStatusChanged
from headwater.events.jobs import OverwriteScope
from headwater.lineage.questions.commit_facts import Amount
from headwater.versions.correction.model import (
    CorrectionMode,
    CorrectionPlan,
    JobKind,
    MirrorKind,
    PlannedJob,
    PlannedTable,
    TableVerdict,
)
from tests.kit.lineage.stories import StoryProducer

ALL: Final = OverwriteScope.ALL
RUNS: Final = {"ingest": 1, "details": 2, "revenue": 3, "top10": 4}
"""The run of each job. It makes all of its commits."""


def order_warehouse() -> StoryProducer:
    """orders@4 is wrong. details@2 read it, revenue@2 and top10@1 read that; orders@5 and details@3 only added right
    rows to tables with wrong ones."""
    story = StoryProducer()

    def commit(job: str, write: str, *reads: str, parent: int | str | None = "before") -> None:
        replaced = ALL if job in {"revenue", "top10"} else OverwriteScope.NOTHING
        story.commit(write, reads=reads, parent=parent, replaced=replaced, job=job, run=RUNS[job])

    commit("ingest", "products@1")
    commit("ingest", "orders@3", parent=None)
    commit("details", "details@1", "orders@3", "products@1")
    commit("revenue", "revenue@1", "details@1")
    commit("ingest", "orders@4")
    commit("details", "details@2", "orders@3..4", "products@1")
    commit("revenue", "revenue@2", "details@2")
    commit("top10", "top10@1", "details@2")
    commit("ingest", "orders@5")
    commit("details", "details@3", "orders@4..5", "products@1")
    return story


def add_times(story: StoryProducer, minutes: float) -> None:
    """Report that each run of a batch job began with the first commit and took so long."""
    for job, run in RUNS.items():
        about: dict[str, Any] = {"job": JobName(name=job), "run": UUID(int=run)}
        story.emit(1, JobStarted, job_type="BATCH", **about)
        story.emit(1 + minutes, JobStatusChanged, status="FINISHED", **about)


def counted(events: Sequence[Event]) -> list[Event]:
    """Return the events with numbers: 1,200 rows of each input, and 80 of each output."""
    found: list[Event] = []
    for event in events:
        if isinstance(event, Committed):
            inputs = tuple(each.model_copy(update={"rows": 1_200, "bytes": 48_000}) for each in event.inputs)
            outputs = tuple(each.model_copy(update={"rows": 80, "bytes": 6_400}) for each in event.outputs)
            event = event.model_copy(update={"inputs": inputs, "outputs": outputs})  # noqa: PLW2901
        found.append(event)
    return found


def planned_chain(tables: Sequence[str]) -> CorrectionPlan:
    """A plan to correct these tables, each made from the one before."""
    planned = [
        PlannedTable(
            table=table,
            format=None,
            verdict=TableVerdict.WRONG,
            is_source=number == 0,
            snapshots=(2,),
            newest=2,
            last_right=1,
            mirror=MirrorKind.BRANCH,
            starts_at=None,
            made_from=tuple(tables[:number][-1:]),
            jobs=("job",),
            written=Amount(),
        )
        for number, table in enumerate(tables)
    ]
    return CorrectionPlan(
        source=tables[0],
        snapshot=2,
        mode=CorrectionMode.FULL,
        tables=tuple(planned),
        jobs=(),
        left_out=(),
        complete_until=None,
        limits=(),
    )


def planned_job(job: str, reads: Sequence[str], writes: Sequence[str]) -> PlannedJob:
    """A batch job of a plan."""
    return PlannedJob(
        job=job,
        kind=JobKind.BATCH,
        group=None,
        reads=tuple(reads),
        writes=tuple(writes),
        commits=1,
        runs=1,
        commands=(f"{job}.py",),
        read=Amount(),
        written=Amount(),
        last_duration=None,
    )
