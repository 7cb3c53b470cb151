"""The forwarder: sends each event as a CloudEvent.

Sends the events of a batch: those of one key in their order, others side by side, each until the target has it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from headwater.config import read_config
from headwater.errors import TerminalError
from headwater.events import Event
from headwater.events.envelope import EventId
from headwater.events.keys import key_of
from headwater.forwarders.api import BusEvent, ForwarderContext, RefusedEventsError
from headwater.forwarders.http_delivery import RefusedContentError
from headwater.forwarders.webhook.http_client import HttpEndpoint
from headwater.forwarders.webhook.messages import EncodedEvent, MessageFormat, WebhookMessage, joined
from headwater.forwarders.webhook.options import WebhookOptions
from headwater.forwarders.webhook.permission import Permission
from headwater.spi import CheckResult


class WebhookDelivery:
    """Sends batches, one at a time. After a failure it remembers what the target has, and sends only the rest."""

    def __init__(self, target: HttpEndpoint, permission: Permission, form: MessageFormat, connections: int) -> None:
        self._target = target
        self._permission = permission
        self._form = form
        self._connections: Final = connections
        self._arrived: set[EventId] = set()

    async def send(self, batch: Sequence[BusEvent]) -> dict[int, str]:
        """Return why the target refuses events, by their index; it has the others."""
        refused: dict[int, str] = {}
        try:
            if self._form.is_batched:
                await self._send_together(batch, refused)
            else:
                await self._send_by_key(batch, refused)
        except TerminalError:
            self._permission.withdraw()
            raise
        self._arrived.clear()
        return refused

    async def _send_by_key(self, batch: Sequence[BusEvent], refused: dict[int, str]) -> None:
        waiting = deque(self._sequences(batch))
        failures: list[BaseException] = []

        async def work() -> None:
            while waiting and not failures:
                for index, event in waiting.popleft():
                    if failures:
                        return
                    try:
                        await self._send_one(index, event, refused)
                    except Exception as e:  # noqa: BLE001 - it is raised below
                        failures.append(e)

        await asyncio.gather(*(work() for _ in range(min(self._connections, len(waiting)))))
        if failures:
            raise failures[0]

    def _sequences(self, batch: Sequence[BusEvent]) -> list[list[tuple[int, BusEvent]]]:
        """Return the events whose order counts, each with its index."""
        sequences: dict[bytes, list[tuple[int, BusEvent]]] = {}
        for index, each in enumerate(batch):
            key = b"" if self._connections == 1 else each.record.key or key_of(each.event)
            sequences.setdefault(key, []).append((index, each))
        return list(sequences.values())

    async def _send_one(self, index: int, each: BusEvent, refused: dict[int, str]) -> None:
        if each.event.event_id in self._arrived:
            return
        message = self._form.message(each.event)
        excess = self._form.excess(message)
        if excess is not None:
            refused[index] = excess
            return
        try:
            await self._post(message)
        except RefusedContentError as e:
            refused[index] = str(e)
        else:
            self._arrived.add(each.event.event_id)

    async def _send_together(self, batch: Sequence[BusEvent], refused: dict[int, str]) -> None:
        encoded: list[EncodedEvent] = []
        for index, each in enumerate(batch):
            if each.event.event_id in self._arrived:
                continue
            message = self._form.message(each.event)
            excess = self._form.excess(message)
            if excess is None:
                encoded.append(EncodedEvent(index, each.event, message))
            else:
                refused[index] = excess
        for part in self._form.batches(encoded):
            await self._send_part(part, refused)

    async def _send_part(self, part: Sequence[EncodedEvent], refused: dict[int, str]) -> None:
        """Send some events in one message. If it is refused, its halves are sent: so the one that is wrong is found."""
        try:
            await self._post(joined(part))
        except RefusedContentError as e:
            if len(part) == 1:
                refused[part[0].index] = str(e)
                return
            middle = len(part) // 2
            await self._send_part(part[:middle], refused)
            await self._send_part(part[middle:], refused)
        else:
            self._arrived.update(each.event.event_id for each in part)

    async def _post(self, message: WebhookMessage) -> None:
        await self._permission.take()
        headers = {**message.headers, **self._permission.delivery_headers}
        await self._target.post(message.id, headers, message.body)


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
        for result in results:
            yield result
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
