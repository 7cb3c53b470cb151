"""Which columns an event changes, and which jobs read them: pure functions.

A job reads a column if its lineage has an edge from it. A read is known from the first lineage that has it, until
another shape of the same job, with the same outputs, comes and this one doesn't any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headwater.events import Event
from headwater.events.catalog import AlterTable, CreateTable, DropTable, ModificationEffect, TableModification
from headwater.events.changes import ChangeNullability, DropColumn, RenameColumn, RenameTable, RetypeColumn, TableChange
from headwater.events.jobs import JobLineage
from headwater.events.keys import jobs_in
from headwater.forwarders.alerts.conditions import RuleFinding, name_of, names_of
from headwater.forwarders.alerts.rules import ColumnChangedRule

Path: TypeAlias = tuple[str, ...]
_WORDS = {"nullability": "has another nullability", "table-dropped": "was dropped", "table-renamed": "was renamed"}
_TABLE = frozenset({"table-dropped", "table-renamed"})


@dataclass(frozen=True)
class Alteration:
    """A change of one column, or of the whole table, where there is no path."""

    change: str
    path: Path = ()


@dataclass(frozen=True)
class TableAlteration:
    """What an event changes in a table."""

    event: str
    happened: float
    table: str
    names: tuple[str, ...]
    dataset: str | None
    user: str
    alterations: tuple[Alteration, ...]
    columns: tuple[tuple[str, str], ...] | None = None
    """The columns and types that the table has now, where it was replaced as a whole."""


@dataclass(frozen=True)
class TableRead:
    """What one shape of a job reads of one table."""

    job: str
    job_names: tuple[str, ...]
    fingerprint: str
    outputs: str
    dataset: str | None
    table: str | None
    columns: tuple[Path, ...]
    types: tuple[tuple[str, str], ...]
    first: float
    last: float


def alteration_of(event: Event, happened: float) -> TableAlteration | None:
    """Return what an event changes that a reader could notice. Nothing, if it isn't known whether it took effect."""
    if not isinstance(event, TableModification) or event.effect is not ModificationEffect.APPLIED:
        return None
    columns: tuple[tuple[str, str], ...] | None = None
    found: tuple[Alteration, ...] = ()
    if isinstance(event, AlterTable):
        found = tuple(_alterations(event.changes))
    elif isinstance(event, DropTable):
        found = (Alteration("table-dropped"),)
    elif isinstance(event, CreateTable) and event.replaced:
        columns = tuple((column.name, column.type) for column in event.table.columns)
    if not found and not columns:
        return None
    return TableAlteration(
        event=str(event.event_id),
        happened=happened,
        table=str(event.identifier),
        names=names_of(event.identifier, event.dataset),
        dataset=None if event.dataset is None else str(event.dataset),
        user=event.user or "",
        alterations=found,
        columns=columns,
    )


def _alterations(changes: Iterable[TableChange]) -> Iterator[Alteration]:
    for change in changes:
        if isinstance(change, DropColumn):
            yield Alteration("dropped", change.path)
        elif isinstance(change, RenameColumn):
            yield Alteration("renamed", change.path)
        elif isinstance(change, RetypeColumn):
            yield Alteration("retyped", change.path)
        elif isinstance(change, ChangeNullability):
            yield Alteration("nullability", change.path)
        elif isinstance(change, RenameTable):
            yield Alteration("table-renamed")


def reads_of(event: JobLineage, happened: float) -> Iterator[TableRead]:
    """Yield what a job reads, by table. An input without edges gives nothing: which columns it reads isn't known."""
    if event.job is None:
        return
    outputs = "\n".join(sorted(name_of(output.table, output.dataset) for output in event.outputs))
    for index, source in enumerate(event.inputs):
        paths = {edge.source for edge in event.columns if edge.input == index}
        if paths and (source.dataset or source.table):
            yield TableRead(
                job=str(event.job),
                job_names=tuple(jobs_in(event)),
                fingerprint=event.fingerprint.hex(),
                outputs=outputs,
                dataset=None if source.dataset is None else str(source.dataset),
                table=None if source.table is None else str(source.table),
                columns=tuple(sorted(paths)),
                types=tuple((column.name, column.type) for column in source.columns),
                first=happened,
                last=happened,
            )


def affected(rule: ColumnChangedRule, altered: TableAlteration, reads: Sequence[TableRead]) -> Iterator[RuleFinding]:
    """Yield a finding for each job that reads what was changed. `reads` are those of this table."""
    if not rule.table_patterns.match(altered.names):
        return
    by_job: dict[str, list[Alteration]] = {}
    known = [each for each in reads if each.first <= altered.happened]
    for read in known:
        if not rule.job_patterns.match(read.job_names) or _is_superseded(read, known):
            continue
        hit = [
            each for each in _alterations_read(altered, read) if each.change in rule.changes and _is_wanted(rule, each)
        ]
        if hit:
            by_job.setdefault(read.job, []).extend(hit)
    for job, hits in by_job.items():
        values = {"job": job, "table": altered.table, "user": altered.user, **_describe(hits)}
        key = f"column/{altered.event}/{job}"
        yield RuleFinding(rule, key, altered.happened, f"{altered.table} for {job}", values, altered.event)


def _is_wanted(rule: ColumnChangedRule, each: Alteration) -> bool:
    return each.change in _TABLE or rule.column_patterns.match([".".join(each.path)])


def _is_superseded(read: TableRead, reads: Iterable[TableRead]) -> bool:
    """Return whether the job has another shape since: the same outputs, first seen after this one was seen last."""
    return any(
        each.job == read.job
        and each.outputs == read.outputs
        and each.fingerprint != read.fingerprint
        and each.first > read.last
        for each in reads
    )


def _alterations_read(altered: TableAlteration, read: TableRead) -> Iterator[Alteration]:
    """Yield the alterations that concern a column that is read: itself, what it is in, or what is in it."""
    for alteration in altered.alterations:
        if any(_overlap(alteration.path, path) for path in read.columns):
            yield alteration
    if altered.columns is not None:
        yield from _alterations_of_replacement(dict(altered.columns), read)


def _alterations_of_replacement(columns: dict[str, str], read: TableRead) -> Iterator[Alteration]:
    now = {name.casefold(): type_json for name, type_json in columns.items()}
    before = {name.casefold(): type_json for name, type_json in read.types}
    for name in sorted({path[0] for path in read.columns}):
        folded = name.casefold()
        if folded not in now:
            yield Alteration("dropped", (name,))
        elif folded in before and before[folded] != now[folded]:
            yield Alteration("retyped", (name,))


def _overlap(changed: Path, read: Path) -> bool:
    """Spark takes names of columns as one whatever their case."""
    return all(a.casefold() == b.casefold() for a, b in zip(changed, read, strict=False))


def _describe(hits: Iterable[Alteration]) -> dict[str, str]:
    columns: dict[str, list[str]] = {}
    for hit in dict.fromkeys(hits):
        columns.setdefault(_WORDS.get(hit.change, f"was {hit.change}"), []).append(".".join(hit.path))
    listed = dict.fromkeys(name for names in columns.values() for name in names if name)
    return {"columns": ", ".join(listed) or "the table", "change": " and ".join(columns)}
