"""Holes in the numbering of a producer's events, and producers whose heartbeats stopped.

Each family of events is numbered from 1. A row of `arrivals` records which of 63 numbers arrived, and the time range of
those events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, func, select

from headwater.lineage.mapping.events import ARRIVALS_PER_ROW
from headwater.lineage.questions.gaps.model import (
    SETTLE_MICROS,
    GapCause,
    GapFilter,
    PossibleGap,
    format_job,
    time_of,
    uuid_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

BEAT_SECONDS: Final = 60
"""The heartbeat interval of a producer that didn't report one."""
MISSED: Final = 3
"""How many heartbeats may be missing before a producer is considered dead."""


def silence_limit(row: Any) -> Any:
    """Return an expression: how long a producer may be silent, in microseconds."""
    return MISSED * 1_000_000 * func.coalesce(row.heartbeat_seconds, BEAT_SECONDS)


def find_silent_producers(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    row = table_of(t.PRODUCER).c
    chosen = select(row.producer, row.application, row.job_namespace, row.job, row.run, row.last)
    chosen = chosen.where(row.closed_at.is_(None), row.last + silence_limit(row) < filters.now)
    if filters.until is not None:
        chosen = chosen.where(row.last <= filters.until)
    if filters.since is not None:
        chosen = chosen.where(row.last >= filters.since)
    if filters.applications is not None:
        chosen = chosen.where(row.application.in_(filters.applications))
    for producer in connection.execute(chosen.order_by(row.last)):
        yield PossibleGap(
            GapCause.SILENCE,
            "its heartbeats stopped, and it never closed: what it did after that is unknown",
            time_of(producer.last),
            producer=uuid_of(producer.producer),
            application=producer.application,
            run=uuid_of(producer.run),
            job=format_job(producer.job_namespace, producer.job),
        )


_AT_ONCE: Final = 1_000
_STREAMED: Final = {"yield_per": _AT_ONCE}


@dataclass(frozen=True)
class SequenceGap:
    """The numbers from `low` to `high` didn't arrive. Their events are between `since` and `until`."""

    producer: bytes
    family: str
    low: int
    high: int
    since: int
    until: int


@dataclass(frozen=True)
class PendingGap:
    """A gap whose events may still arrive."""

    producer: bytes
    since: int


@dataclass
class _Block:
    number: int
    bits: int
    first: int
    last: int


def find_sequence_gaps(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield the holes that are old enough to count."""
    gaps = _sequence_gaps(connection, _blocks(filters), {})
    found = [gap for gap in gaps if gap.until <= filters.now - SETTLE_MICROS]
    for several in (found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE)):
        about = _producers(connection, {gap.producer for gap in several})
        for gap in several:
            yield _possible_gap(gap, about.get(gap.producer))
    yield from _tails(connection, filters)


def find_pending_gaps(connection: Connection, now: int) -> list[PendingGap]:
    """Return the holes that are too recent to count."""
    since = now - SETTLE_MICROS
    recent = _sequence_gaps(connection, _recent_blocks(), {"since": since})
    return [PendingGap(gap.producer, gap.since) for gap in recent if gap.until > since]


def _possible_gap(gap: SequenceGap, about: Any) -> PossibleGap:
    count = gap.high - gap.low + 1
    numbers = f"number {gap.low}" if count == 1 else f"numbers {gap.low} to {gap.high}"
    return PossibleGap(
        GapCause.MISSING_SEQUENCE,
        f"{numbers} of its {gap.family} events never came",
        time_of(gap.since),
        time_of(gap.until),
        count=count,
        family=gap.family,
        producer=uuid_of(gap.producer),
        **_origin(about),
    )


def _origin(about: Any) -> dict[str, Any]:
    if about is None:
        return {}
    job = format_job(about.job_namespace, about.job)
    return {"application": about.application, "run": uuid_of(about.run), "job": job}


def _sequence_gaps(connection: Connection, blocks_in_order: Any, given: Mapping[str, int]) -> Iterator[SequenceGap]:
    """Yield all holes. The block before the first requested one is queried afterwards, because not every database can
    run a second query while it streams the first."""
    edges: list[tuple[bytes, str, _Block]] = []
    with connection.execute(blocks_in_order, given, execution_options=_STREAMED) as found:
        for (producer, family), rows in groupby(found, key=lambda row: (bytes(row.producer), row.family)):
            blocks = [_Block(row.block, row.bits, row.first, row.last) for row in rows]
            if blocks[0].number:
                edges.append((producer, family, blocks[0]))
            yield from _of_family(producer, family, _up_to(blocks[0]) if blocks[0].number else None, blocks)
    for producer, family, block in edges:
        before = _before(connection, producer, family, block)
        yield from _of_family(producer, family, before, [_first_number_only(block)])


def _blocks(filters: GapFilter) -> Any:
    row = table_of(t.ARRIVAL).c
    chosen = _all_blocks().where(*filters.in_time(row.first, row.last))
    if filters.applications is not None:
        beat = table_of(t.PRODUCER).c
        chosen = chosen.where(row.producer.in_(select(beat.producer).where(beat.application.in_(filters.applications))))
    if filters.since is None and filters.until is None:
        return chosen.order_by(row.producer, row.family, row.block)
    return _few_in_order(chosen)


@cache
def _recent_blocks() -> Any:
    """Select those whose last event isn't older than a time. The statement is built once: that takes longer than to
    execute it."""
    last = table_of(t.ARRIVAL).c.last
    return _few_in_order(_all_blocks().where(last >= bindparam("since", type_=last.type)))


def _all_blocks() -> Any:
    row = table_of(t.ARRIVAL).c
    return select(row.producer, row.family, row.block, row.bits, row.first, row.last)


def _few_in_order(chosen: Any) -> Any:
    """PostgreSQL expects that little of what is streamed is fetched, and would read all rows in order to find a few."""
    blocks = chosen.cte("blocks").prefix_with("MATERIALIZED", dialect="postgresql")
    return select(blocks).order_by(blocks.c.producer, blocks.c.family, blocks.c.block)


def _before(connection: Connection, producer: bytes, family: str, block: _Block) -> _Block | None:
    """Return the previous block, which ended before the requested times or never arrived."""
    row = table_of(t.ARRIVAL).c
    mine = and_(row.producer == producer, row.family == family, row.block < block.number)
    chosen = select(row.block, row.bits, row.first, row.last).where(mine).order_by(row.block.desc()).limit(1)
    found = connection.execute(chosen).first()
    return None if found is None else _Block(found.block, found.bits, found.first, found.last)


def _up_to(block: _Block) -> _Block:
    """Pretend that everything before the first number of a block has arrived."""
    return _Block(block.number, (block.bits & -block.bits) >> 1, block.first, block.first)


def _first_number_only(block: _Block) -> _Block:
    """Pretend that only the first number of a block has arrived."""
    return _Block(block.number, block.bits & -block.bits, block.first, block.first)


def _of_family(producer: bytes, family: str, before: _Block | None, blocks: list[_Block]) -> Iterator[SequenceGap]:
    """Yield the holes of a family. A producer's times never decrease, so lower numbers are from earlier times."""
    last = None if before is None else before.last
    expected = 1 if before is None else _top(before) + 1
    for block in blocks:
        for low, high in _absent(block, expected):
            is_before = high + 1 == block.number * ARRIVALS_PER_ROW + _lowest_bit(block)
            began, ended = (last or block.first, block.first) if is_before else (block.first, block.last)
            yield SequenceGap(producer, family, low, high, min(began, ended), ended)
        expected, last = _top(block) + 1, block.last


def _absent(block: _Block, expected: int) -> Iterator[tuple[int, int]]:
    """Yield the missing ranges from the expected number to the greatest one of the block."""
    low = expected
    for bit in range(ARRIVALS_PER_ROW):
        if block.bits >> bit & 1:
            number = block.number * ARRIVALS_PER_ROW + bit + 1
            if number > low:
                yield low, number - 1
            low = number + 1


def _top(block: _Block) -> int:
    """The greatest number that arrived."""
    return block.number * ARRIVALS_PER_ROW + block.bits.bit_length()


def _lowest_bit(block: _Block) -> int:
    """The least bit that arrived, counted from 1."""
    return (block.bits & -block.bits).bit_length()


def _producers(connection: Connection, which: set[bytes]) -> dict[bytes, Any]:
    row = table_of(t.PRODUCER).c
    chosen = select(row.producer, row.application, row.job_namespace, row.job, row.run).where(row.producer.in_(which))
    return {bytes(arrival.producer): arrival for arrival in connection.execute(chosen)}


def _tails(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield events missing at the end: a producer that closed reports how many events it emitted."""
    found = connection.execute(_select_closed(filters)).all()
    for several in (found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE)):
        arrived = _count_arrivals(connection, [bytes(gap.producer) for gap in several])
        for gap in several:
            count = gap.sequence - arrived.get(bytes(gap.producer), gap.sequence)
            if count > 0:
                yield _tail(gap, count)


def _select_closed(filters: GapFilter) -> Any:
    beat = table_of(t.PRODUCER).c
    origin = (beat.producer, beat.application, beat.job_namespace, beat.job, beat.run)
    chosen = select(*origin, beat.sequence, beat.first, beat.closed_at)
    chosen = chosen.where(beat.closed_at <= filters.now - SETTLE_MICROS, *filters.in_time(beat.first, beat.closed_at))
    if filters.applications is not None:
        chosen = chosen.where(beat.application.in_(filters.applications))
    return chosen.order_by(beat.producer)


def _count_arrivals(connection: Connection, producers: list[bytes]) -> dict[bytes, int]:
    """Return the sum of the greatest numbers of each family that arrived, for the producers of which some did."""
    row = table_of(t.ARRIVAL).c
    chosen = select(row.producer, row.family, row.block, row.bits).where(row.producer.in_(producers))
    tops: dict[tuple[bytes, str], int] = {}
    for block in connection.execute(chosen):
        family, top = (bytes(block.producer), block.family), _top(_Block(block.block, block.bits, 0, 0))
        tops[family] = max(tops.get(family, 0), top)
    sums: dict[bytes, int] = {}
    for (producer, _), top in tops.items():
        sums[producer] = sums.get(producer, 0) + top
    return sums


def _tail(closed: Any, count: int) -> PossibleGap:
    return PossibleGap(
        GapCause.MISSING_SEQUENCE,
        f"the last {count} of its events, as it counted them when it closed, never came",
        time_of(closed.first),
        time_of(closed.closed_at),
        count=count,
        producer=uuid_of(closed.producer),
        **_origin(closed),
    )
