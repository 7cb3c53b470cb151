"""`headwater writer run`: events from a bus into a lineage store, until it is stopped.

Which pipeline the writer runs: in one process or in several, or into somebody else's store.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.bus import add_bus, open_source, require_bus
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, pair, whole_number
from headwater.cli.output import CommandOutput
from headwater.cli.service import add_service, logging_as, serve_health, stop_on_signals
from headwater.cli.store import MAIN, add_stores, opened_stores, options_of
from headwater.cli.writer.config_file import FileFlags
from headwater.consumers.tuning import tune_garbage_collection
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import EventSource
    from headwater.consumers.writer.pipeline import Pipeline
    from headwater.consumers.writer.runner import Runner
    from headwater.lineage.api import LineageMeta
    from headwater.lineage.bulk import WriterMarks
    from headwater.lineage.store import Store


JDBC: Final = "jdbc"
"""The store's own implementation; another one is somebody's plug-in."""


def add_pipeline(parser: Flags) -> None:
    """Add the flags that choose a pipeline and set its limits."""
    text = "which implementation the store is: jdbc, or somebody's entry point of headwater.lineage_meta"
    parser.flag("lineage-meta", str, JDBC, text, "NAME")
    parser.flags("store-option", pair, "an option of such an implementation", "KEY=VALUE")
    text = "where dead letters go that such an implementation has no table for; of each machine its own"
    parser.flag("dead-letters", Path, None, text, "DIR")
    parser.flag("processes", count, "1", "with more than one, so many read events, and others write rows", "N")


def check_pipeline(given: Any) -> None:
    """Raise what is wrong, before anything is opened."""
    if given.processes == 1:
        return
    if given.catalog_store:
        raise ConfigurationError("several processes keep one store: leave --processes at 1 for --catalog-store")
    if given.lineage_meta != JDBC:
        raise ConfigurationError(
            f"several processes keep a database of headwater's own, and not {given.lineage_meta}: leave --processes at "
            "1 for --lineage-meta"
        )
    if options_of(given).target.kind.scheme == "sqlite":
        raise ConfigurationError("SQLite lets one process write at a time: leave --processes at 1")


def opened_by_name(given: Any) -> LineageMeta:
    """Open the store that a plug-in implements; its options are those of a catalog."""
    from headwater.lineage.meta import open_lineage_meta  # noqa: PLC0415

    if given.catalog_store:
        raise ConfigurationError("--catalog-store is for stores in databases: leave --lineage-meta at jdbc")
    at = {"jdbc.url": given.store} if given.store else {}
    return open_lineage_meta({**dict(given.store_option), **at, "lineage-meta": given.lineage_meta})


def make_pipeline(
    metas: Mapping[str, Any], source: EventSource, given: Any, marks: Mapping[str, WriterMarks] | None
) -> Pipeline:
    """Return the pipeline into stores, by their names: one process or several, or into a store that has the first
    interface only. `marks` are those of the stores that have the second one."""
    from headwater.consumers.writer.lineage_meta_pipeline import LineageMetaPipeline  # noqa: PLC0415
    from headwater.consumers.writer.processes.process_pipeline import ProcessPipeline  # noqa: PLC0415
    from headwater.consumers.writer.store_pipeline import StorePipeline  # noqa: PLC0415
    from headwater.journal import DeadLetterLog  # noqa: PLC0415

    about, more = (source.kind, source.topic), {"most_invalid": given.most_invalid}
    if marks is None:
        return LineageMetaPipeline(metas[MAIN], *about, DeadLetterLog(_letters_directory(given)), **more)
    if given.processes == 1:
        return StorePipeline(metas, given.group, *about, **more, marks=marks)
    main, options = metas[MAIN], options_of(given)
    return ProcessPipeline(main, options, given.group, *about, processes=given.processes, **more, marks=marks[MAIN])


def _letters_directory(given: Any) -> Path:
    """Return where dead letters are kept that no store has a table for."""
    from headwater.publishers.log import data_directory  # noqa: PLC0415

    return Path(given.dead_letters or data_directory().with_name("dead-letters") / given.group).expanduser()


_GROUP: Final = "headwater-writer"
_TURN_SECONDS: Final = 0.0002
"""Who talks to the database gives up its turn at each call, and waits for another: 5 ms, with Python's own."""


