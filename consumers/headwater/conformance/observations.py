"""What the script of a scenario observed when it was played: places, versions, and the times of its steps.

Whoever has no Spark writes such a file in the same form: `docs/conformance.md` describes it.

Which dataset of a scenario a reported one is: by its place, else by its name in a catalog.

All that was reported of one step: the events that are dated within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from headwater.conformance.model import DatasetRole, ScenarioStep
from headwater.conformance.reported import QualifiedName, ReportedDataset, ReportedEvent
from headwater.errors import ConfigurationError


class ObservedDataset(BaseModel):
    """Where a dataset is, and what it is called in catalogs."""

    model_config = ConfigDict(frozen=True)

    place: str | None = None
    """A URI; None for a view."""
    names: tuple[str, ...] = ()


class ObservedStep(BaseModel):
    """When a step was played: what a producer dates from `began` to `until` is about it."""

    model_config = ConfigDict(frozen=True)

    began: AwareDatetime
    until: AwareDatetime

    def holds(self, time: datetime) -> bool:
        """Return whether an event of this time is about the step."""
        return self.began <= time < self.until


class Observation(BaseModel):
    """One scenario as it was played."""

    model_config = ConfigDict(frozen=True)

    scenario: str
    error: str | None = None
    """Why it broke off, where it did: then nothing of it can be judged."""
    spark: str | None = None
    began: AwareDatetime
    ended: AwareDatetime
    datasets: Mapping[DatasetRole, ObservedDataset]
    versions: Mapping[str, str]
    """By label, `orders@1`."""
    steps: Mapping[str, ObservedStep]


def read_observations(directory: Path) -> Mapping[str, Observation]:
    """Return the observations in a directory, by scenario."""
    place = directory / "observed" if (directory / "observed").is_dir() else directory
    found = [_read(path) for path in sorted(place.glob("*.json"))] if place.is_dir() else []
    if not found:
        raise ConfigurationError(
            f"there are no observations in {place}: name the directory that run.py was given by --to "
            "(`headwater conformance script DIR` writes run.py)"
        )
    return {each.scenario: each for each in found}


def _read(place: Path) -> Observation:
    try:
        return Observation.model_validate_json(place.read_bytes())
    except ValidationError as e:
        fault = e.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise ConfigurationError(
            f"{place} is no observation of a scenario: {where or 'the file'}: {fault['msg']}"
        ) from e


_SAME_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}


class ScenarioDatasets:
    """The datasets of a scenario, to look reported ones up in.

    A name that one event links to a place by a symlink stands for that place in others too.
    """

    def __init__(self, datasets: Mapping[DatasetRole, ObservedDataset], events: Iterable[ReportedEvent] = ()) -> None:
        self._by_place = {normalize_place(each.place): role for role, each in datasets.items() if each.place}
        self._by_table = {name.lower(): role for role, each in datasets.items() for name in each.names}
        self._datasets = datasets
        self._linked: dict[QualifiedName, DatasetRole] = {}
        for event in events:
            for dataset in event.datasets:
                role = self.role_of(dataset)
                if role is not None:
                    self._linked.setdefault(dataset.name, role)

    def role_of(self, dataset: ReportedDataset) -> DatasetRole | None:
        """Return the role; None for a dataset that isn't of the scenario. A place counts before names."""
        names = (dataset.name, *dataset.symlinks)
        by_place = next(filter(None, map(self._role_by_place, names)), None)
        return by_place or next(filter(None, map(self._role_by_table, names)), None)

    def role_of_name(self, name: QualifiedName) -> DatasetRole | None:
        """Return the role of what only a name is known of, as in column lineage."""
        return self.role_of(ReportedDataset(name)) or self._linked.get(name)

    def shown(self, dataset: ReportedDataset) -> str:
        """Return the role, or the name of a dataset that isn't of the scenario."""
        return self.role_of(dataset) or str(dataset.name)

    def shown_name(self, name: QualifiedName) -> str:
        """Return the role, or the name."""
        return self.role_of_name(name) or str(name)

    def has_place(self, dataset: ReportedDataset, role: DatasetRole) -> bool:
        """Return whether one of its names is the place of the role."""
        return any(self._role_by_place(name) == role for name in (dataset.name, *dataset.symlinks))

    def has_table_name(self, dataset: ReportedDataset, role: DatasetRole) -> bool:
        """Return whether one of its names is the role's in a catalog."""
        return any(self._role_by_table(name) == role for name in (dataset.name, *dataset.symlinks))

    def has_names(self, role: DatasetRole) -> bool:
        """Return whether the role has a name in a catalog."""
        return bool(self._datasets[role].names)

    def _role_by_place(self, name: QualifiedName) -> DatasetRole | None:
        """A file or a partition that is named by itself is a part of the dataset, and counts as it."""
        place = normalize_place(uri_of(name))
        while place.count("/") > 1:
            if place in self._by_place:
                return self._by_place[place]
            place = place.rpartition("/")[0]
        return None

    def _role_by_table(self, name: QualifiedName) -> DatasetRole | None:
        return self._by_table.get(name.name.lower())


def uri_of(name: QualifiedName) -> str:
    """Return the place that a name says, if it says one: local files are in the namespace `file`.

    >>> uri_of(QualifiedName("file", "/data/orders"))
    'file:/data/orders'
    """
    return str(name) if ":" in name.namespace else f"{name.namespace}:/{name.name.lstrip('/')}"


def normalize_place(place: str) -> str:
    """Return one spelling of a place: a file is a file on whichever host it is said to be.

    >>> normalize_place("file://host-7/data/orders/")
    'file:/data/orders'
    """
    scheme, colon, rest = place.partition(":")
    scheme = scheme.lower()
    if not colon:
        return place.rstrip("/")
    if scheme == "file":
        path = rest[2:].partition("/")[2] if rest.startswith("//") else rest
        return f"file:/{path.strip('/')}"
    return f"{_SAME_SCHEMES.get(scheme, scheme)}:{rest.rstrip('/')}"


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
