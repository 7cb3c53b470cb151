"""What the driver tells of a statement that ended: its shape, and the facts of this one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
class Statement:
    id: int
    """Spark's id of the root execution."""
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


def statement_of(record: Mapping[str, Any], plan: Plan) -> Statement:
    """The statement in a record that the tap wrote; `plan` is that of its shape."""
    failure = record.get("failure")
    started = record.get("started", -1)
    return Statement(
        id=record["id"],
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
    )


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
