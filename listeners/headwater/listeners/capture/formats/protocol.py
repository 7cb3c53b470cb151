"""What capture needs to know of a table format. One module (or package) per format implements it: siblings.

A format reads what its eye wrote (`capture/java/<Format>Eye.java`): of a plan's shape, in `source` and `sink`, asked
once for each shape; and of the facts of each statement, in `reads`, `written` and `evolved`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headwater.events import (
    AlterTable,
    CommitKind,
    Extent,
    Format,
    Output,
    ShapedSink,
    ShapedSource,
    Since,
    StartReason,
)
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene
from headwater.listeners.capture.statements import Facts, Statement, Took

if TYPE_CHECKING:
    from headwater.listeners.capture.commands import Part


@dataclass(frozen=True)
class Described:
    """A relation that a plan reads, as its shape tells it."""

    node: int
    """The leaf of the plan."""
    source: ShapedSource
    versioned: bool = False
    """Whether the format has versions: if so, one that isn't known is told as a Gap."""
    asked: int | None = None
    """The version that was asked for by number, where the plan tells it."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """Whatever the format wants to find again: never told."""
    hidden: frozenset[str] = frozenset()
    """Columns that the format keeps beside the table's own: nothing is told to come from them."""
    also: tuple[Described, ...] = ()
    """What else the same leaf reads: the other topics of a subscription."""


@dataclass(frozen=True)
class Version:
    """A version that was read. At most one of `snapshot` and `candidates` is told."""

    snapshot: int | None = None
    version: str | None = None
    since: Since | None = None
    changes: bool = False
    """What came between `since` and this version was read, not a state."""
    candidates: tuple[int, ...] = ()
    why: str | None = None
    """Why it isn't known."""


@dataclass(frozen=True)
class Target:
    """What a statement is about to write, as its shape tells it."""

    sink: ShapedSink
    catalog: NamedCatalog | None = None
    """Where the table is in one."""
    kind: CommitKind = CommitKind.UNKNOWN
    """As the command says it; the format's own word holds where it has one."""
    replaced: Extent = Extent.UNKNOWN
    versioned: bool = False
    node: int | None = None
    """The relation that is written, where the plan has one."""
    hints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a target. No outputs and no gap: nothing was committed."""

    outputs: tuple[Output, ...] = ()
    """The place stands in each; what they were made from is the caller's business."""
    gap: str | None = None
    """Why a snapshot isn't exact."""
    sink: ShapedSink | None = None
    """The sink, where the facts tell more of it than the shape did: a table that the statement made."""
    unknown_origin: bool = False
    """What the outputs were made from isn't among what the plan reads."""


@dataclass(frozen=True)
class Begins:
    """Where a query begins to read a stream, and why there."""

    snapshot: int | None = None
    version: str | None = None
    reason: StartReason = StartReason.UNKNOWN


class TableFormat(Protocol):
    @property
    def format(self) -> Format: ...

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        """What this leaf of an analyzed plan reads; None where it isn't this format's."""
        ...

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        """What is written, told by a relation (DataSourceV2Relation, LogicalRelation …) or, where the statement makes
        the table or the source of the first kind does (CreateTableAsSelect, ReplaceTableAsSelect, SaveIntoDataSource-
        Command), by the command itself; None where it isn't this format's."""
        ...

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        """The versions that were really read of it: more than one where the statement read it more than once. None at
        all: the optimizer saw that it needn't be read."""
        ...

    def written(self, target: Target, statement: Statement) -> Outcome:
        """What this statement committed to the target. `made_from` is the caller's business. One that failed may have
        committed before: of it, a snapshot is told only where it is certain that the statement itself made it."""
        ...

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        """How the write changed the table's schema, told before its commit."""
        ...


@dataclass(frozen=True)
class Loose:
    """What a commit did that no plan tells of."""

    outputs: tuple[Output, ...] = ()
    altered: tuple[AlterTable, ...] = ()
    whole: bool = True
    """Whether that is all of it."""


@runtime_checkable
class Streams(Protocol):
    """A format that can be read as a stream, and counts what was read in a way that this module knows."""

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        """What a micro-batch read of it, in versions. Never asked for a stream that gave nothing."""
        ...

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        """Where a query begins to read it that has no checkpoint yet, by what its first micro-batch takes; `end` may
        be absent."""
        ...


@runtime_checkable
class WritesParts(Protocol):
    """A format into several of whose datasets one command may write."""

    def parts(self, node: Node, plan: Plan, scene: Scene) -> tuple[Part, ...]:
        """What this command writes; none where it isn't this format's."""
        ...


@runtime_checkable
class TellsLater(Protocol):
    """A format some of whose relations don't say what they read: that shows only in what was read."""

    def later(self, source: Described, statement: Statement) -> tuple[Described, ...]:
        """What this statement read of it; none where the shape tells it, or where that isn't to be seen."""
        ...


@runtime_checkable
class TellsLoose(Protocol):
    """A format some of whose commits are made without a plan that tells of them, by calling its library."""

    def loose(self, fact: Mapping[str, Any], scene: Scene) -> Loose | None:
        """What a fact that a hook noted says was committed; None where it isn't a commit, or not this format's."""
        ...


def streams_of(found: object) -> Streams | None:
    """The format, where it can be read as a stream."""
    return found if isinstance(found, Streams) else None
