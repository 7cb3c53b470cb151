"""`spark.redaction.regex` is written for Java: what Python understands otherwise, or not at all, is an error."""

from __future__ import annotations

import pytest

from headwater.errors import ConfigurationError
from headwater.events.redaction import REDACTED, Redactor
from headwater.listeners.redactors import make_redactor

SPARKS_OWN = "(?i)secret|password|token|access[.]?key"


@pytest.mark.parametrize(
    ("pattern", "hidden", "shown"),
    [
        ("(?i)badge", "my.BADGE.no", "my.bag"),
        ("(?i:badge)NO", "BadgeNO", "badgeno"),
        ("[*+]+x", "*+x", "x"),
        (r"[a]\[[b\[]", "a[[", "aa["),
        ("[(?i)]x", "?x", "x"),
        (r"^\w+[.]mat$", "my.mat", "my.mats"),
        ("", "anything", None),
    ],
)
def test_it_finds_the_names_that_java_finds(pattern: str, hidden: str, shown: str | None) -> None:
    redactor = Redactor(pattern)
    assert redactor.value(hidden, "orders") == REDACTED
    assert shown is None or redactor.value(shown, "orders") == "orders"


@pytest.mark.parametrize(
    "pattern",
    [
        *("a(b", "[a-z", "*a", "a{2,1}", "(?<=a*)b", "a\\"),
        *(r"\p{Upper}", r"\Qa.b\E", r"(?<one>ab)\k<one>", r"\x{62}adge", r"\h", "(?d)badge", r"\Ga"),
        *("[a-z&&[^b]]", "[a[b]]", "[a]x[^b[c]]"),
    ],
)
def test_a_pattern_that_only_java_understands_is_an_error_that_says_what_to_do(pattern: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Redactor(pattern)
    assert "spark.redaction.regex" in str(caught.value)
    assert repr(pattern) in str(caught.value)
    assert "write it without Java's own extensions" in str(caught.value)


def test_our_own_rules_hold_beside_the_pattern() -> None:
    redactor = Redactor("badge")
    assert redactor.mapping({"badge": "x", "password": "x", "primary-key": "x"}) == {
        "badge": REDACTED, "password": REDACTED, "primary-key": "x",
    }  # fmt: skip


def test_the_pattern_is_asked_for_names_inside_of_texts() -> None:
    assert Redactor("badge").text("Map(badge -> 12345, user -> joe)") == f"Map(badge{REDACTED}"


def test_the_pattern_wins_over_names_that_would_be_harmless() -> None:
    assert Redactor("(?i)primary").value("primary-key", "id") == REDACTED


def test_the_pattern_is_not_asked_for_values() -> None:
    assert Redactor("orders").value("dbtable", "orders") == "orders"


@pytest.mark.parametrize("name", ["my.password.prefix", "token.count", "spark.authenticate.secret.file", "Accesskey.x"])
def test_sparks_own_default_hides_what_spark_hides_where_the_driver_sets_it(name: str) -> None:
    assert Redactor(SPARKS_OWN).value(name, "orders") == REDACTED
    assert Redactor(SPARKS_OWN).mapping({name: "orders"}) == {name: REDACTED}
    assert make_redactor({"spark.redaction.regex": SPARKS_OWN})[0].is_secret(name)


@pytest.mark.parametrize("name", ["max.tokens", "spark.authenticate.secret.file"])
def test_where_nobody_sets_it_our_own_rules_hold(name: str) -> None:
    assert Redactor().value(name, "orders") == "orders"
