"""`headwater replay`: a store rebuilt from its events, and put in the place of the old one."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.bus import (
    WAYS,
    archive_place,
    bus_address,
    is_archive,
    is_log,
    kafka_settings,
    log_directory,
    topic_of,
)
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, moment, one_of, pair
from headwater.cli.output import CommandOutput
from headwater.cli.pipeline import add_spark
from headwater.cli.replay_by_spark import SPARK, bulk_reader, fill_lake
from headwater.cli.replay_output import ProgressLines, give_result
from headwater.cli.service import logging_as
from headwater.cli.store import add_store, options_of
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.replay.preparation import CopiedStore
    from headwater.consumers.replay.ranges import Positions, RangeSource
    from headwater.lineage.lake import LakeAddress
    from headwater.lineage.replacement.areas import Area

_STORE: Final = "store:"
_READERS: Final = ("writer", SPARK)
_FROM: Final = f"{WAYS}, or store:URL for the rows of another store"


def _source_address(text: str) -> str:
    if text.startswith(_STORE) and text != _STORE:
        return text
    try:
        return bus_address(text)
    except ValueError:
        raise ValueError(f"{text!r} isn't a source: write {_FROM}") from None


def _flags(parser: Flags) -> None:
    parser.flags("from", _source_address, f"where events are, the oldest first: {_FROM}", "SOURCE")
    parser.flag("group", str, "headwater-writer", "the writer's consumer group, by which the store has offsets", "NAME")
    parser.flags("kafka", pair, "a setting of the Kafka client", "KEY=VALUE")
    text = "who reads what there is at first: this machine, as a writer does, or Spark's executors"
    parser.flag("by", one_of(_READERS), "writer", text, "{writer,spark}")
    parser.flag("until", moment, None, "only what was appended before this time, into a new store", "TIME")
    text = "only fill the fresh tables, to compare them say; the same command without this goes on"
    parser.switch("no-switch", text)
    parser.switch("purge", "purge the rebuilt tables, because the live ones were")
    parser.switch("accept-loss", "go on although the store has events that no source has: they are lost")
    parser.switch("abort", "remove what an unfinished replay wrote")
    parser.switch("drop-former", "remove the tables that the last replay replaced")


def _tuning(parser: Flags) -> None:
    parser.flag("processes", count, "1", "with more than one, so many read events, and others write rows", "N")
    text = "by Spark: so many tasks write, each the rows of keys of its own; one for a core unless given"
    parser.flag("buckets", count, None, text, "N")
    text = "at most so many events in a transaction (10000), by Spark in a micro-batch (500000)"
    parser.flag("batch", count, None, text, "N")
    parser.flag("pause", count, "10", "the writer of the live store may have to wait for so many seconds", "N")


def _spark(parser: Flags) -> None:
    add_spark(parser)
    text = "by Spark: a setting of Kafka's Java client, such as security.protocol=SSL"
    parser.flags("kafka-client", pair, text, "KEY=VALUE")


@command(
    """Rebuild a lineage store from its events beside the live one, and put it in its place.

