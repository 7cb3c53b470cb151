"""What `headwater doctor` checks about a store: from its address to one event that is written and read back."""

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
from headwater.lineage.bulk import DeadLetterState, WriteBatch
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import tables as rows
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.writer_tables import DEAD_LETTERS
from headwater.lineage.store import Store, open_store
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions
from headwater.spi import CheckResult, ListenerContext

T = TypeVar("T")
_ANSWER_SECONDS: Final = 15.0
_SLOW: Final = 0.25
_WATCHED: Final = "the driver goes on meanwhile: its events wait in the spool"


def diagnose(config: JdbcConfig, context: ListenerContext) -> Iterator[CheckResult]:
    """Ends where nothing behind it can work."""
    try:
        options = config.store_options()
        engine_for(options.target).dispose()
    except ConfigurationError as e:
        yield CheckResult.error("address", str(e).replace("jdbc.", context.prefix), f"mend {context.prefix}url")
        return
    yield CheckResult.ok("address", f"the store is {options.target.words}")
    store = yield from _open_store(config, options, context)
    if store is None:
        return
    try:
        yield from _written_and_read(store, context)
        yield from _letters(store, context)
    finally:
        store.close()


def _open_store(
    config: JdbcConfig, options: StoreOptions, context: ListenerContext
) -> Generator[CheckResult, None, Store | None]:
    began = time.monotonic()
    try:
        store = _call_with_timeout(context, lambda: open_store(options, create=config.create))
    except HeadwaterError as e:
        yield CheckResult.error("store", str(e), _WATCHED)
        return None
    took = (time.monotonic() - began) * 1_000
    yield CheckResult.ok("store", f"its tables are those that this headwater knows ({took:.0f} ms)")
    return store


def _written_and_read(store: Store, context: ListenerContext) -> Iterator[CheckResult]:
    event = _trial(context)
    began = time.monotonic()
    try:
        _call_with_timeout(context, lambda: store.bulk.merge(WriteBatch(tuple(map_event(event)))))
        took = time.monotonic() - began
        is_there = _call_with_timeout(context, lambda: _is_there(store, event))
    except HeadwaterError as e:
        yield CheckResult.error("writing", f"an event can't be written: {e}", _WATCHED)
        return
    words = f"one event was written in {took * 1_000:.0f} ms"
    yield CheckResult.warning("writing", f"{words}: that is slow") if took > _SLOW else CheckResult.ok("writing", words)
    if is_there:
        yield CheckResult.ok("reading", "it came back as it was written")
    else:
        yield CheckResult.error(
            "reading", "it was acknowledged, and isn't there", "is that a replica that lags behind?"
        )


def _letters(store: Store, context: ListenerContext) -> Iterator[CheckResult]:
    waiting = (
        select(func.count()).select_from(DEAD_LETTERS).where(DEAD_LETTERS.c.state == DeadLetterState.WAITING.value)
    )

    def count() -> int:
        with store.engine.connect() as connection:
            return int(connection.execute(waiting).scalar_one())

    try:
        number = _call_with_timeout(context, count)
    except HeadwaterError as e:
        yield CheckResult.error("dead letters", str(e), _WATCHED)
        return
    if number:
        words = f"{number} events couldn't be stored, and wait in the table dead_letters"
        yield CheckResult.warning(
            "dead letters", words, "`headwater dead-letter list` shows them, and `retry` tries again"
        )
    else:
        yield CheckResult.ok("dead letters", "none")


def _is_there(store: Store, event: Event) -> bool:
    table = table_of(rows.PRODUCER)
    with store.engine.connect() as connection:
        query = select(table.c.closed_at).where(table.c.producer == event.producer.bytes)
        return connection.execute(query).scalar() is not None


def _trial(context: ListenerContext) -> Event:
    """Return the event of a producer that starts and closes, and does nothing else."""
    emitted: list[Event] = []
    Producer(context.application.id).emit(Closed(), lambda event, _: emitted.append(event))
    return emitted[0]


def _call_with_timeout(context: ListenerContext, call: Callable[[], T]) -> T:
    """On another thread: a database can be silent."""
    try:
        return context.executor.submit(call).result(_ANSWER_SECONDS)
    except NotYet as e:
        raise HeadwaterError(f"no answer within {_ANSWER_SECONDS:.0f} s") from e
