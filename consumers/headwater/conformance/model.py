"""Scenarios and their truth, as they are written in `truth/<scenario>.json`.

Datasets are named by roles, `orders`, and their versions by labels, `orders@1`: where a table is, and which snapshot
that was, is observed when a scenario is played.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from headwater.errors import ConfigurationError

DatasetRole: TypeAlias = str
RunOutcome: TypeAlias = Literal["COMPLETE", "FAIL"]

_PACKAGE: Final = "headwater.conformance"
_TRUTH: Final = "truth"


class ColumnSource(NamedTuple):
    """A column that another one, or rows, are made from: `orders.amount AGGREGATION`."""

    role: DatasetRole
    column: str
    kinds: frozenset[str]
    """Subtypes of OpenLineage's transformations, any of which is right."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScenarioStep(_Strict):
    """What is true of one step: a statement, or a stream from its start to its end."""

    does: str
    state: RunOutcome | None = None
    """How the statement's run ends; None for DDL, which producers report with a run or without."""
    noop: bool = False
    """It changes nothing."""
    reads: tuple[str, ...] = ()
    """Roles or labels; with a label, the version that is read."""
    writes: tuple[str, ...] = ()
    """Roles or labels; with a label, the version that is made."""
    may_read: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()
    names: tuple[DatasetRole, ...] = ()
    """Datasets that have to be known by their place and by their names in the catalog."""
    schemas: Mapping[DatasetRole, tuple[str, ...]] = Field(default_factory=dict, alias="schema")
    """Columns as `name type`, in Spark's words."""
    columns: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """By `role.column`: the columns that its values are made from, and how."""
    influences: Mapping[DatasetRole, tuple[str, ...]] = Field(default_factory=dict)
    """By output, all columns that decide which rows it has, and how."""
    lifecycle: Mapping[DatasetRole, str] = Field(default_factory=dict)
    """How its life cycle changes: `none` where its data aren't replaced as a whole, `RENAME old` with the old role."""

    @property
    def read_roles(self) -> Mapping[DatasetRole, frozenset[str]]:
        """The roles that are read, each with the labels of its versions."""
        return _by_role(self.reads)

    @property
    def written_roles(self) -> Mapping[DatasetRole, frozenset[str]]:
        """The roles that are written, each with the labels of its versions."""
        return _by_role(self.writes)

    @property
    def changes_data(self) -> bool:
        """Whether it reads or writes rows; DDL doesn't, and has no inputs and outputs to be judged."""
        return self.state is not None

    def sources_of(self, target: str) -> tuple[ColumnSource, ...]:
        """Return what a `role.column` is made from."""
        return tuple(map(parse_source, self.columns[target]))

    def influences_of(self, role: DatasetRole) -> tuple[ColumnSource, ...]:
        """Return what decides which rows an output has."""
        return tuple(map(parse_source, self.influences[role]))


class Scenario(_Strict):
    """Steps that one or several applications play."""

    title: str
    hard: str
    """What makes it hard to report."""
    steps: Mapping[str, ScenarioStep]


def _by_role(words: tuple[str, ...]) -> Mapping[DatasetRole, frozenset[str]]:
    found: dict[DatasetRole, frozenset[str]] = {}
    for word in words:
        role, _, version = word.partition("@")
        found[role] = found.get(role, frozenset()) | ({word} if version else frozenset())
    return found


def parse_source(text: str) -> ColumnSource:
    """Read `role.column KIND`, or `role.column KIND|KIND` where each is right.

    >>> parse_source("orders.amount AGGREGATION").column
    'amount'
    """
    column, _, kinds = text.partition(" ")
    role, _, name = column.partition(".")
    return ColumnSource(role, name, frozenset(kinds.split("|")))


def load_scenarios() -> Mapping[str, Scenario]:
    """Return all scenarios by their names, in order."""
    names = sorted(place.name for place in files(_PACKAGE).joinpath(_TRUTH).iterdir())
    return {name.removesuffix(".json"): _load(name) for name in names if name.endswith(".json")}


def load_scenario(name: str) -> Scenario:
    """Return one scenario; a ConfigurationError names those that there are."""
    scenarios = load_scenarios()
    if name not in scenarios:
        raise ConfigurationError(f"there is no scenario {name}; there are: {', '.join(scenarios)}")
    return scenarios[name]


def _load(name: str) -> Scenario:
    return Scenario.model_validate_json(files(_PACKAGE).joinpath(_TRUTH).joinpath(name).read_text(encoding="utf-8"))
