"""The instants of writer processes. Each writer numbers its own, and an instant's state only advances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, select

from headwater.lineage.bulk.api import InstantState, WriterInstant
from headwater.lineage.bulk.positions import now_micros
from headwater.lineage.mapping.keys import clean_text
from headwater.lineage.sql.upsert import insert_or_update
from headwater.lineage.sql.writer_tables import INSTANTS

MAX_INSTANTS: Final = 1_000
"""How many instants of a writer are kept."""


def write_instants(connection: Connection, instants: Iterable[WriterInstant]) -> None:
    """Store the states of instants. A state that is behind the stored one changes nothing."""
    written = list(instants)
    insert_or_update(connection, INSTANTS, [_row(each) for each in written], _changes)
    for each in written:
        if each.state is InstantState.REQUESTED:
            _delete_old(connection, each)


def select_instants(connection: Connection, writer: UUID) -> Iterator[WriterInstant]:
    """Yield the instants of a writer, newest first."""
    column = INSTANTS.c
    query = select(column.number, column.state, column.detail).where(column.writer == writer.bytes)
    for number, state, detail in connection.execute(query.order_by(column.number.desc())):
        yield WriterInstant(writer, number, InstantState(state), detail)


def select_unfinished(connection: Connection) -> Iterator[WriterInstant]:
    """Yield the unfinished instants of all writers, the newest of each first."""
    column = INSTANTS.c
    query = select(column.writer, column.number, column.state, column.detail)
    query = query.where(column.state == InstantState.REQUESTED.value)
    for writer, number, state, detail in connection.execute(query.order_by(column.writer, column.number.desc())):
        yield WriterInstant(UUID(bytes=writer), number, InstantState(state), detail)


def delete_instants_before(connection: Connection, micros: int) -> int:
    """Delete the timelines of writers that stored nothing since this time. Return how many instants were deleted."""
    column = INSTANTS.c
    newest = select(column.writer, func.max(column.requested_at)).group_by(column.writer)
    old = [writer for writer, last in connection.execute(newest) if last < micros]
    return sum(connection.execute(delete(INSTANTS).where(column.writer == writer)).rowcount for writer in old)


def _delete_old(connection: Connection, newest: WriterInstant) -> None:
    column = INSTANTS.c
    is_old = and_(column.writer == newest.writer.bytes, column.number <= newest.number - MAX_INSTANTS)
    connection.execute(delete(INSTANTS).where(is_old))


def _row(instant: WriterInstant) -> dict[str, Any]:
    moment = now_micros()
    return {
        "writer": instant.writer.bytes,
        "number": instant.number,
        "state": instant.state.value,
        "requested_at": moment,
        "completed_at": moment if instant.state is InstantState.COMPLETED else None,
        "detail": clean_text(instant.detail),
    }


def _changes(held: Any, new: Any) -> list[tuple[str, ColumnElement[Any]]]:
    is_further = new.state < held.state  # their names go backward in the alphabet
    return [
        ("completed_at", func.coalesce(held.completed_at, new.completed_at)),
        ("detail", func.coalesce(new.detail, held.detail)),
        ("state", case((is_further, new.state), else_=held.state)),
    ]
