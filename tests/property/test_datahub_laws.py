"""Whatever events come, DataHub is told only what its schemas admit, the same each time, and no secret."""

from __future__ import annotations

import json

import pytest
from datahub.metadata.urns import Urn
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.marks import Identity
from headwater.events.producer import Producer
from headwater.forwarders.datahub.forwarder import PROPOSALS_OF, datahub_proposals
from headwater.forwarders.datahub.options import DataHubNames
from headwater.forwarders.datahub.proposals import independent_batches
from headwater.testing.examples import DRAFTS
from headwater.testing.strategies import events
from tests.kit.effort import examples
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, SECRETS, Planter, emitted, stands_there_anyway

pytestmark = pytest.mark.slow

KINDS = [draft for draft in DRAFTS if draft.kind in PROPOSALS_OF]
NAMES = DataHubNames()


def texts(event: Event) -> list[str]:
    return [json.dumps(each.to_obj(), ensure_ascii=False) for each in datahub_proposals(event, NAMES)]


@settings(max_examples=examples(150))
@given(event=events())
def test_any_event_makes_valid_proposals_the_same_each_time(event: Event) -> None:
    proposals = datahub_proposals(event, NAMES)
    for proposal in proposals:
        assert proposal.validate()
        urn = proposal.entityUrn
        assert urn is not None
        assert str(Urn.from_string(urn)) == urn
    assert texts(event) == texts(event)
    assert len(proposals) >= sum(len(each) for each in independent_batches(proposals, 200)) > 0 or not proposals


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
