"""Secrets planted in every field of every event, in every form, are not in the bytes; nor are literals of plans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headwater.events.base import Model
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS
from headwater.events.marks import Identity, SqlText, marked
from headwater.events.producer import Producer
from headwater.testing.examples import DRAFTS
from headwater.testing.strategies import drafts
from tests.kit.effort import examples
from tests.kit.planted_secrets import FORMS, IN_IDENTITIES, SECRET_KEYS, SECRETS, Planter, emitted, stands_there_anyway


@pytest.mark.slow
@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.kind)
@settings(max_examples=examples(2))
@given(secret=SECRETS)
def test_no_planted_secret_is_in_the_bytes(draft: Event, secret: str) -> None:
    producer = Producer(capture_sql=True)
    assume(not stands_there_anyway(secret, draft, producer))
    places = 0
    for planter, forms, keys in (
        (Planter(draft), FORMS, SECRET_KEYS),
        (Planter(draft, Identity), IN_IDENTITIES, []),
    ):
        for form in forms.values():
            for planted in planter.everywhere(form.format(secret), keys, secret):
                places += 1
                assert secret.encode() not in emitted(planted, producer)
    assert places >= len(IN_IDENTITIES)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_random_events_keep_no_secret_either(kind: type[Event]) -> None:
    producer = Producer(capture_sql=True)

    @settings(max_examples=examples(2))
    @given(drafts(kind), SECRETS, st.sampled_from(list(FORMS.values())), st.sampled_from(list(IN_IDENTITIES.values())))
    def law(draft: Event, secret: str, form: str, in_identity: str) -> None:
        assume(not stands_there_anyway(secret, draft, producer))
        for planted in Planter(draft).everywhere(form.format(secret), SECRET_KEYS[:1], secret):
            assert secret.encode() not in emitted(planted, producer)
        for planted in Planter(draft, Identity).everywhere(in_identity.format(secret), [], secret):
            assert secret.encode() not in emitted(planted, producer)

    law()


def test_what_is_not_secret_gets_through() -> None:
    """Or masking everything would pass."""
    for draft in DRAFTS:
        (event,) = Producer(capture_sql=True).emit(draft, lambda _, data: data)
        assert {**event.model_dump(), **ENVELOPE} == {**draft.model_dump(), **ENVELOPE}


ENVELOPE = dict.fromkeys(("producer", "sequence", "family_sequence", "time"))

STATEMENTS = [
    "SELECT a FROM t WHERE name = '{}'",
    "a > 1 AND b = '{}'",
    'concat(a, "{}")',
    "CASE WHEN a = '{}' THEN 1 END",
]


def _with_plan_text(value: Any, text: str) -> Iterator[Any]:
    """Copies with the text in one field for texts of plans, wherever there is one."""
    kind: type[Model] = type(value)
    for name in marked(kind, SqlText):
        yield value.model_copy(update={name: text})
    for name, inner in value.__dict__.items():
        if isinstance(inner, Model):
            yield from (value.model_copy(update={name: new}) for new in _with_plan_text(inner, text))
        elif isinstance(inner, tuple):
            for at, item in enumerate(inner):
                if isinstance(item, Model):
                    for new in _with_plan_text(item, text):
                        yield value.model_copy(update={name: (*inner[:at], new, *inner[at + 1 :])})


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.kind)
@settings(max_examples=examples(2))
@given(literal=SECRETS.map(str.lower), statement=st.sampled_from(STATEMENTS))
def test_literals_of_plans_stay_out_unless_they_are_asked_for(draft: Event, literal: str, statement: str) -> None:
    """In small letters, since a literal of letters and digits as nobody writes them is a token, and never stays."""
    quiet, reporting = Producer(), Producer(capture_sql=True)
    for planted in _with_plan_text(draft, statement.format(literal)):
        assert literal.encode() not in emitted(planted, quiet)
        assert literal.encode() in emitted(planted, reporting)


def test_there_are_texts_of_plans_in_many_kinds() -> None:
    assert {type(p).__name__ for d in DRAFTS for p in _with_plan_text(d, "x")} >= {
        "JobLineage",
        "Committed",
        "StatementFailed",
        "CreateTable",
        "CreateView",
        "AlterView",
        "Truncate",
    }