The live store is used by writers and readers all the while. Interrupted anywhere, the same command goes on, or the live
store is as it was. The old tables stay beside the new ones until --drop-former.""",
    "headwater replay --from kafka://broker-1:9092/headwater.events --store postgresql://owner@db/lineage",
    "headwater replay --from log:/var/lib/headwater/log --store /var/lib/headwater/lineage.db --no-switch",
    "headwater replay --from archive:/archive --from kafka://broker-1:9092 --store postgresql://owner@db/lineage",
    "headwater replay --from store:lineage.db --from log:/var/lib/headwater/log --store postgresql://owner@db/lineage",
    "headwater replay --by spark --master 'local[*]' --from kafka://broker-1:9092 --store postgresql://owner@db/lineage",
    "headwater replay --drop-former --store postgresql://owner@db/lineage",
    flags=[add_store, _flags, _tuning, _spark],
)
def replay(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.replacement.areas import Area  # noqa: PLC0415

    _check(given)
    if given.abort:
        return _drop(given, output, Area.FRESH, "what an unfinished replay wrote")
    if given.drop_former:
        return _drop(given, output, Area.FORMER, "the tables that the last replay replaced")
    with logging_as("text", "warning"):
        lake = options_of(given).lake
        if lake is not None:
            return _fill_lake(given, output, lake)
        return _rebuild(given, output)


def _check(given: Any) -> None:
    """Raise what is wrong, before anything is opened."""
    if given.abort or given.drop_former:
        return
    sources = _given_sources(given)
    if not sources:
        raise ConfigurationError(f"where are the events? Name them by --from {_FROM}")
    if any(source.startswith(_STORE) for source in sources[1:]):
        raise ConfigurationError("a store comes first: its rows are copied, and a bus is read on from its offsets")
    if options_of(given).lake is not None:
        if given.no_switch or given.purge or given.processes > 1 or sources[0].startswith(_STORE):
            raise ConfigurationError(
                "a lake store is filled from its own offsets on, by Spark, and nothing else: name another namespace to "
                "rebuild it, and leave out --no-switch, --purge, --processes and store: sources"
            )
    elif given.processes > 1 and given.by == SPARK:
        raise ConfigurationError("--processes are those of this machine: leave them out with --by spark")
    elif given.processes > 1 and options_of(given).target.kind.scheme == "sqlite":
        raise ConfigurationError("SQLite lets one process write at a time: leave --processes at 1")


def _rebuild(given: Any, output: CommandOutput) -> int:
    from headwater.consumers.replay.filling import ReplaySettings  # noqa: PLC0415
    from headwater.consumers.replay.replay import Replay  # noqa: PLC0415
    from headwater.lineage.bulk import DatabaseBulkMeta  # noqa: PLC0415
    from headwater.lineage.replacement.areas import Area  # noqa: PLC0415
    from headwater.lineage.store.engines import open_engine  # noqa: PLC0415

    options = options_of(given)
    settings = ReplaySettings(
        group=given.group,
        batch=given.batch or 10_000,
        processes=given.processes,
        switches=not given.no_switch,
        accept_loss=given.accept_loss,
        purge=given.purge,
        until=given.until,
        pause_seconds=float(given.pause),
    )

    def stored() -> Positions:
        with open_engine(options.beside(Area.FRESH.value).target) as engine:
            return DatabaseBulkMeta(engine).offsets(given.group)

    with _opened_sources(given, stored) as sources, bulk_reader(given) as make_bulk_reader:
        show = ProgressLines(given.output, sys.stderr).show
        result = Replay(
            options, sources, settings, show, copied=_find_copied_store(given), make_bulk_reader=make_bulk_reader
        ).run()
    give_result(output, result)
    return Exit.DONE


def _fill_lake(given: Any, output: CommandOutput, address: LakeAddress) -> int:
    with _opened_sources(given, dict) as sources:
        return fill_lake(given, output, sources, address)


def _drop(given: Any, output: CommandOutput, area: Area, what: str) -> int:
    from headwater.lineage.replacement.areas import drop_area  # noqa: PLC0415
    from headwater.lineage.replacement.state import replay_lock  # noqa: PLC0415
    from headwater.lineage.replacement.switching import switch_over_for  # noqa: PLC0415
    from headwater.lineage.store.engines import open_engine  # noqa: PLC0415

    options = options_of(given)
    with open_engine(options.target) as engine, replay_lock(engine, options.target):
        switch_over_for(options).recover()
        was_there = drop_area(options, area)
    words = f"{what}: removed" if was_there else f"{what}: there was nothing"
    output.outcome(words, {"store": options.target.words, "removed": was_there})
    return Exit.DONE


def _given_sources(given: Any) -> list[str]:
    return list(getattr(given, "from") or ())


def _find_copied_store(given: Any) -> CopiedStore | None:
    from headwater.consumers.replay.preparation import CopiedStore  # noqa: PLC0415

    first = _given_sources(given)[0]
    if not first.startswith(_STORE):
        return None
    options = options_of(given, first.removeprefix(_STORE))
    return CopiedStore(f"{_STORE}{options.target.words}", options)


@contextmanager
def _opened_sources(given: Any, stored: Callable[[], Positions]) -> Generator[Sequence[RangeSource]]:
    with ExitStack() as stack:
        sources = [
            _open(source, given.kafka, stored) for source in _given_sources(given) if not source.startswith(_STORE)
        ]
        for source in sources:
            stack.callback(source.close)
        yield sources


def _open(address: str, kafka: Sequence[tuple[str, str]], stored: Callable[[], Positions]) -> RangeSource:
    if is_log(address):
        from headwater.consumers.replay.ranges import LogRange  # noqa: PLC0415

        return LogRange(address, log_directory(address), stored)
    if is_archive(address):
        from headwater.consumers.replay.archive_range import ArchiveRange  # noqa: PLC0415

        return ArchiveRange(address, archive_place(address), stored)
    from headwater.consumers.replay.kafka_range import KafkaRange  # noqa: PLC0415

    return KafkaRange(address, kafka_settings(address, kafka), topic_of(address), stored)
