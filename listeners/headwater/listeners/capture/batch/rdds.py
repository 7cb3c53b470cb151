"""Jobs that gave an RDD's rows away outside of any statement: into files, or to code that nobody sees into."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events import CommitKind, Event, Extent, Format, Gap, GapReason, Input, Output
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.listeners.capture.batch.commits import By, Commits
from headwater.listeners.capture.scene import Scene

HOOK: Final = "jobs"
_REMEMBERED: Final = 1_000
_RDD: Final = Input(dataset=None, opaque="RDD")
_FORMATS: Final = {"TextOutputFormat": Format.TEXT}


class Rdds:
    """For one producer."""

    def __init__(self, scene: Scene, commits: Commits) -> None:
        self._scene = scene
        self._commits = commits
        self._told: OrderedDict[str, None] = OrderedDict()

    def output(self, fact: Mapping[str, Any]) -> Output | None:
        """The files it wrote; none where it wrote something else, or where that couldn't be seen."""
        if "path" not in fact:
            return None
        try:
            dataset = dataset_of_path(fact["path"], self._scene.site)
        except IdentityError:
            return None
        return Output(
            dataset=dataset,
            format=_FORMATS.get(fact["format"], Format.OTHER),
            commit_kind=CommitKind.APPEND if fact["fresh"] else CommitKind.UNKNOWN,
            replaced=Extent.NOTHING if fact["fresh"] else Extent.UNKNOWN,
            made_from=(0,),
        )

    def events(self, fact: Mapping[str, Any], output: Output | None, by: By) -> Iterator[Event]:
        """What is known is told each time, and that something isn't, once for each place in the code."""
        site: str = fact["site"]
        if output is not None:
            yield self._commits.loose((output,), by, (_RDD,))
        elif self._is_new(site):
            where = "files or a store that wasn't seen" if fact["saves"] else "code that nobody sees into"
            detail = f"{site} gives the rows of an RDD to {where}"
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=detail, job=by.parent_job, run=by.run)

    def _is_new(self, site: str) -> bool:
        if site in self._told:
            return False
        self._told[site] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        return True
