"""The page of a snapshot: its whole origin, and what was made from it; and of two, what changed between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.questions.lineage_answers import StateEdge, VersionRange
from headwater.lineage.questions.names import ResolvedName, find
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.store import Store
from headwater.web.json_form import json_text
from headwater.web.pictures import draw
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Given, Parameter, View, WrongAddressError, command_line, value_of

_BASES: Final = ("commit", "state")


class SnapshotView(View):
    """One snapshot of a table."""

    path = "snapshot"
    title = "Snapshot"
    summary = "What a snapshot was made from, through all steps, and what was made from it."
    template = "snapshot.html"
    parameters = (
        Parameter("of", "TABLE@SNAPSHOT, or TABLE for its newest", is_required=True),
        Parameter("basis", "commit: what its commit read; state: all that is in it", default="commit"),
        Parameter("depth", "at most so many steps"),
        Parameter("branch", "the branch that it is on"),
    )

    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:
        found = self._ask(store, given, limits)
        return {**found, "picture": draw((found["upstream"],), "u"), "below": draw((found["downstream"],), "d")}

    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        return json_text(self._ask(store, given, limits))

    def command(self, given: Given) -> str:
        more: dict[str, object] = {name: value_of(given, name) for name in ("depth", "branch")}
        return command_line(
            "lineage", "upstream", value_of(given, "of") or "", state=value_of(given, "basis") == "state", **more
        )

    def _ask(self, store: Store, given: Given, limits: QuestionLimits) -> dict[str, Any]:
        basis, branch = value_of(given, "basis") or "commit", value_of(given, "branch")
        if basis not in _BASES:
            raise WrongAddressError(f"basis is commit or state, not {basis!r}")
        depth = _count(value_of(given, "depth"))
        with store.engine.connect() as connection:
            named = find(connection, value_of(given, "of") or "")
            options: dict[str, Any] = {"basis": basis, "branch": branch, "depth": depth, "at_most": limits.rows}
            up = upstream_snapshots(connection, named.dataset, named.snapshot, **options)
            down = downstream_snapshots(connection, named.dataset, named.snapshot, branch=branch, at_most=limits.rows)
        return {"table": named.dataset, "snapshot": named.snapshot, "upstream": up, "downstream": down, "basis": basis}


@dataclass(frozen=True)
class SourceDifference:
    """What two snapshots have of one source."""

    source: str
    one: str
    other: str

    @property
    def is_equal(self) -> bool:
        return self.one == self.other


class CompareView(View):
    """Two snapshots side by side."""

    path = "compare"
    title = "Compare two snapshots"
    summary = "Two snapshots side by side: which versions of each source are in the one and in the other."
    template = "compare.html"
    parameters = (
        Parameter("one", "TABLE@SNAPSHOT", is_required=True),
        Parameter("other", "TABLE@SNAPSHOT", is_required=True),
    )

    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:  # noqa: ARG002
        with store.engine.connect() as connection:
            named = [_snapshot(connection, value_of(given, name) or "") for name in ("one", "other")]
            answers = [upstream_state(connection, each.dataset, each.snapshot) for each in named]
        sides = [_versions(answer.rows) for answer in answers]
        sources = sorted({*sides[0], *sides[1]})
        rows = [SourceDifference(each, sides[0].get(each, ""), sides[1].get(each, "")) for each in sources]
        return {"rows": rows, "answers": answers, "labels": [answer.of for answer in answers]}

    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        return json_text(self.page(store, given, limits))

    def command(self, given: Given) -> str:
        return command_line("lineage", "upstream", value_of(given, "one") or "", "--state")


def _snapshot(connection: Connection, text: str) -> ResolvedName:
    named = find(connection, text)
    if named.snapshot is None:
        raise ConfigurationError(f"which snapshot of {named.dataset.label}? Write {named.dataset.label}@SNAPSHOT")
    return named


def _versions(rows: tuple[StateEdge, ...]) -> dict[str, str]:
    """Return by source which versions of it are in a state, through all steps."""
    found: dict[str, list[str]] = {}
    for edge in rows:
        found.setdefault(_name(edge.source), []).append(edge.source.label.removeprefix(_name(edge.source)).lstrip("@"))
    return {source: ", ".join(sorted(set(versions))) or "?" for source, versions in found.items()}


def _name(source: VersionRange) -> str:
    return source.dataset.label if source.dataset is not None and source.dataset.known_as else source.name


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) <= 1_000:
        raise WrongAddressError(f"depth is a number of steps from 1 to 1000, not {text!r}")
    return int(text)


SNAPSHOT: Final = SnapshotView()
COMPARE: Final = CompareView()
