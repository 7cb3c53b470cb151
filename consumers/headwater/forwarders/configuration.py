"""The configuration of one forwarder: the keys that each has, and the options of its target.

Which events a forwarder gets: by kind, job, catalog and dataset.

Finds forwarders by the name of an entry point or by their path, and creates them.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from pydantic import Field, field_validator

from headwater.config import Config, Seconds, read_config, unknown
from headwater.config.model import Keys
from headwater.errors import ConfigurationError, HeadwaterError, PluginError, advise_import
from headwater.events import Event
from headwater.events.keys import catalogs_in, datasets_in, jobs_in, name_pattern
from headwater.events.kinds import KINDS
from headwater.events.names import VALIDATION_JOB_NAMESPACE, JobName
from headwater.forwarders.api import GROUP, Forwarder, ForwarderContext, KnownLineage
from headwater.plugins import OWN_PLUGINS, extra_command, load

Patterns: TypeAlias = tuple[str, ...]


class NameFilter(Config):
    """Patterns of names, in which `*` stands for anything. Of several patterns of one kind, one has to match."""

    kinds: Patterns = ()
    """Kinds of events, such as `Committed` or `Create*`."""
    jobs: Patterns = ()
    """Jobs, by `name` or `namespace/name`; a step has its application's name too."""
    catalogs: Patterns = ()
    """Catalogs, by name."""
    datasets: Patterns = ()
    """Tables by `catalog.database.table` or a shorter name, and datasets by `namespace/name` or name."""

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: Patterns) -> Patterns:
        for each in kinds:
            if not any(name_pattern(each).fullmatch(kind) for kind in KINDS):
                raise ValueError(unknown("kind of event", each, KINDS))
        return kinds

    @cached_property
    def _rules(self) -> Collection[_Rule]:
        patterns = ((self.jobs, jobs_in), (self.catalogs, catalogs_in), (self.datasets, datasets_in))
        return [(_compile(each), names) for each, names in patterns if each]

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(kind for kind in KINDS for each in self.kinds if name_pattern(each).fullmatch(kind))

    def includes(self, event: Event) -> bool:
        """Return whether nothing speaks against the event. An event that names no job, catalog or dataset passes the
        patterns of what it doesn't name."""
        if self.kinds and event.kind not in self._kinds:
            return False
        for patterns, names_in in self._rules:
            names = list(names_in(event))
            if names and not _any_matches(patterns, names):
                return False
        return True

    def excludes(self, event: Event) -> bool:
        """Return whether any pattern matches."""
        if event.kind in self._kinds:
            return True
        return any(_any_matches(patterns, names_in(event)) for patterns, names_in in self._rules)


_Rule: TypeAlias = tuple[Collection[re.Pattern[str]], Callable[[Event], Iterable[str]]]
EVERYTHING: Final = NameFilter()


def _compile(patterns: Patterns) -> list[re.Pattern[str]]:
    return [name_pattern(pattern) for pattern in patterns]


def _any_matches(patterns: Collection[re.Pattern[str]], names: Iterable[str]) -> bool:
    return any(pattern.fullmatch(name) for name in names for pattern in patterns)


_ADVICE = "write async def handle(self, batch)"


def create_forwarder(type_name: str, context: ForwarderContext) -> Forwarder:
    """Create a forwarder. A PluginError says why there is none."""
    factory = load_forwarder(type_name)
    if not callable(factory):
        raise PluginError(f"{type_name} is no forwarder: name a class, or a function that is given the context")
    try:
        created = factory(context)
    except HeadwaterError:
        raise
    except Exception as e:  # a plug-in can fail in any way
        raise PluginError(f"{type_name} can't be created: {type(e).__name__}: {e}") from e
    return check_forwarder(created)


def load_forwarder(type_name: str) -> Any:
    """Return the class or function of this type. A PluginError says why there is none."""
    try:
        return load(GROUP, type_name)
    except PluginError as e:
        if advice := _advise_extra(type_name, e):
            raise PluginError(advice) from e
        raise


def _advise_extra(type_name: str, error: PluginError) -> str:
    """Return how to install what one of headwater's own forwarders needs, or nothing if that isn't what is wrong."""
    cause = error.__cause__
    if type_name not in OWN_PLUGINS[GROUP] or not isinstance(cause, ImportError) or not advise_import(cause):
        return ""
    return f"the forwarder {type_name} needs packages that aren't installed ({cause.name}): {extra_command(type_name)}"


def check_forwarder(forwarder: object) -> Forwarder:
    """Return it if its `handle` can be awaited with a batch."""
    name = f"{type(forwarder).__name__}.handle"
    method = getattr(forwarder, "handle", None)
    if not callable(method):
        raise PluginError(f"{name} is no method: {_ADVICE}")
    if not inspect.iscoroutinefunction(method):
        raise PluginError(f"{name} isn't asynchronous: {_ADVICE}")
    try:
        inspect.signature(method).bind(())
    except TypeError:
        raise PluginError(f"{name}{inspect.signature(method)} can't be called with a batch: {_ADVICE}") from None
    return cast("Forwarder", forwarder)


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
