"""The configuration of one forwarder: the keys that each has, and the options of its target."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from headwater.config import Config, Seconds, read_config
from headwater.config.model import Keys
from headwater.errors import ConfigurationError
from headwater.events import Event
from headwater.events.names import VALIDATION_JOB_NAMESPACE, JobName
from headwater.forwarders.api import Forwarder, ForwarderContext, KnownLineage
from headwater.forwarders.filters import NameFilter, Patterns
from headwater.forwarders.plugins import create_forwarder

_LONGEST_CALL: Final = 240.0
"""Kafka takes the partitions from who doesn't poll for five minutes (max.poll.interval.ms)."""
_SIMILAR: Final = 0.8
_NAMES: Final = ("kinds", "jobs", "catalogs", "datasets")


class ForwarderConfig(Config):
    """The keys that every forwarder has."""

    type: str = Field(min_length=1)
    """What it is: a name that is installed, or `package.module:Name`. A table without it is of the type NAME."""
    batch: int = Field(default=100, ge=1, le=10_000)
    """At most so many events in a call of `handle`."""
    rate: float | None = Field(default=None, gt=0)
    """At most so many events a second."""
    timeout: Seconds = Field(default=60.0, gt=0, le=_LONGEST_CALL)
    """A call of `handle` that takes longer has failed."""
    isolate_after: Seconds = Field(default=600.0, ge=0)
    """After errors of the target for so long, the events of a batch are tried one by one: one that fails while others
    arrive is a dead letter."""
    validations: bool = False
    """Whether events of jobs that `headwater validate` runs are sent: a validation is no production."""
    include_kinds: Patterns = ()
    """Only events of these kinds, such as `Committed,Create*`."""
    include_jobs: Patterns = ()
    """Only events of these jobs, by `name` or `namespace/name`."""
    include_catalogs: Patterns = ()
    """Only events about these catalogs."""
    include_datasets: Patterns = ()
    """Only events about these tables or datasets, such as `lake.sales.*`."""
    exclude_kinds: Patterns = ()
    """No events of these kinds."""
    exclude_jobs: Patterns = ()
    """No events of these jobs."""
    exclude_catalogs: Patterns = ()
    """No events that name one of these catalogs."""
    exclude_datasets: Patterns = ()
    """No events that name one of these tables or datasets."""

    def name_filter(self, which: str) -> NameFilter:
        """Return what to `include` or to `exclude`."""
        values = {name: ",".join(getattr(self, f"{which}_{name}")) for name in _NAMES}
        return read_config(NameFilter, {name: value for name, value in values.items() if value}, shown=f"{which}.")


@dataclass(frozen=True)
class ForwarderSettings:
    """A forwarder as it is configured."""

    name: str
    config: ForwarderConfig
    include: NameFilter
    exclude: NameFilter
    options: Mapping[str, str]
    """The target's own."""

    def wants(self, event: Event) -> bool:
        """Return whether the event is sent, as far as its names and kind say."""
        job = getattr(event, "job", None)
        if isinstance(job, JobName) and job.namespace == VALIDATION_JOB_NAMESPACE and not self.config.validations:
            return False
        return self.include.includes(event) and not self.exclude.excludes(event)

    @property
    def group(self) -> str:
        """The consumer group that its offsets are kept for."""
        return f"headwater-forward-{self.name}"

    def create(self, lineage: KnownLineage, directory: Path | None = None) -> Forwarder:
        """Create the forwarder, with a directory of its own if it is to run. A ConfigurationError or PluginError says
        why it can't be."""
        context = ForwarderContext(self.name, self.options, lineage, directory)
        try:
            return create_forwarder(self.config.type, context)
        except ConfigurationError as e:
            raise ConfigurationError(f"forwarder {self.name}: {e}{self._advice()}") from e

    def _advice(self) -> str:
        """The target doesn't know the keys that every forwarder has."""
        ours = _own_keys()
        for key in self.options:
            near = difflib.get_close_matches(key, ours, n=1, cutoff=_SIMILAR)
            if near:
                return f". Every forwarder has {near[0]}: is {key} meant to be that?"
        return ""


def read_settings(name: str, values: Mapping[str, str]) -> ForwarderSettings:
    """Read the keys of one forwarder. Without a type, its name is its type."""
    ours = _own_keys()
    own = {"type": name, **{key: value for key, value in values.items() if key in ours}}
    for key in values:
        if key.startswith(("include.", "exclude.")):
            own[key] = values[key]
    shown = f"forwarders.{name}."
    config = read_config(ForwarderConfig, own, shown=shown)
    options = {key: value for key, value in values.items() if key not in own}
    try:
        return ForwarderSettings(name, config, config.name_filter("include"), config.name_filter("exclude"), options)
    except ConfigurationError as e:
        raise ConfigurationError(f"{shown}{e}") from e


def _own_keys() -> frozenset[str]:
    return frozenset(Keys.of(ForwarderConfig).fields)
