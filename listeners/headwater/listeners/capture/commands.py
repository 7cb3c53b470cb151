"""What capture makes of a command: a write, a modification of a catalog, both, or nothing, and then why.

Every command of Spark and of the formats is in the register, by its class's simple name; what isn't, is told as a Gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from headwater.events import Event, FieldPath
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement


@dataclass(frozen=True)
class Part:
    """A target, and the query whose rows go into it."""

    target: Target
    query: int | None = None
    """The node whose output is written; None where the command isn't a query's (a DELETE without a plan, TRUNCATE)."""
    columns: tuple[FieldPath | None, ...] = ()
    """Which column of the target each column of the query's output goes to, in its order; None: to none of them."""
    row_level: bool = False
    """A MERGE, UPDATE or DELETE: lineage is that of the command's clauses, not of a query's output."""
    only: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Of these nodes, only these of their inputs give rows that go there: branches of a UNION."""


@dataclass(frozen=True)
class Write:
    """What a statement of this shape writes."""

    parts: tuple[Part, ...]
    reads: tuple[int, ...] = ()
    """Nodes that are read beside the parts' queries."""


ReadWrite: TypeAlias = Callable[[Node, Plan, Scene], "Write | None"]
"""Asked once for each shape; None where it can't be told what is written, which makes a Gap."""
TellCatalog: TypeAlias = Callable[[Node, Statement, Scene], Iterable[Event]]
"""Drafts, in order; asked for each statement that didn't fail."""


@dataclass(frozen=True)
class Command:
    write: ReadWrite | None = None
    catalog: TellCatalog | None = None
    """Told before the write's commit."""
    ignored: str | None = None
    """Why nothing is told of it."""
    proven: bool = False
    """What it tells of a catalog rests on commits that hooks noted: so it is told of a statement that failed, too."""
    formats: tuple[str, ...] = field(default=())
