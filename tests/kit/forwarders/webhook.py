"""A forwarder to webhooks that is given batches of events, and how each of them ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headwater.errors import HeadwaterError
from headwater.events import Event
from headwater.forwarders.api import BusEvent, ForwarderContext
from headwater.forwarders.webhook import WebhookForwarder
from headwater.spi import CheckStatus
from tests.kit.forwarders.stage import MemoryBus


def forwarder(**options: str) -> WebhookForwarder:
    return WebhookForwarder(ForwarderContext("w", {key.replace("_", "."): text for key, text in options.items()}))


def batch(events: Sequence[Event]) -> list[BusEvent]:
    bus = MemoryBus()
    return [BusEvent(event, bus.append(event)) for event in events]


def sent(target: WebhookForwarder, *batches: Sequence[Event]) -> list[HeadwaterError | None]:
    """Return how handling each batch ended."""

    async def one(events: Sequence[Event]) -> HeadwaterError | None:
        try:
            await target.handle(batch(events))
        except HeadwaterError as e:
            return e
        return None

    async def go() -> list[HeadwaterError | None]:
        found = [await one(events) for events in batches]
        await target.close()
        return found

    return asyncio.run(go())


def checked(target: WebhookForwarder) -> list[tuple[str, CheckStatus]]:
    async def go() -> list[tuple[str, CheckStatus]]:
        found = [(result.step, result.status) async for result in target.check()]
        await target.close()
        return found

    return asyncio.run(go())
