"""Which events a forwarder gets: by kind, job, catalog and dataset."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Final, TypeAlias

from pydantic import field_validator

from headwater.config import Config, unknown
from headwater.events import Event
from headwater.events.keys import catalogs_in, datasets_in, jobs_in, name_pattern
from headwater.events.kinds import KINDS

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
        return [(_compiled(each), names) for each, names in patterns if each]

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


def _compiled(patterns: Patterns) -> list[re.Pattern[str]]:
    return [name_pattern(each) for each in patterns]


def _any_matches(patterns: Collection[re.Pattern[str]], names: Iterable[str]) -> bool:
    return any(each.fullmatch(name) for name in names for each in patterns)
