"""`spark.redaction.regex` is written in Java's words; what can't be said here is an error that tells what to do."""

from __future__ import annotations

import pytest

from headwater.errors import ConfigurationError
from headwater.events.redaction import REDACTED, Redactor

SPARKS_OWN = "(?i)secret|password|token|access[.]?key"


@pytest.mark.parametrize(
    ("pattern", "hidden", "shown"),
    [
        ("(?i)badge", "my.BADGE.no", "my.bag"),
        ("ssn|(?i)badge", "my.BADGE", "my.SSN"),
        ("x(?i)b|y", "xB", "Xb"),
        ("(x(?i)b)y", "xBy", "xBY"),
        ("(?i:badge)NO", "BadgeNO", "badgeno"),
        (r"\Qa.b\E+", "a.bb", "aXb"),
        ("a++b*+c?+", "aab", "b"),
        ("(?>badge|b)x", "badgex", "badge"),
        (r"(?<one>ab)\k<one>", "abab", "abcd"),
        (r"^\p{Upper}{3}\z", "ABC", "ABc"),
        (r"^\P{Alpha}+$", "12.3", "12a"),
        (r"^[\p{Lower}_]+$", "ab_c", "ab-c"),
        (r"\x{62}adge", "badge", "cadge"),
        (r"\h", "a b", "a_b"),
        ("(?d)badge", "badge", "cadge"),
        ("[*+]+x", "*+x", "x"),
        ("[(?i)]x", "?x", "x"),
        ("badge{2}+s", "badgees", "badges"),
        ("", "anything", None),
    ],
)
def test_it_finds_what_java_finds(pattern: str, hidden: str, shown: str | None) -> None:
    redactor = Redactor(pattern)
    assert redactor.value(hidden, "orders") == REDACTED
    assert shown is None or redactor.value(shown, "orders") == "orders"


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("a(b", "write it without"),
        ("[a-z", "write it without"),
        ("*a", "write it without"),
        ("a{2,1}", "write it without"),
        (r"\p{InGreek}", "spell the characters out"),
        (r"[\P{Alpha}]", "outside of the brackets"),
        ("[a-z&&[^b]]", "one plain"),
        ("[a[b]]", "one plain"),
        (r"\Ga", "leave it out"),
        ("(?<=a*)b", "write it without"),
        ("a\\", "write it without"),
    ],
)
def test_what_cannot_be_said_is_an_error_that_helps(pattern: str, advice: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Redactor(pattern)
    assert "spark.redaction.regex" in str(caught.value)
    assert repr(pattern) in str(caught.value)
    assert advice in str(caught.value)


def test_our_own_rules_hold_beside_the_pattern() -> None:
    redactor = Redactor("badge")
    assert redactor.mapping({"badge": "x", "password": "x", "primary-key": "x"}) == {
        "badge": REDACTED, "password": REDACTED, "primary-key": "x",
    }  # fmt: skip


def test_the_pattern_is_asked_for_names_inside_of_texts() -> None:
    assert Redactor("badge").text("Map(badge -> 12345, user -> joe)") == f"Map(badge -> {REDACTED}, user -> joe)"


def test_the_pattern_wins_over_names_that_would_be_harmless() -> None:
    assert Redactor("(?i)primary").value("primary-key", "id") == REDACTED


def test_the_pattern_is_not_asked_for_values() -> None:
    assert Redactor("orders").value("dbtable", "orders") == "orders"


@pytest.mark.parametrize("name", ["token.count", "max.tokens", "spark.authenticate.secret.file"])
def test_sparks_own_default_hides_no_more_than_ours(name: str) -> None:
    assert Redactor(SPARKS_OWN).value(name, "orders") == "orders"
