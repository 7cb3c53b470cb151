"""Rows for hypothesis."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st

from headwater.events import Committed, Event, JobName, JobStatusChanged
from headwater.events.jobs import JobStatus
from headwater.testing.examples import EXAMPLES

DAY = timedelta(days=1)
BEGAN: datetime = EXAMPLES[0].time
PRODUCERS = (UUID(int=1), UUID(int=2))
RUNS = (UUID(int=11), UUID(int=12))
JOBS = (JobName(name="a"), JobName(name="b"))


@st.composite
def pooled(draw: st.DrawFn) -> Event:
    """One of few producers, jobs and runs, at one of few times: so that events have rows in common."""
    event = draw(st.sampled_from(EXAMPLES))
    update = {
        "producer": draw(st.sampled_from(PRODUCERS)),
        "sequence": draw(st.integers(1, 200)),
        "family_sequence": draw(st.integers(1, 200)),
        "time": BEGAN + draw(st.sampled_from([-DAY, timedelta(0), timedelta(microseconds=1), DAY])),
        "job": draw(st.sampled_from(JOBS)),
        "run": draw(st.sampled_from(RUNS)),
    }
    if isinstance(event, JobStatusChanged):
        update |= {"status": draw(st.sampled_from(JobStatus)), "inferred": draw(st.booleans())}
    if isinstance(event, Committed):
        update |= {"barrier": draw(st.integers(1, 3)), "incarnation": None}
    return event.model_copy(update=update)


def unique(emitted: list[Event]) -> list[Event]:
    """A number of a producer is one event's."""
    return list({event.event_id: event for event in emitted}.values())
