"""A forwarder to webhooks that is given batches of events, and how each of them ended."""

from __future__ import annotations

import asyncio

from headwater.forwarders.api import ForwarderContext
from headwater.forwarders.webhook import WebhookForwarder
from headwater.spi import CheckStatus


def forwarder(**options: str) -> WebhookForwarder:
    return WebhookForwarder(ForwarderContext("w", {key.replace("_", "."): text for key, text in options.items()}))


def checked(target: WebhookForwarder) -> list[tuple[str, CheckStatus]]:
    async def go() -> list[tuple[str, CheckStatus]]:
        found = [(result.step, result.status) async for result in target.check()]
        await target.close()
        return found

    return asyncio.run(go())
