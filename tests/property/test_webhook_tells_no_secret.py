"""Secrets planted in every field of every event are in no request of a webhook: not in its body, not in its headers."""

from __future__ import annotations

import random

import pytest

from headwater.events.envelope import Event
from headwater.events.marks import Identity
from headwater.events.producer import Producer
from headwater.forwarders.webhook.cloud_events import binary, cloud_event, structured
from headwater.testing.examples import DRAFTS, JOB, RUN
from tests.kit import seeds
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, Planter

pytestmark = pytest.mark.slow

SECRET = "qZ7rT4vW9xK2mB6n"


def text_of(draft: Event) -> str:
    (event,) = Producer(capture_sql=True).emit(draft, lambda event, _: event)
    attributed = event.model_copy(update={"run": RUN, "job": event.job or JOB})
    one = cloud_event(attributed, "urn:headwater:events")
    return "".join(f"{headers}{body.decode()}" for headers, body in (structured(one), binary(one)))


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.kind)
def test_no_planted_secret_is_in_a_request(draft: Event) -> None:
    chance = random.Random(f"{seeds.seed()}{draft.kind}")
    form, in_identity = chance.choice([*FORMS.values()]), chance.choice([*IN_IDENTITIES.values()])
    for planted in Planter(draft).everywhere(form.format(SECRET), SECRET_KEYS[:1], SECRET):
        assert SECRET not in text_of(planted)
    for planted in Planter(draft, Identity).everywhere(in_identity.format(SECRET), [], SECRET):
        assert SECRET not in text_of(planted)


def test_what_is_no_secret_is_in_a_request() -> None:
    """Or losing everything would pass."""
    (draft,) = [draft for draft in DRAFTS if draft.kind == "StatementFailed"]
    planted = [text_of(each) for each in Planter(draft).everywhere("harmless words", [], "")]
    assert any("harmless words" in text for text in planted)
