"""Secrets planted in every field of every event are in no message of OpenLineage, and in no request of a webhook:
putting texts together makes none appear again, and no text comes from where redaction doesn't look."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from openlineage.client.serde import Serde

from headwater.events.envelope import Event
from headwater.events.jobs import ErrorDetails
from headwater.events.marks import Identity
from headwater.events.producer import Producer
from headwater.forwarders.alerts.conditions import findings_of
from headwater.forwarders.alerts.evaluation import alert_of
from headwater.forwarders.api import NoLineage
from headwater.forwarders.openlineage.mapping import openlineage_events
from headwater.forwarders.webhook.messages import binary, cloud_event, structured
from headwater.testing.examples import DRAFTS, JOB, RUN
from tests.kit import seeds
from tests.kit.forwarders.alerts import rule_file
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, Planter

pytestmark = pytest.mark.slow

SECRET = "qZ7rT4vW9xK2mB6n"


def messages(event: Event) -> str:
    return "".join(Serde.to_json(message) for message in openlineage_events(event, NoLineage()))


def requests(event: Event) -> str:
    """Bodies and headers."""
    one = cloud_event(event, "urn:headwater:events")
    return "".join(f"{headers}{body.decode()}" for headers, body in (structured(one), binary(one)))


TARGETS: Final[Mapping[str, Callable[[Event], str]]] = {"openlineage": messages, "webhook": requests}


def text_of(target: str, draft: Event) -> str:
    (event,) = Producer(capture_sql=True).emit(draft, lambda event, _: event)
    return TARGETS[target](event.model_copy(update={"run": RUN, "job": event.job or JOB}))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.kind)
def test_no_planted_secret_is_told(draft: Event, target: str) -> None:
    chance = random.Random(f"{seeds.seed()}{draft.kind}")
    form, in_identity = chance.choice([*FORMS.values()]), chance.choice([*IN_IDENTITIES.values()])
    for planted in Planter(draft).everywhere(form.format(SECRET), SECRET_KEYS[:1], SECRET):
        assert SECRET not in text_of(target, planted)
    for planted in Planter(draft, Identity).everywhere(in_identity.format(SECRET), [], SECRET):
        assert SECRET not in text_of(target, planted)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_no_secret_is_told(target: str) -> None:
    """Or losing everything would pass."""
    (draft,) = [draft for draft in DRAFTS if draft.kind == "StatementFailed"]
    planted = [text_of(target, each) for each in Planter(draft).everywhere("harmless words", [], "")]
    assert any("harmless words" in text for text in planted)


# Secrets planted in every field of every event are in no alert: neither in its text nor in its values.


ALERT_RULES = (
    '[[rules]]\nname = "a"\nwhen = "job-failed"\nstatements = true\nto = ["pager"]\n'
    '[[rules]]\nname = "b"\nwhen = "gap"\nto = ["pager"]\n'
)
OF_ALERTS_ERROR = ErrorDetails(type="SparkException", message="Job aborted")
OF_ALERTS = [
    *(each for each in DRAFTS if each.kind in {"StatementFailed", "Gap"}),
    *(each.model_copy(update={"error": OF_ALERTS_ERROR}) for each in DRAFTS if each.kind == "JobStatusChanged"),
]


def alert_text_of(draft: Event, folder: Path) -> str:
    (event,) = Producer(capture_sql=True).emit(draft, lambda event, _: event)
    attributed = event.model_copy(update={"run": RUN, "job": event.job or JOB})
    rules = rule_file(folder, ALERT_RULES).rules
    return "".join(str(alert_of(each)) for rule in rules for each in findings_of(attributed, rule, 0.0))


@pytest.mark.parametrize("draft", OF_ALERTS, ids=lambda draft: draft.kind)
def test_no_planted_secret_is_in_an_alert(draft: Event, tmp_path: Path) -> None:
    chance = random.Random(f"{seeds.seed()}{draft.kind}")
    form, in_identity = chance.choice([*FORMS.values()]), chance.choice([*IN_IDENTITIES.values()])
    for planted in Planter(draft).everywhere(form.format(SECRET), SECRET_KEYS[:1], SECRET):
        assert SECRET not in alert_text_of(planted, tmp_path)
    for planted in Planter(draft, Identity).everywhere(in_identity.format(SECRET), [], SECRET):
        assert SECRET not in alert_text_of(planted, tmp_path)
    harmless = [alert_text_of(each, tmp_path) for each in Planter(draft).everywhere("harmless words", [], "")]
    assert any("harmless words" in text for text in harmless), "or losing everything would pass"
