"""`headwater writer run`: events from a bus into a lineage store, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import TYPE_CHECKING, Any, Final

from headwater.cli import logs
from headwater.cli.bus import WAYS, bus_address, host_and_port, open_source
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, one_of, pair, whole_number
from headwater.cli.output import CommandOutput
from headwater.cli.stopping import stop_on_signals
from headwater.cli.store import MAIN, add_stores, opened_stores
from headwater.cli.writer.config_file import FileFlags
from headwater.cli.writer.pipelines import (
    JDBC,
    add_pipeline,
    check_pipeline,
    make_pipeline,
    opened_by_name,
)
from headwater.consumers.tuning import tune_garbage_collection
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.writer.runner import Runner
    from headwater.lineage.store import Store

_LOG: Final = logging.getLogger(__name__)
_GROUP: Final = "headwater-writer"
_TURN_SECONDS: Final = 0.0002
"""Who talks to the database gives up its turn at each call, and waits for another: 5 ms, with Python's own."""


def _flags(parser: Flags) -> None:
    parser.flag("bus", bus_address, None, f"where events are: {WAYS}", "BUS")
    parser.flag("group", str, _GROUP, "the consumer group; its writers share the work", "NAME")
    add_pipeline(parser)
    parser.flag("batch", count, "10000", "at most so many events in a transaction", "N")
    text = "end where so many events in a row can't become rows; 0 never"
    parser.flag("most-invalid", whole_number, "100", text, "N")
    parser.flags("kafka", pair, "a setting of the Kafka client", "KEY=VALUE")
    parser.flag("health", host_and_port, None, "serve /live, /ready and /metrics there", "HOST:PORT")
    parser.flag("drain-seconds", whole_number, "30", "how long it may take to end after a SIGTERM", "N")
    parser.flag("log-format", one_of(logs.FORMATS), "text", "how the log on standard error looks", "{text,json}")
    parser.flag("log-level", one_of(logs.LEVELS), "info", "what is in it; debug has each batch", "LEVEL")
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
    if given.bus is None:
        raise ConfigurationError("where are the events? Name the bus by --bus kafka://HOST:PORT or --bus log:DIR")
    check_pipeline(given)
    with logs.logging_as(given.log_format, given.log_level):
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
    with _health_server(runner, given.health):
        await runner.run()
    return runner.metrics.figures()


def _health_server(runner: Runner, health: tuple[str, int] | None) -> AbstractContextManager[object]:
    if health is None:
        return nullcontext()
    from headwater.consumers.health_server import HealthServer  # noqa: PLC0415

    return HealthServer(runner.metrics, *health)


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
