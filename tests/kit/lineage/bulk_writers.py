"""Many processes that write to one store at once, with keys that they have in common."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from multiprocessing.synchronize import Barrier
from random import Random
from typing import Final
from uuid import UUID

from sqlalchemy import func, select

from headwater.events import Committed, Event, JobName
from headwater.lineage.bulk import WriteBatch
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import store_digest, table_of
from headwater.lineage.store import open_store
from headwater.testing.examples import EXAMPLES

_DAYS: Final = [timedelta(days=days) for days in (-1, 0, 1)]
_LARGEST: Final = 150
_AT_ONCE: Final = 500
_PATIENCE: Final = 120.0


@dataclass(frozen=True)
class Written:
    """What one process, or all of them, did."""

    transactions: int
    retries: int
    invisible: int
    """Transactions whose rows weren't all there when they were looked for right after."""


def events_of(seed: int, number: int) -> list[Event]:
    """Of few producers, jobs and runs, at few times: most rows are reported many times."""
    random = Random(seed)
    return [_event(random, sequence) for sequence in range(1, number + 1)]


def _event(random: Random, sequence: int) -> Event:
    event = random.choice(EXAMPLES)
    update = {
        "producer": UUID(int=1 + sequence % 3),
        "sequence": sequence,
        "family_sequence": sequence,
        "time": event.time + random.choice(_DAYS) + timedelta(seconds=random.randrange(100)),
        "job": JobName(name=f"job-{random.randrange(5)}"),
        "run": UUID(int=100 + random.randrange(4)),
    }
    if isinstance(event, Committed):
        update |= {"barrier": 1 + random.randrange(50), "incarnation": None}
    return event.model_copy(update=update)


def written_by_many(url: str, seed: int, number: int, processes: int) -> Written:
    """Each writes half of the events, in an order of its own: nearly each event comes several times."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    start = context.Barrier(processes)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_wait_at, initargs=(start,)) as pool:
        made = list(
            pool.map(_write, *zip(*[(url, seed, number, each, processes) for each in range(processes)], strict=True))
        )
    return Written(
        *(sum(values) for values in zip(*((w.transactions, w.retries, w.invisible) for w in made), strict=True))
    )


_start: Barrier | None = None


def _wait_at(start: Barrier) -> None:
    global _start  # noqa: PLW0603 - it can be given to a process when it is made only
    _start = start


def _write(url: str, seed: int, number: int, writer: int, processes: int) -> Written:
    events, random = events_of(seed, number), Random(f"{seed} {writer}")
    mine = [event for place, event in enumerate(events) if place % processes == writer or random.random() < 0.5]
    random.shuffle(mine)
    transactions = retries = invisible = 0
    batches = list(_batches(mine, random))
    with open_store(url) as store, open_store(url, readonly=True) as reader:
        assert _start is not None
        _start.wait(_PATIENCE)
        for rows in batches:
            retries += store.bulk.merge(WriteBatch(rows)).retries
            transactions += 1
            commits = {row.id for row in rows if row.kind == t.COMMIT}
            table = table_of(t.COMMIT)
            with reader.engine.connect() as connection:
                there = select(func.count()).where(table.c.id.in_(sorted(commits)[:_AT_ONCE]))
                invisible += connection.execute(there).scalar_one() != len(commits)
    return Written(transactions, retries, invisible)


def _batches(events: Sequence[Event], random: Random) -> Iterator[list[Row]]:
    at = 0
    while at < len(events):
        size = 1 + random.randrange(_LARGEST)
        yield list(chain.from_iterable(map(map_event, events[at : at + size])))
        at += size


def digest_in(url: str) -> str:
    with open_store(url) as store, store.engine.connect() as connection:
        return store_digest(connection)


def digest_in_memory(seed: int, number: int) -> str:
    state = RowSet()
    for event in events_of(seed, number):
        state.merge(map_event(event))
    return state.digest()
