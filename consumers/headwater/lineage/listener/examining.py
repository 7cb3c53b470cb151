"""What `headwater doctor` finds out about a store: from its address to one event that is written and read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import TimeoutError as NotYet
from typing import Final, TypeVar

from sqlalchemy import func, select

from headwater.errors import ConfigurationError, HeadwaterError
from headwater.events.envelope import Event
from headwater.events.health import Closed
from headwater.events.producer import Producer
from headwater.lineage.bulk import LetterState, Work
from headwater.lineage.bulk.tables import LETTERS
from headwater.lineage.law import changes
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.rows import tables as rows
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import Store, open_store
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions
from headwater.spi import Finding, ListenerContext

T = TypeVar("T")
_PATIENCE: Final = 15.0
_SLOW: Final = 0.25
_WATCHED: Final = "the driver goes on meanwhile: its events wait in the spool"


def examine(config: JdbcConfig, context: ListenerContext) -> Iterator[Finding]:
    """Ends where nothing behind it can work."""
    try:
        options = config.store_options()
        engine_for(options.target).dispose()
    except ConfigurationError as e:
        yield Finding.wrong("address", str(e).replace("jdbc.", context.prefix), f"mend {context.prefix}url")
        return
    yield Finding.fine("address", f"the store is {options.target.words}")
    store = yield from _opened(config, options, context)
    if store is None:
        return
    try:
        yield from _written_and_read(store, context)
        yield from _letters(store, context)
    finally:
        store.close()


def _opened(
    config: JdbcConfig, options: StoreOptions, context: ListenerContext
) -> Generator[Finding, None, Store | None]:
    began = time.monotonic()
    try:
        store = _within(context, lambda: open_store(options, create=config.create))
    except HeadwaterError as e:
        yield Finding.wrong("store", str(e), _WATCHED)
        return None
    took = (time.monotonic() - began) * 1_000
    yield Finding.fine("store", f"its tables are those that this headwater knows ({took:.0f} ms)")
    return store


def _written_and_read(store: Store, context: ListenerContext) -> Iterator[Finding]:
    event = _trial(context)
    began = time.monotonic()
    try:
        _within(context, lambda: store.bulk.merge(Work(tuple(changes(event)))))
        took = time.monotonic() - began
        is_there = _within(context, lambda: _is_there(store, event))
    except HeadwaterError as e:
        yield Finding.wrong("writing", f"an event can't be written: {e}", _WATCHED)
        return
    words = f"one event was written in {took * 1_000:.0f} ms"
    yield Finding.doubtful("writing", f"{words}: that is slow") if took > _SLOW else Finding.fine("writing", words)
    if is_there:
        yield Finding.fine("reading", "it came back as it was written")
    else:
        yield Finding.wrong("reading", "it was acknowledged, and isn't there", "is that a replica that lags behind?")


def _letters(store: Store, context: ListenerContext) -> Iterator[Finding]:
    waiting = select(func.count()).select_from(LETTERS).where(LETTERS.c.state == LetterState.WAITING.value)

    def count() -> int:
        with store.engine.connect() as connection:
            return int(connection.execute(waiting).scalar_one())

    try:
        number = _within(context, count)
    except HeadwaterError as e:
        yield Finding.wrong("dead letters", str(e), _WATCHED)
        return
    if number:
        words = f"{number} events couldn't be stored, and wait in the table dead_letters"
        yield Finding.doubtful(
            "dead letters", words, "`headwater dead-letters list` shows them, and `retry` tries again"
        )
    else:
        yield Finding.fine("dead letters", "none")


def _is_there(store: Store, event: Event) -> bool:
    table = table_of(rows.PRODUCER)
    with store.engine.connect() as connection:
        wanted = select(table.c.closed_at).where(table.c.producer == event.producer.bytes)
        return connection.execute(wanted).scalar() is not None


def _trial(context: ListenerContext) -> Event:
    """A producer that tells one event and nothing else: a driver that came and went."""
    told: list[Event] = []
    Producer(context.application.id).emit(Closed(), lambda event, _: told.append(event))
    return told[0]


def _within(context: ListenerContext, call: Callable[[], T]) -> T:
    """On another thread: a database can be silent."""
    try:
        return context.executor.submit(call).result(_PATIENCE)
    except NotYet as e:
        raise HeadwaterError(f"no answer within {_PATIENCE:.0f} s") from e
