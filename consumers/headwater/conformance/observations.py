"""What the script of a scenario observed when it was played: places, versions, and the times of its steps.

Whoever has no Spark writes such a file in the same form: `docs/conformance.md` describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from headwater.conformance.model import DatasetRole
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
    found = [_read(each) for each in sorted(place.glob("*.json"))] if place.is_dir() else []
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
