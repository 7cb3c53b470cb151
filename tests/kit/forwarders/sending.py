"""A forwarder that is given batches of events, and how each of them ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from headwater.errors import HeadwaterError
from headwater.events import Event
from headwater.forwarders.api import BusEvent, Forwarder
from tests.kit.forwarders.stage import MemoryBus


class SendingForwarder(Forwarder, Protocol):
    async def close(self) -> None: ...


def batch(events: Sequence[Event]) -> list[BusEvent]:
    bus = MemoryBus()
    return [BusEvent(event, bus.append(event)) for event in events]


def sent(target: SendingForwarder, *batches: Sequence[Event]) -> list[HeadwaterError | None]:
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


def error_of(target: SendingForwarder, events: Sequence[Event]) -> HeadwaterError | None:
    """Return how handling these events ended."""
    return sent(target, events)[0]
