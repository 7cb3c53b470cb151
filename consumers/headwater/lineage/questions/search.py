"""Finds tables, jobs, columns, runs and snapshots by a part of a name, a number or an id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, literal, select

from headwater.lineage.mapping.commits import SINK
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import format_job, time_of, uuid_of
from headwater.lineage.questions.name_checks import is_no_validation
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of

AT_MOST: Final = 50
_ESCAPE: Final = "\\"
_SNAPSHOTS: Final = range(-(2**63), 2**63)


class FoundKind(str, Enum):
    """What was found."""

    TABLE = "TABLE"
    JOB = "JOB"
    COLUMN = "COLUMN"
    RUN = "RUN"
    SNAPSHOT = "SNAPSHOT"


NAMED: Final = (FoundKind.TABLE, FoundKind.JOB)
"""What can be searched for while somebody types: names, of which there are few."""


@dataclass(frozen=True)
class FoundThing:
    """Something that a search found."""

    kind: FoundKind
    name: str
    """As questions take it: a table's or job's name, TABLE.COLUMN, TABLE@SNAPSHOT, or a run's id."""
    detail: str
    """A table's place, a run's job."""
    last: datetime | None
    """When it was heard of last."""


def search(
    connection: Connection,
    text: str,
    *,
    kinds: Sequence[FoundKind] = tuple(FoundKind),
    at_most: int = AT_MOST,
    now: datetime | None = None,
) -> Answer[FoundThing]:
    """Return what has this text in its name, number or id, without regard to case: of each kind the best matches."""
    wanted = text.strip()
    rows: list[FoundThing] = []
    limits: list[AnswerLimit] = []
    for kind in kinds if wanted else ():
        found = list(islice(_SEARCHES[kind](connection, wanted, at_most + 1), at_most + 1))
        rows += found[:at_most]
        if len(found) > at_most:
            limits.append(AnswerLimit(LimitReason.CUT, text, f"the first {at_most} of kind {kind.value.lower()}"))
    return Answer(tuple(rows), complete_until(connection, now), tuple(limits))


def _tables(connection: Connection, text: str, at_most: int) -> Iterator[FoundThing]:
    """Names that are current come before places that no catalog has a name for. The shorter name is the closer one."""
    row, place = table_of(t.ALIAS).c, table_of(t.DATASET).c
    name = _joined(row.catalog, row.database_name, row.table_name)
    chosen = select(row.catalog, row.database_name, row.table_name, row.last, place.namespace, place.name)
    chosen = chosen.join_from(table_of(t.ALIAS), table_of(t.DATASET), row.dataset == place.id)
    chosen = chosen.where(row.last > row.deleted, _contains(name, text))
    ranked = chosen.order_by(func.length(row.table_name), row.last.desc(), row.id).limit(at_most)
    number = 0
    for one in connection.execute(ranked):
        number += 1
        full = ".".join(part for part in one[:3] if part)
        yield FoundThing(FoundKind.TABLE, full, f"{one.namespace}/{one.name.lstrip('/')}", time_of(one.last))
    if number < at_most:
        yield from _places(connection, text, at_most - number)


def _places(connection: Connection, text: str, at_most: int) -> Iterator[FoundThing]:
    place, name = table_of(t.DATASET).c, table_of(t.ALIAS).c
    unnamed = ~select(literal(1)).where(name.dataset == place.id).exists()
    chosen = select(place.namespace, place.name).where(unnamed, _contains(place.name, text))
    for one in connection.execute(chosen.order_by(func.length(place.name), place.id).limit(at_most)):
        full = f"{one.namespace}/{one.name.lstrip('/')}"
        yield FoundThing(FoundKind.TABLE, full, full, None)


