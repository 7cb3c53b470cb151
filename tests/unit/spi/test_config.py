"""A wrong key or value is one clear error that names the nearest right one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest
from pydantic import Field

from headwater.config import Config, read_config, unknown
from headwater.errors import ConfigurationError


class Spool(Config):
    dir: str
    max_bytes: int = Field(default=1 << 30, ge=0)
    fsync: Literal["none", "interval", "always"] = "interval"
    producer: Mapping[str, str] = Field(default_factory=dict)


PREFIX = "spark.headwater.spool."


def read(**values: str) -> Spool:
    return read_config(Spool, {PREFIX + key.replace("_", "."): value for key, value in values.items()}, prefix=PREFIX)


def test_texts_become_values() -> None:
    assert read(dir="/spool", max_bytes="1024") == Spool(dir="/spool", max_bytes=1024)


def test_a_section_takes_whatever_stands_below_it() -> None:
    assert read(dir="/s", producer_linger_ms="5", producer_acks="all").producer == {"linger.ms": "5", "acks": "all"}


def test_other_prefixes_are_none_of_its_business() -> None:
    assert read_config(Spool, {f"{PREFIX}dir": "/s", "spark.app.name": "x"}, prefix=PREFIX).dir == "/s"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"dir": "/s", "max_byte": "1"},
            r"there is no key spark\.headwater\.spool\.max\.byte: did you mean spark\.headwater\.spool\.max\.bytes\?",
        ),
        ({"dir": "/s", "zzz": "1"}, r"there is no key .*zzz"),
        (
            {"dir": "/s", "fsync": "sometimes"},
            r"spark\.headwater\.spool\.fsync: Input should be 'none', 'interval' or 'always'",
        ),
        (
            {"dir": "/s", "max_bytes": "-1"},
            r"spark\.headwater\.spool\.max\.bytes: Input should be greater than or equal to 0",
        ),
        ({"dir": "/s", "max_bytes": "much"}, r"spark\.headwater\.spool\.max\.bytes: Input should be a valid integer"),
        ({}, r"spark\.headwater\.spool\.dir: Field required"),
    ],
)
def test_what_is_wrong_is_told_with_its_full_key(values: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read(**values)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(max_bytes="much", fsnyc="always")
    assert [word in str(caught.value) for word in ("max.bytes", "fsnyc", "spool.dir: Field required")] == [True] * 3


def test_a_value_is_never_told_because_it_may_be_a_secret() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(dir="/s", max_bytes="geheim")
    assert "geheim" not in str(caught.value)


def test_a_configuration_does_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(dir="/s").dir = "/other"  # type: ignore[misc]


def test_nothing_near_lists_what_there_is() -> None:
    assert unknown("listener", "quux", ["log", "kafka"]) == "there is no listener quux: there is kafka, log"
    assert unknown("listener", "quux", []) == "there is no listener quux: there is none at all"
