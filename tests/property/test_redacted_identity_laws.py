"""Redaction never makes one identity of two."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import Event
from headwater.events.base import Model
from headwater.events.envelope import UNSTAMPED
from headwater.events.marks import Identity, marked
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor
from headwater.testing.examples import DRAFTS
from tests.kit.effort import examples
from tests.kit.planted_secrets import Planter

pytestmark = pytest.mark.slow

WORDS = st.sampled_from(
    [
        "token", "password", "Secret", "key", "bearer", "Basic", "digest", "Authorization", "credentials",
        "identified by", "api_key", "jdbc:oracle:thin", "https", "orders", "2023", "2024", "eu", "us", "ASIA", "SG",
        "sk", "hvs", "glrt", "eyJ", "curl -u a", "pin",
    ]
)  # fmt: skip
JOINTS = st.sampled_from(
    [
        "=",
        ": ",
        " ",
        "/",
        ".",
        "-",
        "_",
        "?",
        "&",
        "'",
        '"',
        "://",
        " -> ",
        " '",
        "#",
        "|",
        ",",
        "(",
        ")",
        ":",
        "<",
        ">",
    ]
)


@st.composite
def identities(draw: st.DrawFn) -> str:
    """Texts full of words for secrets. None has an `@`, so none holds a URL's user-info, nor the shape of a token."""
    text = draw(WORDS)
    for _ in range(draw(st.integers(0, 8))):
        text += draw(JOINTS) + draw(WORDS)
    return text


@settings(max_examples=examples(500))
@given(identities())
def test_an_identity_without_credentials_stays_the_same(text: str) -> None:
    assert Redactor().identity(text) is text


@settings(max_examples=examples(200))
@given(st.text(max_size=40))
def test_any_identity_is_taken_and_twice_is_once(text: str) -> None:
    once = Redactor().identity(text)
    assert Redactor().identity(once) == once


def test_every_identity_of_every_kind_of_event_stays_the_same() -> None:
    """Two values of a field marked as an identity are two in the event as well."""
    places = 0
    for draft in DRAFTS:
        for text in ("load token=accounts_2023 password: x", "load token=accounts_2024 password: x"):
            for planted in Planter(draft, Identity).everywhere(text, [], ""):
                (event,) = Producer(capture_sql=True).emit(planted, lambda _event, _data: None)
                assert event.model_copy(update=unstamped(planted)) == planted
                places += 1
    assert places > 500


def unstamped(draft: Event) -> dict[str, object]:
    assert draft.producer == UNSTAMPED
    return {name: getattr(draft, name) for name in ("producer", "sequence", "family_sequence", "time")}


def test_what_names_things_is_marked() -> None:
    """The mark is in the types, so that who adds a field of such a type can't forget it."""
    found = {
        f"{type(model).__name__}.{name}"
        for draft in DRAFTS
        for model in models_of(draft)
        for name in marked(type(model), Identity)
    }
    assert found >= {
        *(
            "JobName.namespace",
            "JobName.name",
            "DatasetId.namespace",
            "DatasetId.name",
            "TableName.catalog",
            "TableName.database",
        ),
        *(
            "TableName.table",
            "CatalogId.location",
            "CatalogContext.name",
            "Column.name",
            "ColumnLineage.source",
            "ColumnLineage.target",
        ),
        *(
            "Committed.user",
            "Committed.application",
            "Input.version",
            "Input.branch",
            "Output.generation",
            "Table.location",
        ),
    }


def models_of(value: object) -> list[Model]:
    """A model and all models in it."""
    if isinstance(value, tuple):
        return [model for item in value for model in models_of(item)]
    if not isinstance(value, Model):
        return []
    return [value, *(model for inner in value.__dict__.values() for model in models_of(inner))]
