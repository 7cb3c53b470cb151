"""Stories: what happened, reported as events, and what questions about it have to answer, found by hand.

A version is written `table@snapshot`, changes `table@since..snapshot`, a branch `table[branch]@snapshot`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from headwater.events import Event
from headwater.events.clock import moment_of
from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.fingerprints import fingerprint_of
from headwater.events.jobs import (
    CommitKind,
    Committed,
    Input,
    JobLineage,
    Output,
    OverwriteScope,
    RangeStart,
    ReadMode,
    SinkSchema,
    SourceSchema,
)
from headwater.events.names import JobName, TableName
from headwater.events.scalars import Format
from headwater.lineage.questions.columns import downstream_columns, upstream_columns
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.names import find
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, store

_REF = re.compile(r"(?P<table>\w+)(?:\[(?P<branch>\w+)\])?(?:@(?:(?P<since>\d+)\.\.)?(?P<snapshot>\d+))?")
ALL, PART, NOTHING, UNKNOWN = OverwriteScope.ALL, OverwriteScope.PART, OverwriteScope.NOTHING, OverwriteScope.UNKNOWN


class Check(NamedTuple):
    question: str
    rows: set[str]
    whys: set[str]


class StoryProducer(ScriptedProducer):
    """A producer whose commits are written in short."""

    def __init__(self, number: int = 1) -> None:
        super().__init__(number)
        self.minute = 0.0
        self.checks: list[Check] = []
        self.format = Format.DELTA
        self.generations: dict[str, str | None] = {}
        self.barrier = number * 1000

    def commit(
        self,
        *writes: str,
        reads: Sequence[str] = (),
        parent: int | str | None = "before",
        replaced: OverwriteScope = NOTHING,
        kind: CommitKind = CommitKind.APPEND,
        made_from: Sequence[tuple[int, ...] | None] | None = None,
        opaque: str | None = None,
        job: str | None = None,
        shape: bytes | None = None,
        minute: float | None = None,
        run: int | None = None,
        formats: dict[str, Format] | None = None,
        also: Sequence[Input] = (),
    ) -> Event:
        self.minute = self.minute + 1 if minute is None else minute
        self.barrier += 1
        inputs = [*(self.source(each, (formats or {})) for each in reads), *also]
        if opaque is not None:
            inputs.append(Input(dataset=None, opaque=opaque))
        reported = made_from or [tuple(range(len(inputs)))] * len(writes)
        outputs = tuple(
            self.sink(each, parent, replaced, kind, indexes) for each, indexes in zip(writes, reported, strict=True)
        )
        more: dict[str, Any] = {} if job is None else {"job": JobName(name=job)}
        if run is not None:
            more["run"] = UUID(int=run)
        return self.emit(
            self.minute,
            Committed,
            barrier=self.barrier,
            inputs=tuple(inputs),
            outputs=outputs,
            fingerprint=shape,
            **more,
        )

    def source(self, text: str, formats: dict[str, Format]) -> Input:
        ref = parsed(text)
        since = None if ref["since"] is None else RangeStart(snapshot=int(ref["since"]))
        mode = ReadMode.STATE if since is None else ReadMode.CHANGES
        number = None if ref["snapshot"] is None else int(ref["snapshot"])
        where = self.where(ref)
        where["format"] = formats.get(ref["table"] or "", where["format"])
        return Input(**where, mode=mode, snapshot=number, since=since)

    def sink(
        self,
        text: str,
        parent: int | str | None,
        replaced: OverwriteScope,
        kind: CommitKind,
        indexes: tuple[int, ...] | None,
    ) -> Output:
        ref = parsed(text)
        number = None if ref["snapshot"] is None else int(ref["snapshot"])
        before = None if number is None or number <= 1 else number - 1
        reported = before if parent == "before" else parent
        more: dict[str, Any] = {"parent": reported}
        return Output(
            **self.where(ref), snapshot=number, replaced=replaced, commit_kind=kind, made_from=indexes, **more
        )

    def where(self, ref: dict[str, str | None]) -> dict[str, Any]:
        name = ref["table"] or ""
        table = TableName(catalog="lake", database="db", table=name)
        generation = self.generations.get(name, "1")
        return {
            "dataset": dataset(name),
            "table": table,
            "generation": generation,
            "branch": ref["branch"],
            "format": self.format,
        }

    def shape(self, target: str, sources: Sequence[str], *edges: tuple[str, str | None, Derivation]) -> bytes:
        """The shape of a write: edges are `source.column`, the target's column, and how."""
        inputs = tuple(SourceSchema(dataset=dataset(name), table=_named(name)) for name in sources)
        outputs = (SinkSchema(dataset=dataset(target), table=_named(target)),)
        columns = tuple(
            ColumnLineage(
                output=0,
                input=sources.index(source.split(".")[0]),
                source=tuple(source.split(".")[1:]),
                target=None if column is None else (column,),
                derivation=how,
            )
            for source, column, how in edges
        )
        fingerprint = fingerprint_of(inputs, outputs, columns)
        shape = JobLineage
        self.emit(self.minute, shape, fingerprint=fingerprint, inputs=inputs, outputs=outputs, columns=columns)
        return fingerprint

    def expect(self, question: str, *rows: str, why: Sequence[str] = ()) -> None:
        self.checks.append(Check(question, set(rows), set(why)))


