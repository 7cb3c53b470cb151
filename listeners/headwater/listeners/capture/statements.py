"""A statement that ended, as the stages and the formats see it: its plan, and the facts of this one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from headwater.events.barriers import stream_barrier
from headwater.listeners.capture.plan.tree import Plan

FormatFact: TypeAlias = Mapping[str, Any]
"""An object that a format's own Java wrote: only that format's modules know what is in it."""


@dataclass(frozen=True, slots=True)
class FailureDetails:
    message: str
    type: str = ""
    condition: str | None = None
    sql_state: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NestedFact:
    """What was seen in an execution nested in the statement."""

    command: str | None = None
    """The class of a command that ran there."""
    output_path: str | None = None
    """Where it wrote files."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """What its topmost operator counted."""
    why: str | None = None
    """Why it couldn't be read."""
    of_format: Mapping[str, Any] = field(default_factory=dict)
    """What formats' extractors wrote, by the format's word."""


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """What hooks saw while the statement ran, and what its plans had read when it had run."""

    reads: tuple[FormatFact, ...] = ()
    """Versions that leaves of the statement's own plans read: `format`, `in` (optimized, physical, cached), what the
    format's extractor wrote, and `attributes`: ids of the plan's attributes that this leaf gives."""
    nested_reads: tuple[FormatFact, ...] = ()
    """The same of executions nested in it, whose attributes aren't the plan's."""
    nested_facts: tuple[NestedFact, ...] = ()
    hook_facts: tuple[FormatFact, ...] = ()
    """What hooks noted in the threads that did it: each has `hook`."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """What the command answered: the ids that procedures return."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """What the topmost operator counted: numOutputRows …"""
    looked_up: Mapping[str, FormatFact] = field(default_factory=dict)
    """By the format's word: what its extractor looked up when the statement had ended."""


@dataclass(frozen=True, slots=True)
class FilePaths:
    """The directories that files were read from."""

    directories: tuple[str, ...]
    """Each of them or, where they are too many, what they have in common in each file system."""
    summary: str | None = None
    """In that case: how many there are, the first and the last."""

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> FilePaths:
        """Of an object of JSON that the driver wrote them into."""
        return cls(tuple(fields.get("paths", ())), fields.get("pathsRead"))


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """What a stream gave to a micro-batch, in its source's own words: from where, which is absent in the first batch of
    some, and to where, which is absent as long as it gave nothing."""

    start: str | None
    end: str | None
    paths: FilePaths | None = None
    """Of a stream of files that a pattern names: where it found them."""

    @property
    def is_empty(self) -> bool:
        return self.end is None or self.start == self.end


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Which micro-batch a statement is, or is a part of."""

    query: UUID
    """The query's id, which lives as long as its checkpoint: the incarnation."""
    run: UUID
    """One start of it."""
    batch: int
    began: int | None = None
    """Milliseconds at which the incarnation began."""
    offsets: Mapping[int, tuple[OffsetRange, ...]] | None = None
    """By the leaf of the plan. A stream that a query reads twice gives the same twice. None where it isn't known."""
    why: str | None = None
    """Why something of it isn't known."""
    files: int | None = None
    """How many files its sink wrote, where that is one of files."""

    @property
    def gave_nothing(self) -> bool:
        """No stream gave anything: only state, or time that went by, can have made something of it."""
        return self.offsets is not None and all(
            offsets.is_empty for of_leaf in self.offsets.values() for offsets in of_leaf
        )

    @property
    def barrier(self) -> int | None:
        return None if self.began is None else stream_barrier(self.began, self.batch)


@dataclass(frozen=True, slots=True)
class Statement:
    id: int | None
    """Spark's id of the root execution; none where it was none, as procedures on Spark 4."""
    plan: Plan
    ended: int
    """Milliseconds since 1970."""
    started: int | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    failure: FailureDetails | None = None
    sql: str | None = None
    facts: StatementFacts = field(default_factory=StatementFacts)
    stream: MicroBatch | None = None
