"""Facts about runs: how a statement ended, and that each run has one START, one end and the right parent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headwater.conformance.reported import ReportedEvent
from headwater.conformance.step_view import ENDS, StepView
from headwater.conformance.verdicts import FactResult, Verdict, missed, seen, wrong

ONE_START = "one START per run"
ONE_END = "one end per run"
PARENTS = "parents of runs"


def state_fact(view: StepView) -> Iterator[FactResult]:
    """Judge how the runs of a step ended."""
    if view.step.state is None:
        return
    fact = f"ends with {view.step.state}"
    ends = {event.state for of_run in view.runs.values() for event in of_run if event.state in ENDS}
    others = ends - {view.step.state, None}
    if view.step.state == "FAIL":
        others = {end for end in others if end != "COMPLETE"} | _completed_writes(view)
    if others:
        yield wrong(fact, f"{', '.join(sorted(map(str, others)))} is reported")
    else:
        yield seen(fact) if view.step.state in ends else missed(fact, "no end is reported")


def _completed_writes(view: StepView) -> set[str]:
    """A run that fails may have parts that complete, but none that says to have written."""
    return {
        "COMPLETE"
        for of_run in view.runs.values()
        if any(event.state == "COMPLETE" for event in of_run) and any(event.outputs for event in of_run)
    }


def noop_fact(view: StepView) -> FactResult:
    """Judge that a statement without effect isn't reported as a change."""
    fact = "changes nothing"
    changes = [
        f"{each.lifecycle or 'a write'} of {view.identities.shown(each)}"
        for event in view.events
        for each in (*event.outputs, *filter(None, [event.subject]))
    ]
    return wrong(fact, f"reported is {', '.join(dict.fromkeys(changes))}") if changes else seen(fact)


def scenario_facts(events: Sequence[ReportedEvent]) -> Iterator[FactResult]:
    """Judge all runs of a scenario."""
    runs: dict[str, list[ReportedEvent]] = {}
    for event in events:
        if event.run is not None and event.state is not None:
            runs.setdefault(event.run, []).append(event)
    if not runs:
        for fact in (ONE_START, ONE_END, PARENTS):
            yield FactResult(fact, Verdict.SILENT, "no run is reported")
        return
    yield _one(ONE_START, {run: _count(of_run, {"START"}) for run, of_run in runs.items()})
    yield _one(ONE_END, {run: _count(of_run, ENDS) for run, of_run in runs.items()})
    yield _parents(runs)


def _count(of_run: Sequence[ReportedEvent], states: frozenset[str] | set[str]) -> int:
    return sum(event.state in states for event in of_run)


def _one(fact: str, counts: Mapping[str, int]) -> FactResult:
    several = [f"{run} has {count}" for run, count in counts.items() if count > 1]
    none = [run for run, count in counts.items() if not count]
    if several:
        return wrong(fact, "; ".join(several))
    return missed(fact, f"there is none of {', '.join(none)}") if none else seen(fact)


def _parents(runs: Mapping[str, Sequence[ReportedEvent]]) -> FactResult:
    """A parent that isn't among the runs may be of another system, a scheduler's say."""
    has_right_one = False
    for of_run in runs.values():
        for parent in {event.parent for event in of_run if event.parent}:
            jobs = {event.job for event in runs.get(parent.run, ())}
            if jobs and parent.job not in jobs:
                names = ", ".join(sorted(str(job) for job in jobs))
                return wrong(PARENTS, f"{parent.run} is said to be a run of {parent.job}, and is one of {names}")
            has_right_one = has_right_one or bool(jobs)
    return seen(PARENTS) if has_right_one else missed(PARENTS, "no run names a run that it is a part of")
