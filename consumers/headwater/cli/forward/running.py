"""`headwater forward run`: forwarders in one process, until they are stopped."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.bus import ConsumerBus, add_bus, archive_place, require_bus
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.forward.arguments import (
    ForwardRunFlags,
    add_forwarders,
    chosen_settings,
    configured_values,
    state_directory,
)
from headwater.cli.output import CommandOutput
from headwater.cli.service import add_service, logging_as, serve_health, stopping_on_signals
from headwater.cli.store import add_store, open_given_store, options_of
from headwater.consumers.tuning import tune_garbage_collection
from headwater.errors import ConfigurationError
from headwater.events.redaction import redact

if TYPE_CHECKING:
    from headwater.forwarders.process import ForwarderProcess
    from headwater.forwarders.starting import ForwarderStart, InitialEvents

_STARTS: Final = ("beginning", "end", "store", "archive")


def _flags(parser: Flags) -> None:
    add_bus(parser)
    add_forwarders(parser)
    text = "where a forwarder begins that never read this bus; store, archive: what that has, and the bus from there on"
    parser.flag("start", one_of(_STARTS, "start"), "beginning", text, f"{{{','.join(_STARTS)}}}")
    parser.flag("archive", archive_place, None, "with --start archive: that of `headwater archive run`", "PLACE")
    add_store(parser)
    text = "with --start store: the consumer group of the store's writer, from whose offsets the bus goes on"
    parser.flag("writer-group", str, "headwater-writer", text, "NAME")
    add_service(parser)
    parser.switch("until-end", "stop once all that is on the bus is sent")
    parser.word("names", str, "which forwarders; all that are configured, unless named", "NAME", "*")


@command(
    """Send events from Kafka or a local log to other systems, until it is stopped.

Each forwarder has a consumer group of its own: one whose target is away delays no other, and catches up. A SIGTERM or
Ctrl-C ends them when what they are sending is sent; a second one ends them at once. Either way nothing is lost, and
what is sent twice changes nothing.

Each flag can also be a key in the file that --config names, which has a table [forwarders.NAME] for each forwarder.""",
    "headwater forward run openlineage --bus log:/var/lib/headwater/log --option openlineage.url=http://marquez:5000",
    "headwater forward run datahub --bus kafka://broker-1:9092 --option datahub.url=http://gms:8080 --start end",
    "headwater forward run --print-config",
    flags=[_flags],
    parser=ForwardRunFlags,
)
def run(given: Namespace, output: CommandOutput) -> int:
    if given.print_config:
        output.table("configuration", ("key", "value", "from"), [*given.parser.rows(given), *_forwarder_rows(given)])
        return Exit.DONE
    require_bus(given)
    with logging_as(given.log_format, given.log_level):
        process = _create(given)
        tune_garbage_collection()
        with serve_health(process.health, given.health), stopping_on_signals(process.stop, "sent", given.drain_seconds):
            process.start()
            process.wait()
    columns = ("name", "sent", "filtered", "dead letters", "lost")
    rows = [
        (metric.name, metric.sent, metric.filtered, metric.dead_letters, metric.lost)
        for metric in process.health.metrics
    ]
    output.table("forwarded", columns, rows)
    return Exit.DONE


def _forwarder_rows(given: Namespace) -> Iterator[tuple[str, str, str]]:
    """Yield the keys of each forwarder without secrets."""
    options = {path for path, _ in given.option or ()}
    for name, values in configured_values(given).items():
        for key, value in values.items():
            where = "option" if f"{name}.{key}" in options else given.parser.file_place
            yield f"forwarders.{name}.{key}", str(redact({key: value})[key]), where


def _create(given: Any) -> ForwarderProcess:
    """Create all forwarders, before any of them begins."""
    from headwater.forwarders.process import ForwarderProcess, HostedForwarder  # noqa: PLC0415

    directory, bus, start = state_directory(given), ConsumerBus(given.bus, given.kafka), chosen_start(given)
    settings, hosted = chosen_settings(given, given.names), list[HostedForwarder]()
    try:
        for setting in settings:
            hosted.append(HostedForwarder(setting, directory, bus, start=start, until_end=given.until_end))
    except BaseException:
        for forwarder in hosted:
            forwarder.discard()
        raise
    return ForwarderProcess(hosted, directory)


def chosen_start(given: Any) -> ForwarderStart:
    """Return where forwarders begin. The store or archive is opened only by one that begins there."""
    from headwater.consumers.sources.group_start import GroupStart  # noqa: PLC0415
    from headwater.forwarders.starting import FROM_BEGINNING, FROM_END, ForwarderStart  # noqa: PLC0415

    initial = {"store": _store_start, "archive": _archive_start}.get(given.start)
    if initial is None:
        return FROM_END if given.start == "end" else FROM_BEGINNING
    if given.start == "store":
        options_of(given)  # says which flag is missing
    elif given.archive is None:
        raise ConfigurationError("where is the archive? Name its directory or URL by --archive PLACE")
    return ForwarderStart(given.start, GroupStart.BEGINNING, partial(initial, given))


def _store_start(given: Any) -> InitialEvents:
    from headwater.forwarders.store_start import StoreStart  # noqa: PLC0415

    store = open_given_store(given)
    return StoreStart(store.bulk, store.engine, given.writer_group)


def _archive_start(given: Any) -> InitialEvents:
    from headwater.forwarders.starting import ArchiveStart  # noqa: PLC0415

    return ArchiveStart(given.archive)
