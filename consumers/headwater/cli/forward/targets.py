"""`headwater forward test` and `plan`: whether a target is there, and what it would be sent.

Finds the newest events about a table, on a bus or in a file, with the job lineage that they name.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from headwater.cli.bus import add_bus, is_log, kafka_settings, log_directory, topic_of
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, limit
from headwater.cli.forward.arguments import ForwardFlags, add_forwarders, chosen_settings
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError, HeadwaterError, PluginError
from headwater.events.keys import datasets_in, name_pattern
from headwater.spi import CheckResult, CheckStatus

if TYPE_CHECKING:
    from headwater.consumers.sources import BusRecord
    from headwater.forwarders.api import BusEvent, CheckableForwarder, Forwarder, KnownLineage, PreviewableForwarder
    from headwater.forwarders.configuration import ForwarderSettings


_PAGE: Final = 1_000


@dataclass(frozen=True)
class RecentEvents:
    """Events, the oldest first, among so many records."""

    events: tuple[BusEvent, ...]
    lineage: KnownLineage
    records: int


@contextmanager
def recent_events(given: Namespace) -> Generator[RecentEvents, None, None]:
    """Find the newest events about the table that is named, or those of the file."""
    from headwater.events.avro import Codec  # noqa: PLC0415
    from headwater.forwarders.dead_letters import decode_records  # noqa: PLC0415
    from headwater.forwarders.known_lineage import LineageCache  # noqa: PLC0415
    from headwater.forwarders.state import ForwarderState  # noqa: PLC0415

    wanted, count = None if given.table is None else name_pattern(given.table), 0
    newest: deque[BusEvent] = deque(maxlen=given.limit)
    with TemporaryDirectory() as directory, ForwarderState(Path(directory), "plan") as state:
        lineage = LineageCache(state)
        codec = Codec()
        for records in _pages(given):
            count += len(records)
            for event in decode_records(codec, records, lineage).events:
                if wanted is None or any(map(wanted.fullmatch, datasets_in(event.event))):
                    newest.append(event)
        found = sorted(newest, key=lambda each: each.event.time)
        yield RecentEvents(tuple(found), lineage, count)


def _pages(given: Namespace) -> Iterator[list[BusRecord]]:
    if given.events is not None:
        return _of_file(given.events)
    if given.bus is None:
        raise ConfigurationError("where are the events? Name the bus by --bus, or a file with one event by --events")
    if is_log(given.bus):
        return _of_log(log_directory(given.bus))
    from headwater.consumers.replay.kafka_range import read_newest  # noqa: PLC0415

    return read_newest(kafka_settings(given.bus, given.kafka), topic_of(given.bus), given.records)


def _of_log(directory: Path) -> Iterator[list[BusRecord]]:
    from headwater.cli.events.reading import LocatedRecord, LogDirectory, check_source, read_all  # noqa: PLC0415  # noqa: PLC0415
    from headwater.consumers.sources import BusRecord  # noqa: PLC0415
    from headwater.lineage.bulk import BusPartition  # noqa: PLC0415

    page: list[BusRecord] = []
    for each in read_all(check_source(LogDirectory(directory))):
        if isinstance(each, LocatedRecord):
            where = BusPartition("log", str(directory), int(each.place.rpartition("-")[2]))
            record = each.record
            page.append(BusRecord(record.value, where, record.offset, each.time, record.key, record.headers))
        if len(page) == _PAGE:
            yield page
            page = []
    yield page


def _of_file(place: Path) -> Iterator[list[BusRecord]]:
    from headwater.consumers.sources import BusRecord  # noqa: PLC0415
    from headwater.lineage.bulk import BusPartition  # noqa: PLC0415

    try:
        data = place.read_bytes()
    except OSError as e:
        raise ConfigurationError(f"{place} can't be read: {e.strerror}") from e
    yield [BusRecord(data, BusPartition("file", str(place)), 0, None)]


_STEP: Final = "target"


def _name(parser: Flags) -> None:
    parser.word("name", str, "which forwarder", "NAME")


def _events(parser: Flags) -> None:
    parser.flag(
        "table", str, None, "what the events are about: 'lake.sales.*', sales.orders, a dataset's name", "TABLE"
    )
    text = "a file with one event, as `headwater dead-letter show --into` writes it, in place of the bus"
    parser.flag("events", Path, None, text, "FILE")
    parser.flag("records", count, "10000", "look at so many of the newest records of each partition of a topic", "N")


@command(
    """Check the target of a forwarder: is it there, and has this user the rights? Nothing is written to it.

