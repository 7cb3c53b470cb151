"""Holes in what a producer counted. Each family of its events has numbers from 1, and 63 of them a row that says which
arrived, and from when to when they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, and_, select

from headwater.lineage.law.changes import BLOCK
from headwater.lineage.questions.gaps.missing import SETTLED, Asked, Cause, Missing, job_text, uuid_of, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

_AT_ONCE: Final = 1_000
_STREAMED: Final = {"yield_per": _AT_ONCE}


@dataclass(frozen=True)
class Hole:
    """Numbers from `low` to `high` never came. They are of a time from `since` to `until`."""

    producer: bytes
    family: str
    low: int
    high: int
    since: int
    until: int


@dataclass(frozen=True)
class Pending:
    """A hole whose event may still be on its way."""

    producer: bytes
    since: int


@dataclass
class _Block:
    number: int
    bits: int
    first: int
    last: int


def holes(connection: Connection, asked: Asked) -> Iterator[Missing]:
    """Those that count: what they are is settled."""
    found = [each for each in _holes(connection, asked) if each.until <= asked.now - SETTLED]
    for several in (found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE)):
        about = _producers(connection, {each.producer for each in several})
        for hole in several:
            yield _missing(hole, about.get(hole.producer))
    yield from _tails(connection, asked)


def pending(connection: Connection, now: int) -> list[Pending]:
    """Those that don't count yet."""
    asked = Asked(now=now, since=now - SETTLED)
    return [Pending(hole.producer, hole.since) for hole in _holes(connection, asked) if hole.until > now - SETTLED]


def _missing(hole: Hole, about: Any) -> Missing:
    count = hole.high - hole.low + 1
    numbers = f"number {hole.low}" if count == 1 else f"numbers {hole.low} to {hole.high}"
    return Missing(
        Cause.HOLE,
        f"{numbers} of its {hole.family} events never came",
        when(hole.since),
        when(hole.until),
        count=count,
        family=hole.family,
        producer=uuid_of(hole.producer),
        **_whose(about),
    )


def _whose(about: Any) -> dict[str, Any]:
    if about is None:
        return {}
    job = job_text(about.job_namespace, about.job)
    return {"application": about.application, "run": uuid_of(about.run), "job": job}


def _holes(connection: Connection, asked: Asked) -> Iterator[Hole]:
    """What came before the first block of those asked for is looked up when the others have been read: not every
    database answers a second question while it still answers the first."""
    edges: list[tuple[bytes, str, _Block]] = []
    with connection.execute(_blocks(asked), execution_options=_STREAMED) as found:
        for (producer, family), rows in groupby(found, key=lambda row: (bytes(row.producer), row.family)):
            blocks = [_Block(row.block, row.bits, row.first, row.last) for row in rows]
            if blocks[0].number:
                edges.append((producer, family, blocks[0]))
            yield from _of_family(producer, family, _up_to(blocks[0]) if blocks[0].number else None, blocks)
    for producer, family, block in edges:
        before = _before(connection, producer, family, block)
        yield from _of_family(producer, family, before, [_begun(block)])


def _blocks(asked: Asked) -> Any:
    row = table_of(t.RECEIVED).c
    chosen = select(row.producer, row.family, row.block, row.bits, row.first, row.last)
    chosen = chosen.where(*asked.in_time(row.first, row.last))
    if asked.applications is not None:
        beat = table_of(t.PRODUCER).c
        chosen = chosen.where(row.producer.in_(select(beat.producer).where(beat.application.in_(asked.applications))))
    return chosen.order_by(row.producer, row.family, row.block)


def _before(connection: Connection, producer: bytes, family: str, block: _Block) -> _Block | None:
    """The block before one, which ended before what was asked for, or never came."""
    row = table_of(t.RECEIVED).c
    mine = and_(row.producer == producer, row.family == family, row.block < block.number)
    chosen = select(row.block, row.bits, row.first, row.last).where(mine).order_by(row.block.desc()).limit(1)
    found = connection.execute(chosen).first()
    return None if found is None else _Block(found.block, found.bits, found.first, found.last)


def _up_to(block: _Block) -> _Block:
    """As if all had come before the first number of a block that came."""
    return _Block(block.number, (block.bits & -block.bits) >> 1, block.first, block.first)


def _begun(block: _Block) -> _Block:
    """As if nothing had come of it but its first."""
    return _Block(block.number, block.bits & -block.bits, block.first, block.first)


def _of_family(producer: bytes, family: str, before: _Block | None, blocks: list[_Block]) -> Iterator[Hole]:
    """A producer's times never go back: before the first of a block all is over that has a lower number."""
    last = None if before is None else before.last
    expected = 1 if before is None else _top(before) + 1
    for block in blocks:
        for low, high in _absent(block, expected):
            is_before = high + 1 == block.number * BLOCK + _lowest(block)
            began, ended = (last or block.first, block.first) if is_before else (block.first, block.last)
            yield Hole(producer, family, low, high, min(began, ended), ended)
        expected, last = _top(block) + 1, block.last


def _absent(block: _Block, expected: int) -> Iterator[tuple[int, int]]:
    """Ranges that are missing, from the number that was to come to the greatest of the block."""
    low = expected
    for bit in range(BLOCK):
        if block.bits >> bit & 1:
            number = block.number * BLOCK + bit + 1
            if number > low:
                yield low, number - 1
            low = number + 1


def _top(block: _Block) -> int:
    """The greatest number that arrived."""
    return block.number * BLOCK + block.bits.bit_length()


def _lowest(block: _Block) -> int:
    """The least bit that arrived, counted from 1."""
    return (block.bits & -block.bits).bit_length()


def _producers(connection: Connection, which: set[bytes]) -> dict[bytes, Any]:
    row = table_of(t.PRODUCER).c
    chosen = select(row.producer, row.application, row.job_namespace, row.job, row.run).where(row.producer.in_(which))
    return {bytes(each.producer): each for each in connection.execute(chosen)}


def _tails(connection: Connection, asked: Asked) -> Iterator[Missing]:
    """Who closed counted all of its events: as many have to be there, also where nothing came after the missing."""
    with connection.execute(_closed(asked), execution_options=_STREAMED) as found:
        for _, rows in groupby(found, key=lambda row: bytes(row.producer)):
            blocks = list(rows)
            tops: dict[str, int] = {}
            for each in blocks:
                top = _top(_Block(each.block, each.bits, 0, 0))
                tops[each.family] = max(tops.get(each.family, 0), top)
            count = blocks[0].sequence - sum(tops.values())
            if count > 0:
                yield _tail(blocks[0], count)


def _closed(asked: Asked) -> Any:
    beat, row = table_of(t.PRODUCER).c, table_of(t.RECEIVED).c
    whose = (beat.producer, beat.application, beat.job_namespace, beat.job, beat.run)
    chosen = select(*whose, beat.sequence, beat.first, beat.closed_at, row.family, row.block, row.bits)
    chosen = chosen.join_from(table_of(t.PRODUCER), table_of(t.RECEIVED), row.producer == beat.producer)
    chosen = chosen.where(beat.closed_at <= asked.now - SETTLED, *asked.in_time(beat.first, beat.last))
    if asked.applications is not None:
        chosen = chosen.where(beat.application.in_(asked.applications))
    return chosen.order_by(beat.producer)


def _tail(closed: Any, count: int) -> Missing:
    return Missing(
        Cause.HOLE,
        f"the last {count} of its events, as it counted them when it closed, never came",
        when(closed.first),
        when(closed.closed_at),
        count=count,
        producer=uuid_of(closed.producer),
        **_whose(closed),
    )
