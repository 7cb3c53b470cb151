"""What each event becomes as a CloudEvent 1.0: a pure function, without any input, output or clock.

Its data is the event's JSON form (docs/event-json.md). Nothing else is put together here but names of attributes.
"""

from __future__ import annotations

import unicodedata
from typing import Final
from urllib.parse import quote

from cloudevents.conversion import to_binary, to_structured
from cloudevents.http import CloudEvent

from headwater.events import Event
from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.catalog import DatabaseModification, TableModification
from headwater.events.json_form import event_object, time_text
from headwater.events.keys import key_of

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
        attributes["subject"] = attribute_text(_shortened(subject))
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


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SUBJECT else f"{text[: _LONGEST_SUBJECT - 1]}…"