Exit code 1 if something is wrong there.""",
    "headwater forward test datahub --option datahub.url=http://gms:8080",
    "headwater forward test openlineage --option openlineage.url=http://marquez:5000 -o json",
    flags=[add_forwarders, _name],
    parser=ForwardFlags,
)
def test(given: Namespace, output: CommandOutput) -> int:
    from headwater.forwarders.api import CheckableForwarder, NoLineage  # noqa: PLC0415

    (settings,) = chosen_settings(given, [given.name])
    forwarder = settings.create(NoLineage())
    with _event_loop() as loop:
        try:
            if not isinstance(forwarder, CheckableForwarder):
                output.note(f"{settings.name} has no check of its target: its options are right, more isn't known")
                return Exit.DONE
            found = list(output.findings(settings.name, _results(loop, forwarder, settings.config.timeout)))
        finally:
            _close(loop, forwarder)
    return Exit.FAILED if any(each.status is CheckStatus.ERROR for each in found) else Exit.DONE


@command(
    """Show as text what a forwarder would send: the messages of the newest events about a table, after its filters.
Nothing is sent, and no offset is moved.""",
    "headwater forward plan openlineage --table sales.daily --bus log:/var/lib/headwater/log --option openlineage.url=http://a",
    "headwater forward plan datahub --events event.avro --option datahub.url=http://gms:8080",
    flags=[add_bus, add_forwarders, _events, limit(5), _name],
    parser=ForwardFlags,
)
def plan(given: Namespace, output: CommandOutput) -> int:
    from headwater.forwarders.api import PreviewableForwarder  # noqa: PLC0415

    if given.table is None and given.events is None:
        raise ConfigurationError("which events? Name a table by --table, or a file with one event by --events")
    (settings,) = chosen_settings(given, [given.name])
    with recent_events(given) as found, _event_loop() as loop:
        forwarder = settings.create(found.lineage)
        try:
            if not isinstance(forwarder, PreviewableForwarder):
                raise ConfigurationError(f"{settings.name} can't show what it sends: its class has no method preview")
            rows = list(_messages(forwarder, settings, found))
        finally:
            _close(loop, forwarder)
    _give(output, rows, found, is_text=given.output == "text")
    return Exit.DONE


def _results(loop: asyncio.AbstractEventLoop, forwarder: CheckableForwarder, seconds: float) -> Iterator[CheckResult]:
    """Yield what the check finds, as soon as it is known."""
    results: AsyncIterator[CheckResult] = forwarder.check()
    while True:
        try:
            result = loop.run_until_complete(asyncio.wait_for(_next(results), seconds))
        except asyncio.TimeoutError:
            yield CheckResult.error(_STEP, f"no answer within {seconds:g} s")
            return
        except (HeadwaterError, OSError) as e:
            yield CheckResult.error(_STEP, str(e))
            return
        if result is None:
            return
        yield result


async def _next(results: AsyncIterator[CheckResult]) -> CheckResult | None:
    async for result in results:
        return result
    return None


def _messages(
    forwarder: PreviewableForwarder, settings: ForwarderSettings, found: RecentEvents
) -> Iterator[tuple[str, str, object, str]]:
    """Yield kind, id and time of each event with each message."""
    for each in found.events:
        event = each.event
        about = (event.kind, str(event.event_id), event.time)
        if not settings.wants(event):
            yield (*about, "nothing: its filters leave it out")
            continue
        try:
            messages = list(forwarder.preview(event))
        except HeadwaterError as e:
            messages = [f"nothing: {e}"]
        except Exception as e:
            raise PluginError(f"{settings.name} failed on the {event.kind} {event.event_id}: {e!r}") from e
        yield from ((*about, text) for text in messages or ["nothing: it has no message for this event"])


def _give(
    output: CommandOutput, rows: list[tuple[str, str, object, str]], found: RecentEvents, *, is_text: bool
) -> None:
    if not is_text:
        output.table("messages", ("kind", "event", "time", "message"), rows)
    before = None
    for kind, event, time, text in rows if is_text else ():
        if event != before:
            output.note(f"{kind} {event} of {time}")
        before = event
        output.note("\n".join(f"  {line}" for line in text.splitlines()))
    if not rows:
        output.note(f"none of the {found.records} records that were looked at is about it")


@contextmanager
def _event_loop() -> Generator[asyncio.AbstractEventLoop, None, None]:
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _close(loop: asyncio.AbstractEventLoop, forwarder: Forwarder) -> None:
    from headwater.forwarders.api import ClosableForwarder  # noqa: PLC0415

    if isinstance(forwarder, ClosableForwarder):
        loop.run_until_complete(forwarder.close())
