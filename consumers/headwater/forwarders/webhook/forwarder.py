"""The forwarder: sends each event as a CloudEvent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence

from headwater.config import read_config
from headwater.events import Event
from headwater.forwarders.api import BusEvent, ForwarderContext, RefusedEventsError
from headwater.forwarders.webhook.delivery import WebhookDelivery
from headwater.forwarders.webhook.http_endpoint import HttpEndpoint
from headwater.forwarders.webhook.messages import EncodedEvent, MessageFormat, joined
from headwater.forwarders.webhook.options import WebhookOptions
from headwater.forwarders.webhook.permission import Permission
from headwater.spi import CheckResult


class WebhookForwarder:
    """Sends events to an HTTP endpoint."""

    def __init__(self, context: ForwarderContext) -> None:
        options = read_config(WebhookOptions, context.options)
        self._target = HttpEndpoint(options)
        self._form = MessageFormat(options)
        self._permission = Permission(options, self._target)
        self._delivery = WebhookDelivery(self._target, self._permission, self._form, options.connections)

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        refused = await self._delivery.send(batch)
        if refused:
            raise RefusedEventsError(refused)

    async def check(self) -> AsyncIterator[CheckResult]:
        results, answer = await self._target.check(self._permission.request_headers)
        for each in results:
            yield each
        consent = None if answer is None else self._permission.judge(answer)
        if consent is not None:
            yield consent

    def preview(self, event: Event) -> Iterator[str]:
        message = self._form.message(event)
        if self._form.is_batched:
            message = joined([EncodedEvent(0, event, message)])
        headers = "".join(f"{name}: {value}\n" for name, value in message.headers.items())
        body = json.dumps(json.loads(message.body), indent=2, ensure_ascii=False)
        yield f"POST {self._target.shown}\n{headers}\n{body}"

    async def close(self) -> None:
        await self._target.close()