def _flags(parser: Flags) -> None:
    add_bus(parser)
    parser.flag("group", str, _GROUP, "the consumer group; its writers share the work", "NAME")
    add_pipeline(parser)
    parser.flag("batch", count, "10000", "at most so many events in a transaction", "N")
    text = "end where so many events in a row can't become rows; 0 never"
    parser.flag("most-invalid", whole_number, "100", text, "N")
    add_service(parser, "each batch")
    text = "once a day, remove records of runs that are older, such as 400d; kept for ever unless given"
    parser.flag("keep-runs", _age, None, text, "AGE")
    parser.switch("no-maintenance", "leave to somebody else what a store needs once a day")
    parser.switch("until-end", "stop once all that is on the bus is stored")


@command(
    """Fill a lineage store: read events from Kafka or a local log, and store them, until it is stopped.

A SIGTERM or Ctrl-C ends it when the events it holds are stored; the rest is read next time. A second one ends it at
once. Either way nothing is lost, and what is read twice changes nothing.

Each flag can also be a key in the file that --config names.""",
    "headwater writer run --bus kafka://broker-1:9092,broker-2:9092 --store postgresql://writer@db/lineage",
    "headwater writer run --bus log:/var/lib/headwater/log --store /var/lib/headwater/lineage.db",
    "headwater writer run --bus log:/var/lib/headwater/log --store lineage.db --print-config",
    flags=[add_stores, _flags],
    parser=FileFlags,
)
def run(given: Namespace, output: CommandOutput) -> int:
    if given.print_config:
        output.table("configuration", ("key", "value", "from"), list(given.parser.rows(given)))
        return Exit.DONE
    require_bus(given)
    check_pipeline(given)
    with logging_as(given.log_format, given.log_level):
        figures = _write(given)
    output.record("written", figures)
    return Exit.DONE


def _write(given: Any) -> dict[str, Any]:
    from headwater.consumers.writer.offsets import OffsetReader  # noqa: PLC0415
    from headwater.consumers.writer.runner import Runner  # noqa: PLC0415
    from headwater.lineage.bulk import BulkLineageMeta  # noqa: PLC0415

    with ExitStack() as opened:
        stores = opened.enter_context(opened_stores(given)) if given.lineage_meta == JDBC else {}
        metas: dict[str, Any] = {name: store.bulk for name, store in stores.items()}
        if not metas:
            metas[MAIN] = opened.enter_context(closing(opened_by_name(given)))
        offsets = OffsetReader(metas, given.group) if isinstance(metas[MAIN], BulkLineageMeta) else None
        source = opened.enter_context(closing(open_source(given.bus, given.group, given.kafka, offsets)))
        pipeline = make_pipeline(metas, source, given, None if offsets is None else offsets.marks)
        runner = Runner(source, pipeline, most=given.batch, until_end=given.until_end)
        with _maintenance(stores, given):
            return asyncio.run(_run(runner, given))


async def _run(runner: Runner, given: Any) -> dict[str, Any]:
    stop_on_signals(runner.stop, given.drain_seconds, "stored")
    tune_garbage_collection()
    sys.setswitchinterval(_TURN_SECONDS)
    with serve_health(runner.metrics, given.health):
        await runner.run()
    return runner.metrics.figures()


def _maintenance(stores: Mapping[str, Store], given: Any) -> AbstractContextManager[object]:
    if given.no_maintenance or given.until_end or not stores:
        return nullcontext()
    from headwater.lineage.maintenance.daily import StoreMaintenance  # noqa: PLC0415

    return StoreMaintenance((store.engine for store in stores.values()), keep_seconds=given.keep_runs)


def _age(text: str) -> float:
    from headwater.config.units import seconds_of  # noqa: PLC0415 - it imports pydantic
    from headwater.lineage.maintenance.aging import LEAST_DAYS  # noqa: PLC0415

    seconds = float(seconds_of(text))
    if seconds < LEAST_DAYS * 86_400:
        raise ValueError(f"{text!r} is less than {LEAST_DAYS} days: the bus may still have such events")
    return seconds
