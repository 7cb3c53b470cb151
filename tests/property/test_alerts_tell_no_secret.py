"""Secrets planted in every field of every event are in no alert: neither in its text nor in its values."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headwater.events.envelope import Event
from headwater.events.jobs import ErrorDetails
from headwater.events.marks import Identity
from headwater.events.producer import Producer
from headwater.forwarders.alerts.conditions import findings_of
from headwater.forwarders.alerts.evaluation import alert_of
from headwater.testing.examples import DRAFTS, JOB, RUN
from tests.kit import seeds
from tests.kit.forwarders.alerts import rule_file
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, Planter

pytestmark = pytest.mark.slow

SECRET = "qZ7rT4vW9xK2mB6n"
RULES = (
    '[[rules]]\nname = "a"\nwhen = "job-failed"\nstatements = true\nto = ["pager"]\n'
    '[[rules]]\nname = "b"\nwhen = "gap"\nto = ["pager"]\n'
)
ERROR = ErrorDetails(type="SparkException", message="Job aborted")
CASES = [
    *(each for each in DRAFTS if each.kind in {"StatementFailed", "Gap"}),
    *(each.model_copy(update={"error": ERROR}) for each in DRAFTS if each.kind == "JobStatusChanged"),
]


def text_of(draft: Event, folder: Path) -> str:
    (event,) = Producer(capture_sql=True).emit(draft, lambda event, _: event)
    attributed = event.model_copy(update={"run": RUN, "job": event.job or JOB})
    rules = rule_file(folder, RULES).rules
    return "".join(str(alert_of(each)) for rule in rules for each in findings_of(attributed, rule, 0.0))


@pytest.mark.parametrize("draft", CASES, ids=lambda draft: draft.kind)
def test_no_planted_secret_is_in_an_alert(draft: Event, tmp_path: Path) -> None:
    chance = random.Random(f"{seeds.seed()}{draft.kind}")
    form, in_identity = chance.choice([*FORMS.values()]), chance.choice([*IN_IDENTITIES.values()])
    for planted in Planter(draft).everywhere(form.format(SECRET), SECRET_KEYS[:1], SECRET):
        assert SECRET not in text_of(planted, tmp_path)
    for planted in Planter(draft, Identity).everywhere(in_identity.format(SECRET), [], SECRET):
        assert SECRET not in text_of(planted, tmp_path)
    harmless = [text_of(each, tmp_path) for each in Planter(draft).everywhere("harmless words", [], "")]
    assert any("harmless words" in text for text in harmless), "or losing everything would pass"