def _jobs(connection: Connection, text: str, at_most: int) -> Iterator[FoundThing]:
    row = table_of(t.JOB).c
    chosen = select(table_of(t.JOB)).where(_contains(row.job, text), is_no_validation(row))
    for one in connection.execute(chosen.order_by(func.length(row.job), row.last.desc(), row.id).limit(at_most)):
        name = format_job(one.job_namespace, one.job)
        if name is not None:
            yield FoundThing(FoundKind.JOB, name, (one.job_type or "").lower(), time_of(one.last))


def _columns(connection: Connection, text: str, at_most: int) -> Iterator[FoundThing]:
    """Columns that statements have written, by their names."""
    link, table = table_of(t.JOB_LINEAGE_COLUMN).c, table_of(t.JOB_LINEAGE_TABLE).c
    is_its = and_(link.fingerprint == table.fingerprint, link.output == table.position, table.side == SINK)
    chosen = (
        select(table.dataset, link.target)
        .distinct()
        .join_from(table_of(t.JOB_LINEAGE_COLUMN), table_of(t.JOB_LINEAGE_TABLE), is_its)
    )
    chosen = chosen.where(
        _contains(link.target, json.dumps(text, ensure_ascii=False)[1:-1]), table.dataset.is_not(None)
    )
    found = [
        (bytes(one.dataset), json.loads(one.target)) for one in connection.execute(chosen.limit(at_most)) if one.target
    ]
    datasets = load_datasets(connection, {key for key, _ in found})
    named = sorted((datasets[key].label, ".".join(path)) for key, path in found)
    for label, column in named:
        yield FoundThing(FoundKind.COLUMN, f"{label}.{column}", label, None)


def _runs(connection: Connection, text: str, at_most: int) -> Iterator[FoundThing]:
    try:
        run = UUID(text)
    except ValueError:
        return
    row = table_of(t.RUN)
    for one in connection.execute(select(row).where(row.c.run == run.bytes).limit(at_most)):
        job = format_job(one.job_namespace, one.job) or one.application or ""
        yield FoundThing(FoundKind.RUN, str(uuid_of(one.run)), job, time_of(one.last))


def _snapshots(connection: Connection, text: str, at_most: int) -> Iterator[FoundThing]:
    """Snapshots by their whole number: parts of numbers are in many."""
    if not text.lstrip("-").isdecimal() or int(text) not in _SNAPSHOTS:
        return
    row = access_of(t.WRITE).c
    chosen = select(row.dataset, func.max(row.last).label("last")).where(row.snapshot == int(text))
    chosen = chosen.where(row.dataset.is_not(None)).group_by(row.dataset).limit(at_most)
    found = connection.execute(chosen).all()
    datasets: dict[bytes, Dataset] = load_datasets(connection, {bytes(one.dataset) for one in found})
    for one in sorted(found, key=lambda each: -each.last):
        label = datasets[bytes(one.dataset)].label
        yield FoundThing(FoundKind.SNAPSHOT, f"{label}@{int(text)}", label, time_of(one.last))


_SEARCHES: Final[dict[FoundKind, Callable[[Connection, str, int], Iterator[FoundThing]]]] = {
    FoundKind.TABLE: _tables,
    FoundKind.JOB: _jobs,
    FoundKind.COLUMN: _columns,
    FoundKind.RUN: _runs,
    FoundKind.SNAPSHOT: _snapshots,
}


def _joined(*parts: Any) -> ColumnElement[str]:
    """Return the parts of a name with dots between; one that is missing has none."""
    found: Any = literal("")
    for part in parts[:-1]:
        found = found.concat(func.coalesce(part.concat("."), ""))
    return found.concat(parts[-1])  # type: ignore[no-any-return]


def _contains(column: Any, text: str) -> ColumnElement[bool]:
    """Return a condition: the text is a part of it, whatever its case."""
    escaped = "".join(f"{_ESCAPE}{character}" if character in "%_\\" else character for character in text.lower())
    return func.lower(column).like(f"%{escaped}%", escape=_ESCAPE)  # type: ignore[no-any-return]
