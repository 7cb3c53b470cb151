"""The messages that events become: one for each, or arrays of them that keep below a size.

What each event becomes as a CloudEvent 1.0: a pure function, without any input, output or clock.

Its data is the event's JSON form (docs/event-json.md). Nothing else is put together here but names of attributes.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from cloudevents.conversion import to_binary, to_structured
from cloudevents.http import CloudEvent

from headwater.events import Event
from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.catalog import DatabaseModification, TableModification
from headwater.events.json_form import event_object, time_text
from headwater.events.keys import key_of
from headwater.forwarders.webhook.options import WebhookOptions

_LONGEST_SUBJECT: Final = 256
_UNENCODED: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
"""What stands in a header as it is: the HTTP binding has everything else percent-encoded."""


def cloud_event(event: Event, source: str) -> CloudEvent:
    """Return the event as a CloudEvent. The same event gives the same one whenever it is sent."""
    attributes = {
        "specversion": "1.0",
        "id": str(event.event_id),
        "source": source,
        "type": f"headwater.{event.kind}.v{event.schema_version}",
        "time": time_text(event.time),
        "datacontenttype": "application/json",
        "dataschema": f"urn:headwater:event-json:{event.kind}:{event.schema_version}",
        "partitionkey": attribute_text(key_of(event).decode()),
    }
    subject = subject_of(event)
    if subject:
        attributes["subject"] = attribute_text(_shorten(subject))
    return CloudEvent(attributes, event_object(event))


def structured(event: CloudEvent) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a request that has the event in its body."""
    headers, body = to_structured(event)
    return {"content-type": f"{headers['content-type']}; charset=utf-8"}, body


def binary(event: CloudEvent) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a request that has the event's attributes in its headers. The SDK leaves the
    percent-encoding of headers to its user."""
    headers, body = to_binary(event)
    return {
        name: quote(value, _UNENCODED) if name.startswith("ce-") else value for name, value in headers.items()
    }, body


def subject_of(event: Event) -> str | None:
    """Return the name of what the event is about, as people write it."""
    if isinstance(event, TableModification):
        return str(event.identifier)
    if isinstance(event, DatabaseModification):
        return f"{event.identifier.catalog}.{event.identifier.database}"
    if isinstance(event, CatalogOptionsDeclared):
        return event.context.name
    if isinstance(event, DatasetsUnified):
        return str(event.dataset)
    if isinstance(event, LineageDeleted) and (event.of_job or event.dataset):
        return str(event.of_job or event.dataset)
    return None if event.job is None else str(event.job)


def attribute_text(text: str) -> str:
    """Return the text as an attribute can have it: CloudEvents allows no control characters and no half characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if _is_allowed(each) else f"\\u{ord(each):04x}" for each in text)


def _is_allowed(character: str) -> bool:
    code = ord(character)
    is_no_character = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
    return not is_no_character and unicodedata.category(character) not in {"Cc", "Cs"}


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_SUBJECT else f"{text[: _LONGEST_SUBJECT - 1]}…"


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
        for event in events:
            more = len(event.message.body) + 1
            if batch and size + more - 1 > self._most:
                yield batch
                batch, size = [], 2
            batch.append(event)
            size += more
        if batch:
            yield batch


def joined(events: Sequence[EncodedEvent]) -> WebhookMessage:
    """Return one message with all these events, in their order."""
    body = b"[" + b",".join(event.message.body for event in events) + b"]"
    return WebhookMessage(f"batch-{hashlib.sha256(body).hexdigest()[:32]}", _BATCH, body)
