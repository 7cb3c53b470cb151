"""`headwater forward test` and `plan`: whether a target is there, and what it would be sent."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, limit
from headwater.cli.forward.arguments import ForwardFlags, add_forwarders, chosen_settings
from headwater.cli.forward.recent_events import RecentEvents, recent_events
from headwater.cli.forward.running import add_bus
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError, HeadwaterError, PluginError
from headwater.spi import CheckResult, CheckStatus

if TYPE_CHECKING:
    from headwater.forwarders.api import CheckableForwarder, Forwarder, PreviewableForwarder
    from headwater.forwarders.configuration import ForwarderSettings

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
    async for each in results:
        return each
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
