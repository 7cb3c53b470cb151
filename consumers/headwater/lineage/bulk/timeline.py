"""The instants of each writer process. Each has its own numbers, and goes forward only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, select

from headwater.lineage.bulk.api import Instant, State
from headwater.lineage.bulk.positions import now
from headwater.lineage.bulk.putting import put
from headwater.lineage.bulk.tables import INSTANTS
from headwater.lineage.law.telling import clean

KEPT: Final = 1_000
"""So many of a writer's are kept."""


def reached(connection: Connection, instants: Iterable[Instant]) -> None:
    """They have come so far. One that was further already stays there."""
    told = list(instants)
    put(connection, INSTANTS, [_row(each) for each in told], _changes)
    for each in told:
        if each.state is State.REQUESTED:
            _forget(connection, each)


def instants_of(connection: Connection, writer: UUID) -> Iterator[Instant]:
    """The newest first."""
    column = INSTANTS.c
    wanted = select(column.number, column.state, column.detail).where(column.writer == writer.bytes)
    for number, state, detail in connection.execute(wanted.order_by(column.number.desc())):
        yield Instant(writer, number, State(state), detail)


def unfinished_in(connection: Connection) -> Iterator[Instant]:
    """Of whichever writer, the newest of each first."""
    column = INSTANTS.c
    wanted = select(column.writer, column.number, column.state, column.detail)
    is_open = column.state.in_([State.REQUESTED.value, State.INFLIGHT.value])
    for writer, number, state, detail in connection.execute(
        wanted.where(is_open).order_by(column.writer, column.number.desc())
    ):
        yield Instant(UUID(bytes=writer), number, State(state), detail)


def forget_before(connection: Connection, micros: int) -> int:
    """The timelines of writers that have told nothing since then; how many instants went."""
    column = INSTANTS.c
    newest = select(column.writer, func.max(column.requested_at)).group_by(column.writer)
    old = [writer for writer, last in connection.execute(newest) if last < micros]
    return sum(connection.execute(delete(INSTANTS).where(column.writer == writer)).rowcount for writer in old)


def _forget(connection: Connection, newest: Instant) -> None:
    column = INSTANTS.c
    is_old = and_(column.writer == newest.writer.bytes, column.number <= newest.number - KEPT)
    connection.execute(delete(INSTANTS).where(is_old))


def _row(instant: Instant) -> dict[str, Any]:
    moment = now()
    return {
        "writer": instant.writer.bytes,
        "number": instant.number,
        "state": instant.state.value,
        "requested_at": moment,
        "inflight_at": None if instant.state is State.REQUESTED else moment,
        "completed_at": moment if instant.state is State.COMPLETED else None,
        "detail": clean(instant.detail),
    }


def _changes(held: Any, new: Any) -> list[tuple[str, ColumnElement[Any]]]:
    is_further = new.state < held.state  # their names go backward in the alphabet
    return [
        ("inflight_at", func.coalesce(held.inflight_at, new.inflight_at)),
        ("completed_at", func.coalesce(held.completed_at, new.completed_at)),
        ("detail", func.coalesce(new.detail, held.detail)),
        ("state", case((is_further, new.state), else_=held.state)),
    ]
