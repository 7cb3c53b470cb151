"""The messages that events become: one for each, or arrays of them that keep below a size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.events import Event
from headwater.forwarders.webhook.cloud_events import binary, cloud_event, structured
from headwater.forwarders.webhook.options import WebhookOptions

_BATCH: Final = {"content-type": "application/cloudevents-batch+json; charset=utf-8"}


@dataclass(frozen=True)
class WebhookMessage:
    """What one request brings, but for its credentials."""

    id: str
    """The same whenever the same events are sent."""
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class EncodedEvent:
    """An event of a batch, ready to be put into a message."""

    index: int
    """In the batch."""
    event: Event
    message: WebhookMessage


class MessageFormat:
    """Makes messages as the options want them."""

    def __init__(self, options: WebhookOptions) -> None:
        self._encode = binary if options.mode == "binary" else structured
        self._source = options.source
        self.is_batched: Final = options.mode == "batched"
        self._most = options.max_bytes

    def message(self, event: Event) -> WebhookMessage:
        """Return the message of one event."""
        headers, body = self._encode(cloud_event(event, self._source))
        return WebhookMessage(str(event.event_id), headers, body)

    def excess(self, message: WebhookMessage) -> str | None:
        """Return why a message can't be sent."""
        size = len(message.body) + (2 if self.is_batched else 0)
        if size <= self._most:
            return None
        return f"as a CloudEvent it has {size} bytes, more than max.bytes ({self._most}) allows"

    def batches(self, events: Sequence[EncodedEvent]) -> Iterator[list[EncodedEvent]]:
        """Yield the events in order, as many together as one message may hold."""
        batch: list[EncodedEvent] = []
        size = 2
        for each in events:
            more = len(each.message.body) + 1
            if batch and size + more - 1 > self._most:
                yield batch
                batch, size = [], 2
            batch.append(each)
            size += more
        if batch:
            yield batch


def joined(events: Sequence[EncodedEvent]) -> WebhookMessage:
    """Return one message with all these events, in their order."""
    body = b"[" + b",".join(each.message.body for each in events) + b"]"
    return WebhookMessage(f"batch-{hashlib.sha256(body).hexdigest()[:32]}", _BATCH, body)
