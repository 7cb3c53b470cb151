"""`headwater write`: events from a bus into a lineage store, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.cli import logs
from headwater.cli.configured import ConfiguredFlags
from headwater.cli.exits import Exit
from headwater.cli.flags import one_of, pair
from headwater.cli.output import Output
from headwater.cli.pipelines import COORDINATED, JDBC, add_pipeline, check_pipeline, coordinated
from headwater.cli.store import MAIN, add_stores, opened_stores
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import Source
    from headwater.consumers.sources.dead_letter_topic import DeadLetterTopic
    from headwater.consumers.writer.coordinated import Coordinator
    from headwater.consumers.writer.running import Runner
    from headwater.lineage.bulk import Partition
    from headwater.lineage.store import Store

_LOG: Final = logging.getLogger(__name__)
_TOPIC: Final = "headwater.events"
_GROUP: Final = "headwater-writer"
_NONE: Final = "none"
_GENERATION: Final = (50_000, 50, 50)
"""Rows of a batch are many objects that all go at its end: looking for circles among them is half of the time."""
_TURN_SECONDS: Final = 0.0002
"""Who talks to the database gives up its turn at each call, and waits for another: 5 ms, with Python's own."""
Stored = Callable[[str], "Mapping[Partition, int]"]
_EPILOG: Final = """
A SIGTERM or Ctrl-C ends it when what it has in its hands is stored; the rest comes next time. A second one ends it at
once. Nothing is left out, and what comes twice changes nothing.
"""


def main(arguments: Sequence[str], output: Output) -> int:
    parser = _flags(arguments)
    given = parser.parse_args(arguments)
    if given.print_config:
        output.table("Configuration", ("key", "value", "from"), list(parser.told(given)))
        return Exit.DONE
    if getattr(given, "from") is None:
        raise ConfigurationError("where from? Name the bus by --from kafka://HOST:PORT or --from log:DIR")
    check_pipeline(given)
    handler = logs.begin(given.log_format, given.log_level)
    status = Exit.DONE.value
    try:
        if given.processes > 1:
            from headwater.cli.several import together  # noqa: PLC0415

            status, figures = together(arguments, given)
        else:
            figures = _written(given) if given.lineage_meta == JDBC else _called(given)
    finally:
        logs.end(handler)
    output.record("Written", figures)
    return status


def _flags(arguments: Sequence[str]) -> ConfiguredFlags:
    words = "Keep a lineage store: read events from a bus, and write what they tell."
    parser = ConfiguredFlags("headwater write", words, _EPILOG, arguments)
    add_stores(parser)
    text = "which implementation the store is: jdbc, or somebody's entry point of headwater.lineage_meta"
    parser.flag("lineage-meta", str, os.environ.get("HEADWATER_STORE_LINEAGE_META", JDBC), text, "NAME")
    parser.flags("store-option", pair, "an option of such an implementation", "KEY=VALUE")
    parser.flag("from", _place, None, "the bus: kafka://HOST:PORT[,HOST:PORT…][/TOPIC] or log:DIR", "BUS")
    parser.flag("group", str, _GROUP, "the consumer group; its writers share the work", "NAME")
    parser.flag("processes", _count, "1", "so many writers of the group: each keeps one core busy at most", "N")
    add_pipeline(parser)
    parser.flag("batch", _count, "5000", "at most so many events in a transaction", "N")
    parser.flag("most-invalid", _number, "100", "end where so many events in a row can't become rows; 0 never", "N")
    text = "where dead letters of a topic go too, <topic>.dead-letters unless named; none for nowhere"
    parser.flag("dead-letter-topic", str, None, text, "TOPIC")
    parser.flags("kafka", pair, "a setting of the Kafka client", "KEY=VALUE")
    parser.flag("health", _address, None, "serve /live, /ready and /metrics there", "HOST:PORT")
    parser.flag("drain-seconds", _number, "30", "how long it may take to end after a SIGTERM", "N")
    parser.flag("log-format", one_of(logs.FORMATS), "text", "how what happens is told on standard error", "{text,json}")
    parser.flag("log-level", one_of(logs.LEVELS), "info", "what of it; debug has each batch", "LEVEL")
    parser.switch("no-upkeep", "leave to somebody else what a store needs once a day")
    parser.switch("until-end", "stop once all that is on the bus is stored")
    return parser


def _written(given: Any) -> dict[str, Any]:
    with opened_stores(given) as stores, closing(_source(given, _stored(stores, given.group))) as source:
        runner = _runner(source, stores, given)
        with _kept(stores, given), _mirrored(runner, source, stores, given):
            return asyncio.run(_run(runner, given))


def _called(given: Any) -> dict[str, Any]:
    """Into a store that somebody else made."""
    from headwater.cli.calling import opened_by_name, pipeline_into  # noqa: PLC0415
    from headwater.consumers.writer.running import Runner  # noqa: PLC0415
    from headwater.lineage.bulk import BulkLineageMeta  # noqa: PLC0415

    with closing(opened_by_name(given)) as meta:
        known = (lambda cluster: meta.offsets(given.group, cluster)) if isinstance(meta, BulkLineageMeta) else None
        with closing(_source(given, known)) as source:
            pipeline = pipeline_into(meta, source, given, _letters(source, given))
            runner = Runner(source, pipeline, most=given.batch, until_end=given.until_end)
            return asyncio.run(_run(runner, given))


