"""The way through models, maps and sequences: everything is found, and what is clean stays the same object."""

from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum
from uuid import UUID

import pytest

from headwater.events.base import Model, StringMap
from headwater.events.redaction import REDACTED, Redactor, redact

SECRET = "Zq7xV9kLmW3pR"


class Colour(str, Enum):
    LEAK = "password=leak"


class Column(Model):
    name: str
    type: str
    nested: tuple[Column, ...] = ()


class SetOption(Model):
    key: str
    value: str | None


class Table(Model):
    name: str
    columns: tuple[Column, ...] = ()
    options: StringMap = StringMap()
    changes: tuple[SetOption, ...] = ()
    size: int = 0
    id: UUID = UUID(int=0)
    seen: datetime = datetime(2024, 1, 1, tzinfo=timezone.utc)
    raw: bytes = b"password=raw"
    colour: Colour = Colour.LEAK
    error: str | None = None
    tags: frozenset[str] = frozenset()


def table(secret: str, sign: str = "=") -> Table:
    """Without a sign as it is when the secrets are gone: the mark stands behind the name of each."""
    is_clean = not sign
    return Table(
        name="orders",
        columns=(Column(name="password", type="string", nested=(Column(name=f"token{sign}{secret}", type="int"),)),),
        options=StringMap(
            {
                "password": secret,
                "primary-key": "id",
                "url": secret if is_clean else f"jdbc:x://h/d?user=a&password={secret}",
            }
        ),
        changes=(SetOption(key="fs.s3a.secret.key", value=secret), SetOption(key="x", value=None)),
        error=f"failed: password{secret}" if is_clean else f"failed: password='{secret}' for orders",
        tags=frozenset([f"secret{sign}{secret}"]),
    )


def test_every_text_of_a_tree_is_redacted_and_nothing_else() -> None:
    redacted = Redactor().model(table(SECRET))
    assert redacted == table(REDACTED, sign="")
    assert SECRET not in redacted.model_dump_json()
    assert type(redacted.options) is StringMap


def test_the_redacted_model_still_validates() -> None:
    redacted = redact(table(SECRET))
    assert Table.model_validate_json(redacted.model_dump_json()) == redacted


def test_a_clean_model_is_the_same_object() -> None:
    clean = Table(name="orders", columns=(Column(name="id", type="int"),), options=StringMap({"primary-key": "id"}))
    assert redact(clean) is clean


def test_what_is_redacted_already_is_the_same_object() -> None:
    redacted = redact(table(SECRET))
    assert redact(redacted) is redacted


def test_clean_parts_are_shared_with_the_original() -> None:
    model = table(SECRET)
    assert redact(model).changes[1] is model.changes[1]


def test_what_is_no_text_stays_even_if_its_name_is_a_secret() -> None:
    assert redact({"password": None, "secret": True}) == {"password": None, "secret": True}


def test_a_structure_under_a_secrets_name_is_hidden_whole() -> None:
    assert redact({"credentials": {"user": "joe", "parts": [1, SECRET], "on": True}}) == {
        "credentials": {"user": REDACTED, "parts": [REDACTED, REDACTED], "on": True}
    }


@pytest.mark.parametrize("value", [1, 2.5, None, b"password=x", UUID(int=1), Colour.LEAK, object])
def test_other_things_pass(value: object) -> None:
    assert redact(value) is value


def test_lists_tuples_and_maps_keep_their_types() -> None:
    nested = {"a": [f"password={SECRET}", ("x", {"b": f"token={SECRET}"})], 1: "orders"}
    assert redact(nested) == {"a": [f"password{REDACTED}", ("x", {"b": REDACTED})], 1: "orders"}


def test_a_key_is_a_text_too() -> None:
    assert redact({f"https://joe:{SECRET}@host": "x"}) == {REDACTED: "x"}


def test_texts_with_secrets_are_not_remembered() -> None:
    redactor = Redactor()
    redactor.text(f"password={SECRET}")
    redactor.text("a clean text of orders")
    remembered = [text for held in vars(redactor).values() if isinstance(held, set) for text in held]
    assert remembered == ["a clean text of orders"]


@pytest.mark.slow
def test_the_memory_is_bounded() -> None:
    redactor = Redactor()
    for number in range(20_000):
        redactor.text(f"a clean text number {number}")
    assert max(len(held) for held in vars(redactor).values() if isinstance(held, set)) <= 4096
