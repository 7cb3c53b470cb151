"""What the driver tells of a statement that ended: its shape, and the facts of this one time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headwater.events.barriers import stream_barrier
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.clients import Client, client_in


@dataclass(frozen=True, slots=True)
class Failure:
    message: str
    type: str = ""
    condition: str | None = None
    sql_state: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What hooks saw while the statement ran, and what its plans had read when it had run. All of it is as the Java
    sources beside this wrote it; each format reads its own."""

    reads: tuple[Mapping[str, Any], ...] = ()
    """Versions that leaves of the statement's own plans read: `format`, `in` (optimized, physical, cached), what the
    format's eye wrote, and `attributes`: ids of the plan's attributes that this leaf gives."""
    nested_reads: tuple[Mapping[str, Any], ...] = ()
    """The same of executions nested in it, whose attributes aren't the plan's."""
    hints: tuple[Mapping[str, Any], ...] = ()
    """What was seen in nested executions: a command that ran (`command`, its `metrics` and `outputPath`), and what the
    formats' eyes tell."""
    noted: tuple[Mapping[str, Any], ...] = ()
    """What hooks noted in the threads that did it: each has `hook`."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """What the command answered: the ids that procedures return."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """What the topmost operator counted: numOutputRows …"""
    looked_up: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the format's word: what its eye looked up when the statement had ended."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a stream gave to a micro-batch, in its source's own words: from where, which is absent in the first batch of
    some, and to where, which is absent as long as it gave nothing."""

    start: str | None
    end: str | None

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
    took: Mapping[int, tuple[Took, ...]] | None = None
    """By the leaf of the plan. A stream that a query reads twice gives the same twice. None where it isn't known."""
    why: str | None = None
    """Why something of it isn't known."""
    files: int | None = None
    """How many files its sink wrote, where that is one of files."""

    @property
    def gave_nothing(self) -> bool:
        """No stream gave anything: only state, or time that went by, can have made something of it."""
        return self.took is not None and all(took.is_empty for each in self.took.values() for took in each)

    @property
    def barrier(self) -> int | None:
        return None if self.began is None else stream_barrier(self.began, self.batch)


@dataclass(frozen=True, slots=True)
class Statement:
    id: int | None
    """Spark's id of the root execution; none where it was none, as procedures on Spark 4."""
    plan: Plan
    shape: str
    """The digest of the plan: statements of one shape have one plan."""
    ended: int
    """Milliseconds since 1970."""
    started: int | None = None
    name: str | None = None
    """What Spark calls it: command, save, saveAsTable, insertInto, append, collect …"""
    confs: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    failure: Failure | None = None
    sql: str | None = None
    facts: Facts = field(default_factory=Facts)
    client: Client | None = None
    """Who asked a server for it."""
    stream: MicroBatch | None = None


def statement_of(record: Mapping[str, Any], plan: Plan) -> Statement:
    """The statement in a record that the tap wrote; `plan` is that of its shape."""
    failure = record.get("failure")
    started = record.get("started", -1)
    return Statement(
        id=record.get("id"),
        plan=plan,
        shape=record["shape"],
        ended=record["ended"],
        started=started if started >= 0 else None,
        name=record.get("name"),
        confs=record.get("confs", {}),
        tags=frozenset(record.get("tags", ())),
        failure=None if failure is None else _failure(failure),
        sql=record.get("sql"),
        facts=_facts(record),
        client=client_in(record),
        stream=micro_batch(record["stream"]) if "stream" in record else None,
    )


def micro_batch(told: Mapping[str, Any]) -> MicroBatch:
    """What the tap tells of a micro-batch, or of the first one of a query."""
    return MicroBatch(
        query=UUID(told["query"]),
        run=UUID(told["run"]),
        batch=told["batch"],
        began=told.get("began"),
        took=_took(told["offsets"]) if "offsets" in told else None,
        why=told.get("lost") or told.get("unknown"),
        files=told.get("files"),
    )


def _took(offsets: Iterable[Mapping[str, Any]]) -> Mapping[int, tuple[Took, ...]]:
    found: dict[int, tuple[Took, ...]] = {}
    for each in offsets:
        took = Took(each.get("start"), each.get("end"))
        known = found.get(each["node"], ())
        found[each["node"]] = known if took in known else (*known, took)
    return found


def _failure(told: Mapping[str, Any]) -> Failure:
    return Failure(told.get("message", ""), told.get("type", ""), told.get("condition"), told.get("sqlState"))


def _facts(record: Mapping[str, Any]) -> Facts:
    return Facts(
        reads=tuple(record.get("reads", ())),
        nested_reads=tuple(record.get("nestedReads", ())),
        hints=tuple(record.get("hints", ())),
        noted=tuple(record.get("noted", ())),
        rows=tuple(record.get("rows", ())),
        metrics=record.get("metrics", {}),
        looked_up=record.get("formats", {}),
    )
