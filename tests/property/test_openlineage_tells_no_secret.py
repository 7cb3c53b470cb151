"""Secrets planted in every field of every event are in no message of OpenLineage: putting texts together makes none
appear again, and no text comes from where redaction doesn't look."""

from __future__ import annotations

import random

import pytest
from openlineage.client.serde import Serde

from headwater.events.envelope import Event
from headwater.events.marks import Identity
from headwater.events.producer import Producer
from headwater.forwarders.api import NoLineage
from headwater.forwarders.openlineage.mapping import openlineage_events
from headwater.testing.examples import DRAFTS, JOB, RUN
from tests.kit import seeds
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, Planter

pytestmark = pytest.mark.slow

SECRET = "qZ7rT4vW9xK2mB6n"


def text_of(draft: Event) -> str:
    (event,) = Producer(capture_sql=True).emit(draft, lambda event, _: event)
    attributed = event.model_copy(update={"run": RUN, "job": event.job or JOB})
    return "".join(Serde.to_json(message) for message in openlineage_events(attributed, NoLineage()))


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.kind)
def test_no_planted_secret_is_in_a_message(draft: Event) -> None:
    chance = random.Random(f"{seeds.seed()}{draft.kind}")
    form, in_identity = chance.choice([*FORMS.values()]), chance.choice([*IN_IDENTITIES.values()])
    for planted in Planter(draft).everywhere(form.format(SECRET), SECRET_KEYS[:1], SECRET):
        assert SECRET not in text_of(planted)
    for planted in Planter(draft, Identity).everywhere(in_identity.format(SECRET), [], SECRET):
        assert SECRET not in text_of(planted)


def test_what_is_no_secret_is_in_a_message() -> None:
    """Or losing everything would pass."""
    (draft,) = [draft for draft in DRAFTS if draft.kind == "StatementFailed"]
    planted = [text_of(each) for each in Planter(draft).everywhere("harmless words", [], "")]
    assert any("harmless words" in text for text in planted)