def _named(name: str) -> TableName:
    return TableName(catalog="lake", database="db", table=name)


def parsed(text: str) -> dict[str, str | None]:
    match = _REF.fullmatch(text)
    assert match is not None, text
    return match.groupdict()


@dataclass(frozen=True)
class Story:
    name: str
    emit: Callable[[StoryProducer], None]


def ask(connection: Connection, question: str) -> tuple[set[str], set[str]]:
    """Rows as text, and why the answer may lack something."""
    words = question.split()
    options: dict[str, Any] = {}
    for word in [each for each in words if "=" in each]:
        name, _, value = word.partition("=")
        options[name] = int(value) if value.isdigit() else value
    if "as_of" in options:
        options["as_of"] = at(float(options["as_of"]))
    what, of = [each for each in words if "=" not in each][:-1], [each for each in words if "=" not in each][-1]
    rows, whys = set[str](), set[str]()
    answer: Any = _ASKED[" ".join(what)](connection, of, options)
    for row in answer:
        rows.add(_line(row))
    whys = {limit.why.value for limit in answer.limits}
    return rows, whys


def _snapshots(question: Callable[..., Any], basis: str) -> Callable[..., Any]:
    def ask_it(connection: Connection, of: str, options: dict[str, Any]) -> Any:
        ref = parsed(of)
        found = find(connection, f"lake.db.{ref['table']}").dataset
        number = None if ref["snapshot"] is None else int(ref["snapshot"])
        return question(connection, found, number, basis=basis, branch=ref["branch"], **options)

    return ask_it


def _state(connection: Connection, of: str, options: dict[str, Any]) -> Any:
    ref = parsed(of)
    number = None if ref["snapshot"] is None else int(ref["snapshot"])
    found = find(connection, f"lake.db.{ref['table']}").dataset
    return upstream_state(connection, found, number, branch=ref["branch"], **options)


def _tables(question: Callable[..., Any]) -> Callable[..., Any]:
    return lambda connection, of, options: question(connection, f"lake.db.{of}", **options)


def _path(connection: Connection, of: str, options: dict[str, Any]) -> Any:
    one, _, other = of.partition("->")
    return path_between(connection, f"lake.db.{one}", f"lake.db.{other}", **options)


_ASKED: dict[str, Callable[..., Any]] = {
    "up": _snapshots(upstream_snapshots, "commit"),
    "up state": _snapshots(upstream_snapshots, "state"),
    "down": _snapshots(downstream_snapshots, "commit"),
    "down state": _snapshots(downstream_snapshots, "state"),
    "state": _state,
    "tables up": _tables(upstream_tables),
    "tables down": _tables(downstream_tables),
    "columns up": _tables(upstream_columns),
    "columns down": _tables(downstream_columns),
    "path": _path,
}


def _line(row: Any) -> str:
    name = type(row).__name__
    if name == "SnapshotEdge":
        return f"{row.depth}: {_short(row.target.label)} <- {_changes(row)}"
    if name == "StateEdge":
        return f"{row.depth}: {_short(row.target.label)} <- {_short(row.source.label)}"
    if name == "TableEdge":
        cycle = " (cycle)" if row.in_cycle else ""
        return f"{row.depth}: {_label(row.target)} <- {_label(row.source)}{cycle}"
    if name == "ColumnEdge":
        source, target = ".".join(row.source.path), ".".join(row.target.path or ("*",))
        parts = (_short(row.target.label_of_table), target, _short(row.source.label_of_table), source)
        return f"{row.depth}: {parts[0]}.{target} <- {parts[2]}.{source} {row.derivation}"
    return str(row)


def _changes(row: Any) -> str:
    if row.source.opaque:
        return f"?{row.source.opaque}"
    label = _short(row.source.label)
    if row.since is None:
        return label
    table, _, number = label.partition("@")
    return f"{table}@{row.since}..{number}"


def _label(found: Dataset) -> str:
    return _short(found.label)


def _short(label: str) -> str:
    return label.removeprefix("lake.db.")


def producer_of(story: Story) -> StoryProducer:
    producer = StoryProducer()
    story.emit(producer)
    return producer


def checks() -> Iterator[tuple[Story, Check]]:
    from tests.kit.lineage.all_stories import STORIES

    for story in STORIES:
        for check in producer_of(story).checks:
            yield story, check


__all__ = [
    "ALL",
    "NOTHING",
    "PART",
    "UNKNOWN",
    "CommitKind",
    "Derivation",
    "Story",
    "StoryProducer",
    "ask",
    "checks",
    "moment_of",
]


def with_story(connection: Connection, tell: Callable[[StoryProducer], object]) -> Connection:
    """With a story in the store."""
    producer = StoryProducer()
    tell(producer)
    store(connection, producer)
    return connection