def _stored(stores: Mapping[str, Store], group: str) -> Stored:
    from headwater.consumers.writer.routed import smallest  # noqa: PLC0415

    return lambda cluster: smallest(store.bulk.offsets(group, cluster) for store in stores.values())


def _runner(source: Source, stores: Mapping[str, Store], given: Any) -> Runner | Coordinator:
    if given.pipeline == COORDINATED:
        return coordinated(source, stores[MAIN], given)
    from headwater.consumers.writer.plain import PlainPipeline  # noqa: PLC0415
    from headwater.consumers.writer.routed import RoutedPipeline  # noqa: PLC0415
    from headwater.consumers.writer.running import Pipeline, Runner  # noqa: PLC0415

    about, more = (given.group, source.kind, source.topic), {"most_invalid": given.most_invalid}
    pipeline: Pipeline
    if len(stores) == 1:
        pipeline = PlainPipeline(stores[MAIN].bulk, *about, **more)
    else:
        of_catalogs = {name: name for name in stores if name != MAIN}
        pipeline = RoutedPipeline({name: store.bulk for name, store in stores.items()}, of_catalogs, *about, **more)
    return Runner(source, pipeline, most=given.batch, until_end=given.until_end)


async def _run(runner: Runner | Coordinator, given: Any) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, _told_to_end, runner, each, given.drain_seconds)
    gc.freeze()
    gc.set_threshold(*_GENERATION)
    sys.setswitchinterval(_TURN_SECONDS)
    with _served(runner, given.health):
        await runner.run()
    return runner.vitals.figures()


def _told_to_end(runner: Runner | Coordinator, number: signal.Signals, seconds: int) -> None:
    """What isn't stored comes again, so ending at once does no harm: a thread may be in the midst of a transaction,
    which nobody can take it out of."""
    if runner.is_stopping:
        _LOG.warning("told a second time to stop: it ends at once, and what isn't stored comes again")
        _end(128 + number)
    _LOG.info("told to stop: it stores what it has in its hands", extra={logs.FIELDS: {"signal": number.name}})
    runner.stop()
    late = threading.Timer(seconds, _too_late, (seconds,))
    late.daemon = True
    late.start()


def _too_late(seconds: int) -> None:
    _LOG.error(
        "%d seconds after it was told to stop it isn't done: it ends, and what isn't stored comes again", seconds
    )
    _end(Exit.NOT_DRAINED)


def _end(status: int) -> None:
    logging.shutdown()
    os._exit(status)


def _served(runner: Runner | Coordinator, health: tuple[str, int] | None) -> AbstractContextManager[object]:
    if health is None:
        return nullcontext()
    from headwater.consumers.writer.serving import Serving  # noqa: PLC0415

    return Serving(runner.vitals, *health)


def _kept(stores: Mapping[str, Store], given: Any) -> AbstractContextManager[object]:
    if given.no_upkeep or given.until_end:
        return nullcontext()
    from headwater.consumers.writer.upkeep import Upkeep  # noqa: PLC0415

    return Upkeep(store.engine for store in stores.values())


def _mirrored(
    runner: Runner | Coordinator, source: Source, stores: Mapping[str, Store], given: Any
) -> AbstractContextManager[object]:
    letters = _letters(source, given)
    if letters is None:
        return nullcontext()
    from headwater.consumers.writer.mirror import Mirror  # noqa: PLC0415

    others = (store.bulk for name, store in stores.items() if name != MAIN)
    return Mirror(stores[MAIN].bulk, source.topic, letters, runner.vitals, others=others)


def _letters(source: Source, given: Any) -> Callable[[], DeadLetterTopic] | None:
    """Kafka's dead letters have a topic."""
    if source.kind != "kafka" or given.dead_letter_topic == _NONE:
        return None
    from headwater.consumers.sources.dead_letter_topic import SUFFIX, DeadLetterTopic  # noqa: PLC0415

    return partial(DeadLetterTopic, _settings(given), given.dead_letter_topic or f"{source.topic}{SUFFIX}")


def _source(given: Any, stored: Stored | None) -> Source:
    """Each brings in its own library only."""
    scheme, _, rest = getattr(given, "from").partition(":")
    if scheme == "log":
        from headwater.consumers.sources.log import LogSource  # noqa: PLC0415

        return LogSource(Path(rest).expanduser(), given.group)
    from headwater.consumers.sources.kafka import KafkaSource  # noqa: PLC0415

    topic = rest.removeprefix("//").partition("/")[2]
    return KafkaSource(_settings(given), topic or _TOPIC, given.group, stored)


def _settings(given: Any) -> dict[str, str]:
    """Of the Kafka client."""
    servers = getattr(given, "from").removeprefix("kafka:").removeprefix("//").partition("/")[0]
    return {**dict(given.kafka), "bootstrap.servers": servers}


def _place(text: str) -> str:
    scheme, _, rest = text.partition(":")
    if (scheme == "log" and rest) or (scheme == "kafka" and rest.removeprefix("//").partition("/")[0]):
        return text
    raise ValueError(f"{text!r} is no bus: write kafka://HOST:PORT, kafka://HOST:PORT/TOPIC or log:DIR")


def _count(text: str) -> int:
    if _number(text) == 0:
        raise ValueError("there has to be one at least")
    return int(text)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no number")
    return int(text)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) >= 1 << 16:
        raise ValueError(f"{text!r} is no HOST:PORT")
    return host or "127.0.0.1", int(port)
