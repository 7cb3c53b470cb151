"""All that was reported of one step: the events that are dated within it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.conformance.identities import ScenarioDatasets
from headwater.conformance.model import DatasetRole, ScenarioStep
from headwater.conformance.observations import Observation, ObservedStep
from headwater.conformance.reported import ReportedDataset, ReportedEvent

ENDS: Final = frozenset({"COMPLETE", "FAIL", "ABORT"})


@dataclass(frozen=True)
class StepView:
    """A step with its truth, and the events about it."""

    step: ScenarioStep
    observation: Observation
    identities: ScenarioDatasets
    events: Sequence[ReportedEvent]
    """Those within the step's time."""
    runs: Mapping[str, Sequence[ReportedEvent]]
    """All events of the runs that are about the step, whenever they are."""

    @property
    def is_silent(self) -> bool:
        """Whether nothing was reported of the step: events of a run that goes on around it don't count."""
        return not self.runs and not any(True for event in self.events for _ in event.datasets)

    @property
    def inputs(self) -> Iterator[ReportedDataset]:
        """All that was reported as read."""
        for event in self.events:
            yield from event.inputs

    @property
    def outputs(self) -> Iterator[ReportedDataset]:
        """All that was reported as written."""
        for event in self.events:
            yield from event.outputs

    def targets(self, role: DatasetRole) -> Iterator[ReportedDataset]:
        """Yield what was reported of a dataset that was written or changed."""
        for event in self.events:
            for dataset in (*event.outputs, *filter(None, [event.subject])):
                if self.identities.role_of(dataset) == role:
                    yield dataset

    def all_of(self, role: DatasetRole) -> Iterator[ReportedDataset]:
        """Yield all that was reported of a dataset."""
        for event in self.events:
            for dataset in event.datasets:
                if self.identities.role_of(dataset) == role:
                    yield dataset


def view_step(
    step: ScenarioStep,
    time: ObservedStep,
    observation: Observation,
    identities: ScenarioDatasets,
    events: Sequence[ReportedEvent],
) -> StepView:
    """Return what was reported of a step."""
    within = [event for event in events if time.holds(event.time)]
    runs = {run: _events_of(run, events) for run in dict.fromkeys(event.run for event in within if event.run)}
    return StepView(
        step,
        observation,
        identities,
        within,
        {run: of_run for run, of_run in runs.items() if _is_about(of_run, time)},
    )


def _events_of(run: str, events: Sequence[ReportedEvent]) -> Sequence[ReportedEvent]:
    return [event for event in events if event.run == run]


def _is_about(of_run: Sequence[ReportedEvent], time: ObservedStep) -> bool:
    """A run that names datasets within the step, or that began and ended in it. An application does neither."""
    is_inside = all(time.holds(event.time) for event in of_run)
    return is_inside or any(time.holds(event.time) and any(True for _ in event.datasets) for event in of_run)
