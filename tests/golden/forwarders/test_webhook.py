"""What a webhook gets for an event of each kind: golden files to read, the rules of CloudEvents, and laws of any event.

`python -m tests.golden.forwarders.test_webhook` writes the golden files anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from cloudevents.http import from_http
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import Event, JobName
from headwater.events.kinds import KINDS
from headwater.forwarders.webhook.messages import (
    EncodedEvent,
    MessageFormat,
    attribute_text,
    binary,
    cloud_event,
    joined,
    structured,
)
from headwater.forwarders.webhook.options import WebhookOptions
from headwater.testing.examples import EXAMPLES
from headwater.testing.strategies import events
from tests.kit.effort import examples
from tests.kit.forwarders.webhook_server import WebhookRequest, read_events

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "webhook"
SOURCE = "urn:headwater:events"
ATTRIBUTES = {
    *("specversion", "id", "source", "type", "time", "datacontenttype", "dataschema", "subject", "partitionkey"),
}


def cases() -> dict[str, Event]:
    found: dict[str, Event] = {}
    for event in EXAMPLES:
        count = sum(name.startswith(f"{event.kind}.") for name in found) + 1
        found[f"{event.kind}.{count}"] = event
    return found


CASES = cases()


def requests_of(event: Event) -> dict[str, WebhookRequest]:
    one = cloud_event(event, SOURCE)
    return {
        "structured": WebhookRequest("POST", "/", *structured(one)),
        "binary": WebhookRequest("POST", "/", *binary(one)),
    }


def text_of(event: Event) -> str:
    both = requests_of(event)
    headers = both["binary"].headers
    shown = {"structured": json.loads(both["structured"].body), "headers of binary": headers}
    return json.dumps(shown, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_each_kind_gives_what_its_golden_file_shows(name: str) -> None:
    assert text_of(CASES[name]) == (HERE / f"{name}.json").read_text("utf-8")


def test_every_kind_has_a_case_and_every_file_an_event() -> None:
    assert {event.kind for event in CASES.values()} == KINDS.keys()
    assert {path.stem for path in HERE.glob("*.json")} == CASES.keys()


def is_allowed(text: str) -> bool:
    """As CloudEvents defines its type String."""
    return not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", text)


def problems_of(received: dict[str, Any], event: Event) -> list[str]:
    """Return what breaks the rules of CloudEvents 1.0, or isn't the event."""
    wrong = {name for name in received.keys() - {"data"} if not re.fullmatch("[a-z0-9]{1,20}", name)}
    wrong |= received.keys() - ATTRIBUTES - {"data"}
    wrong |= {name for name, value in received.items() if name != "data" and not (value and is_allowed(value))}
    if Event.from_json(json.dumps(received["data"])) != event:
        wrong.add("data")
    if received["id"] != f"{event.producer}-{event.sequence}":
        wrong.add("id")
    return sorted(wrong)


@settings(max_examples=examples(100))
@given(events())
def test_any_event_arrives_whole_in_every_mode(event: Event) -> None:
    for request in requests_of(event).values():
        (received,) = read_events(request)
        assert problems_of(received, event) == []
        assert all(value.isascii() and value.isprintable() for value in request.headers.values())
    one = requests_of(event)["structured"]
    assert from_http(one.headers, one.body)["id"] == str(event.event_id)


@settings(max_examples=examples(100))
@given(st.text(min_size=1, max_size=80))
def test_any_name_arrives_in_a_header(name: str) -> None:
    """The job's name is chosen by a user."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    event = EXAMPLES[18].model_copy(update={"job": JobName(name=name)})
    (received,) = read_events(requests_of(event)["binary"])
    assert received["subject"] == attribute_text(name)
    if is_allowed(name) and not re.search("[\\U0001fffe-\\U0010ffff]", name):
        assert received["subject"] == name


def test_a_name_beyond_ascii_is_percent_encoded_as_the_binding_says() -> None:
    event = EXAMPLES[18].model_copy(update={"job": JobName(name='Köln €"% \x07')})
    headers = requests_of(event)["binary"].headers
    assert headers["ce-subject"] == "K%C3%B6ln%20%E2%82%AC%22%25%20\\u0007"
    assert unquote(headers["ce-partitionkey"]) == 'default/Köln €"% \\u0007'


def test_a_batch_has_its_events_in_order() -> None:
    form = MessageFormat(WebhookOptions(url="http://a", mode="batched"))
    batch = joined([EncodedEvent(index, event, form.message(event)) for index, event in enumerate(EXAMPLES)])
    received = read_events(WebhookRequest("POST", "/", batch.headers, batch.body))
    assert [each["id"] for each in received] == [str(event.event_id) for event in EXAMPLES]


def main() -> None:
    for old in HERE.glob("*.json"):
        old.unlink()
    for name, event in CASES.items():
        (HERE / f"{name}.json").write_text(text_of(event), "utf-8")


if __name__ == "__main__":
    main()
