"""Which dataset of a scenario a reported one is: by its place, else by its name in a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from headwater.conformance.model import DatasetRole
from headwater.conformance.observations import ObservedDataset
from headwater.conformance.reported import QualifiedName, ReportedDataset, ReportedEvent

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
