"""Whatever events come, Atlas is told the same each time, nothing that it can't resolve, and no secret."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.marks import Identity
from headwater.events.producer import Producer
from headwater.forwarders.atlas.forwarder import CHANGES_OF, atlas_changes
from headwater.forwarders.atlas.messages import envelopes, notifications
from headwater.forwarders.atlas.options import AtlasNames
from headwater.forwarders.atlas.resolving import AtlasPlan
from headwater.testing.examples import DRAFTS
from headwater.testing.strategies import events
from tests.kit.atlas.envelopes import opened
from tests.kit.effort import examples
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, SECRETS, Planter, emitted, stands_there_anyway

pytestmark = pytest.mark.slow

KINDS = [draft for draft in DRAFTS if draft.kind in CHANGES_OF]
NAMES = AtlasNames()


def texts(event: Event) -> list[str]:
    """All that can go out for an event, by either way."""
    changes = atlas_changes(event, NAMES)
    plan = AtlasPlan()
    plan.add(changes, {})
    return [json.dumps(each, ensure_ascii=False) for each in (*plan.entities, *notifications(changes))]


@settings(max_examples=examples(150))
@given(event=events())
def test_any_event_is_told_the_same_each_time_and_refers_to_what_is_there(event: Event) -> None:
    plan = AtlasPlan()
    plan.add(atlas_changes(event, NAMES), {})
    guids = {each["guid"] for each in plan.entities}
    assert len(guids) == len(plan.entities)
    names = {(each["typeName"], each["attributes"]["qualifiedName"]) for each in plan.entities}
    assert len(names) == len(plan.entities), "Atlas refuses one entity twice in a request"
    for entity in plan.entities:
        assert entity["attributes"]["qualifiedName"].endswith("@primary")
        assert entity["attributes"]["name"]
        for value in entity.get("relationshipAttributes", {}).values():
            assert all(each["guid"] in guids for each in (value if isinstance(value, list) else [value]))
    assert texts(event) == texts(event)


@settings(max_examples=examples(100))
@given(
    text=st.text(max_size=3_000).map(lambda text: text.encode("utf-8", "replace").decode()),
    most=st.integers(500, 2_000),
    compress=st.booleans(),
)
def test_a_notification_of_any_size_comes_out_as_it_went_in(text: str, most: int, compress: bool) -> None:
    notification = {"type": "ENTITY_FULL_UPDATE_V2", "text": text}
    messages = envelopes(notification, 7, most, compress=compress)
    assert all(len(message) <= most for message in messages)
    assert opened(messages) == [notification]
    assert messages == envelopes(notification, 7, most, compress=compress)


@pytest.mark.parametrize("draft", KINDS, ids=lambda draft: draft.kind)
@settings(max_examples=examples(1))
@given(secret=SECRETS, form=st.sampled_from(sorted(FORMS)), place=st.sampled_from(sorted(IN_IDENTITIES)))
def test_no_planted_secret_is_told(draft: Event, secret: str, form: str, place: str) -> None:
    producer = Producer(capture_sql=True)
    assume(not stands_there_anyway(secret, draft, producer))
    planted = [
        *Planter(draft).everywhere(FORMS[form].format(secret), SECRET_KEYS[:1], secret),
        *Planter(draft, Identity).everywhere(IN_IDENTITIES[place].format(secret), [], secret),
    ]
    for each in planted:
        event = Codec().decode(emitted(each, producer))
        if isinstance(event, Event):
            assert not any(secret in text for text in texts(event))
